"""The page about a trajectory model: `trail_page` puts it together, `follow_users` prepares the users on it."""

from kerneltrail.report.trail.comparison import Comparison
from kerneltrail.report.trail.following import Followed, follow_users
from kerneltrail.report.trail.graph import GraphBlock
from kerneltrail.report.trail.page import trail_page
from kerneltrail.report.trail.paths import PathsBlock

__all__ = [
    "Comparison",
    "Followed",
    "GraphBlock",
    "PathsBlock",
    "follow_users",
    "trail_page",
]

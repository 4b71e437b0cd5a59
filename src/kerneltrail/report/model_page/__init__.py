"""The page about a trajectory model: `trail_page` puts it together, `follow_users` prepares the users on it."""

from kerneltrail.report.model_page.comparison import Comparison
from kerneltrail.report.model_page.followed_user import UserView, follow_users
from kerneltrail.report.model_page.graph import GraphBlock
from kerneltrail.report.model_page.page import trail_page
from kerneltrail.report.model_page.paths import PathsBlock

__all__ = [
    "Comparison",
    "UserView",
    "GraphBlock",
    "PathsBlock",
    "follow_users",
    "trail_page",
]

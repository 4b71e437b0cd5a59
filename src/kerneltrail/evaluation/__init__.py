"""What selections are judged by (SPEC §11): recovery, held-out density, calibration; with paired intervals."""

from kerneltrail.evaluation.calibration import Bin, brier, reliability
from kerneltrail.evaluation.follow import Followed, follow
from kerneltrail.evaluation.intervals import Interval, paired
from kerneltrail.evaluation.order import Order, orders
from kerneltrail.evaluation.recovery import Comparison, Learnt, Summary, compare_presets, learn

__all__ = [
    "Bin",
    "Comparison",
    "Followed",
    "Interval",
    "Learnt",
    "Order",
    "Summary",
    "brier",
    "compare_presets",
    "follow",
    "learn",
    "orders",
    "paired",
    "reliability",
]

"""What selections are judged by (SPEC §11): recovery, held-out density, calibration; with paired intervals."""

from kerneltrail.evaluation.building import Progress, Spec
from kerneltrail.evaluation.calibration import Bin, brier, reliability
from kerneltrail.evaluation.follow import Followed, follow
from kerneltrail.evaluation.harness import evaluate
from kerneltrail.evaluation.intervals import Interval, over_users, paired
from kerneltrail.evaluation.order import Order, orders
from kerneltrail.evaluation.prequential import Piece, prequential
from kerneltrail.evaluation.recovery import Comparison, Learnt, Summary, compare_presets, learn
from kerneltrail.evaluation.result import Average, Difference, Evaluation, merged
from kerneltrail.evaluation.splits import splits
from kerneltrail.evaluation.steps import METRICS, Failure, Step
from kerneltrail.evaluation.tables import load_evaluation

__all__ = [
    "Average",
    "Bin",
    "Comparison",
    "Difference",
    "Evaluation",
    "Failure",
    "Followed",
    "Interval",
    "Learnt",
    "METRICS",
    "Order",
    "Piece",
    "Progress",
    "Spec",
    "Step",
    "Summary",
    "brier",
    "compare_presets",
    "evaluate",
    "follow",
    "learn",
    "load_evaluation",
    "merged",
    "orders",
    "over_users",
    "paired",
    "prequential",
    "reliability",
    "splits",
]

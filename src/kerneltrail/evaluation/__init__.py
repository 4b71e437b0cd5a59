"""What selections are judged by (method §11): recovery, held-out density, calibration; with paired intervals."""

from kerneltrail.evaluation.follow import METRICS, Failure, Followed, Step, follow
from kerneltrail.evaluation.forecast import Forecast, forecast
from kerneltrail.evaluation.harness import evaluate, splits
from kerneltrail.evaluation.intervals import Interval, over_users, paired
from kerneltrail.evaluation.metrics import Bin, brier, coverage, mean_log_density, reliability, rmse, scores
from kerneltrail.evaluation.result import Average, Difference, Evaluation, load_evaluation, merged
from kerneltrail.evaluation.training import Spec
from kerneltrail.progress import Progress

__all__ = [
    "Average",
    "Bin",
    "Difference",
    "Evaluation",
    "Failure",
    "Followed",
    "Forecast",
    "Interval",
    "METRICS",
    "Progress",
    "Spec",
    "Step",
    "brier",
    "coverage",
    "evaluate",
    "follow",
    "forecast",
    "load_evaluation",
    "mean_log_density",
    "merged",
    "over_users",
    "paired",
    "reliability",
    "rmse",
    "scores",
    "splits",
]

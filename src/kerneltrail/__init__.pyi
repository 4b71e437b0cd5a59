from . import data, gp, kernels, methods
from .data import Cohort, simulate
from .errors import KerneltrailError
from .evaluation.harness import evaluate
from .gp import OnlineState, Posterior, Prediction, Reward, find_map, log_evidence
from .kernels import Pool, Priors, parse
from .plugins import register
from .report.description import describe
from .report.explanation import explain
from .trajectory.fit import fit
from .trajectory.model import TrajectoryModel, load
from .trajectory.new_user import NewUser
from .trajectory.settings import Settings

__all__ = [
    "Cohort",
    "KerneltrailError",
    "NewUser",
    "OnlineState",
    "Pool",
    "Posterior",
    "Prediction",
    "Priors",
    "Reward",
    "Settings",
    "TrajectoryModel",
    "data",
    "describe",
    "evaluate",
    "explain",
    "find_map",
    "fit",
    "gp",
    "kernels",
    "load",
    "log_evidence",
    "methods",
    "parse",
    "register",
    "simulate",
]

"""Kerneltrail: online structural kernel selection for Gaussian processes in mobile health.

The public interface: everything in `__all__`. Names are loaded when they are first used, so that importing the package,
and the command line's help, cost next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kerneltrail.adapters.arviz import to_arviz
    from kerneltrail.data import (
        Cohort,
        Scaler,
        Schema,
        Simulation,
        User,
        in_data_units,
        load_fitbit,
        load_heartsteps,
        paper_split,
        simulate_complex,
        simulate_distinct,
        simulate_mhealth,
        simulate_paper,
        simulate_similar,
        simulate_user,
    )
    from kerneltrail.errors import DataError, KernelError, KernelSyntaxError, KerneltrailError, NumericalError
    from kerneltrail.evaluation.harness import evaluate
    from kerneltrail.evaluation.result import Evaluation, load_evaluation
    from kerneltrail.gp import (
        Evidence,
        LinearBlock,
        MapResult,
        OnlineState,
        Posterior,
        Prediction,
        Reward,
        evidence,
        find_map,
        find_map_path,
        log_evidence,
        one_blas_thread,
        prior_only,
    )
    from kerneltrail.kernels import (
        Atom,
        AtomKind,
        Composition,
        Hyperparameter,
        Hyperparameters,
        Pool,
        Priors,
        Product,
        log_normal,
        normal,
        parse,
        register,
    )
    from kerneltrail.methods.registry import build, methods
    from kerneltrail.report.model_page import follow_users, trail_page
    from kerneltrail.report.words import describe, explain
    from kerneltrail.trajectory.advantage import Advantage
    from kerneltrail.trajectory.fit import fit
    from kerneltrail.trajectory.model import TrajectoryModel
    from kerneltrail.trajectory.model_file import load, save
    from kerneltrail.trajectory.new_user import NewUser
    from kerneltrail.trajectory.settings import Settings
    from kerneltrail.trajectory.user_file import load_user, save_user

_HOMES = {
    "kerneltrail.methods.registry": ("build", "methods"),
    "kerneltrail.data": (
        "Cohort", "Scaler", "Schema", "Simulation", "User", "in_data_units", "load_fitbit", "load_heartsteps",
        "paper_split", "simulate_complex", "simulate_distinct", "simulate_mhealth", "simulate_paper",
        "simulate_similar", "simulate_user",
    ),
    "kerneltrail.errors": ("DataError", "KernelError", "KernelSyntaxError", "KerneltrailError", "NumericalError"),
    "kerneltrail.evaluation.harness": ("evaluate",),
    "kerneltrail.evaluation.result": ("Evaluation", "load_evaluation"),
    "kerneltrail.gp": (
        "Evidence", "LinearBlock", "MapResult", "OnlineState", "Posterior", "Prediction", "Reward", "evidence",
        "find_map", "find_map_path", "log_evidence", "one_blas_thread", "prior_only",
    ),
    "kerneltrail.kernels": (
        "Atom", "AtomKind", "Composition", "Hyperparameter", "Hyperparameters", "Pool", "Priors", "Product",
        "log_normal", "normal", "parse", "register",
    ),
    "kerneltrail.report.model_page": ("follow_users", "trail_page"),
    "kerneltrail.report.words": ("describe", "explain"),
    "kerneltrail.adapters.arviz": ("to_arviz",),
    "kerneltrail.trajectory.model_file": ("load", "save"),
    "kerneltrail.trajectory.fit": ("fit",),
    "kerneltrail.trajectory.model": ("TrajectoryModel",),
    "kerneltrail.trajectory.advantage": ("Advantage",),
    "kerneltrail.trajectory.new_user": ("NewUser",),
    "kerneltrail.trajectory.settings": ("Settings",),
    "kerneltrail.trajectory.user_file": ("load_user", "save_user"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kerneltrail' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Advantage",
    "Atom",
    "AtomKind",
    "Cohort",
    "Composition",
    "DataError",
    "Evaluation",
    "Evidence",
    "Hyperparameter",
    "Hyperparameters",
    "KernelError",
    "KernelSyntaxError",
    "KerneltrailError",
    "LinearBlock",
    "MapResult",
    "NewUser",
    "NumericalError",
    "OnlineState",
    "Pool",
    "Posterior",
    "Prediction",
    "Priors",
    "Product",
    "Reward",
    "Scaler",
    "Schema",
    "Settings",
    "Simulation",
    "TrajectoryModel",
    "User",
    "build",
    "describe",
    "evaluate",
    "evidence",
    "explain",
    "find_map",
    "find_map_path",
    "fit",
    "follow_users",
    "in_data_units",
    "load",
    "load_evaluation",
    "load_fitbit",
    "load_heartsteps",
    "load_user",
    "log_evidence",
    "log_normal",
    "methods",
    "normal",
    "one_blas_thread",
    "paper_split",
    "parse",
    "prior_only",
    "register",
    "save",
    "save_user",
    "simulate_complex",
    "simulate_distinct",
    "simulate_mhealth",
    "simulate_paper",
    "simulate_similar",
    "simulate_user",
    "to_arviz",
    "trail_page",
]

"""What draws are worth: arviz-stats' effective sample sizes of chains, and Pareto's k of importance weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike

from kerneltrail.kernels import Array
from kerneltrail.trajectory.sampler.convergence import STILL, checked

LEAST_DRAWS = 25
"""From more weights than this a tail can be fitted."""


def sizes(traces: Mapping[str, Array]) -> dict[str, float]:
    """Bulk effective sample size of each trace; the number of sweeps where nothing moves."""
    return {name: float(bulk_ess(v)) if np.ptp(v) > STILL else float(v.size) for name, v in traces.items()}


def bulk_ess(draws: ArrayLike) -> float:
    """Effective sample size of the rank-normalised split chains: how many independent draws they are worth."""
    values = checked(draws)
    if np.ptp(values) == 0.0:
        return float("nan")
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))


def pareto_k(log_weights: Array) -> Array:
    """Pareto's k of the largest weights of each column, (T,): how heavy their tail is; infinite where none is finite.

    Above 0.7 a mean of so many weights cannot be trusted (Vehtari et al. 2024, "Pareto smoothed importance sampling").
    """
    k = np.full(log_weights.shape[1], np.inf)
    for t, column in enumerate(log_weights.T):
        weights = column[np.isfinite(column)]
        if len(weights) > LEAST_DRAWS:
            with np.errstate(all="ignore"):
                k[t] = array_stats.psislw(-weights)[1]
    return k

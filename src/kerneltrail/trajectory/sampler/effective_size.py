"""How many independent draws the chains of a fit are worth: arviz-stats' effective sample sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike

from kerneltrail.kernels import Array
from kerneltrail.trajectory.sampler.convergence import STILL, checked


def sizes(traces: Mapping[str, Array]) -> dict[str, float]:
    """Bulk effective sample size of each trace; the number of sweeps where nothing moves."""
    return {name: float(bulk_ess(v)) if np.ptp(v) > STILL else float(v.size) for name, v in traces.items()}


def bulk_ess(draws: ArrayLike) -> float:
    """Effective sample size of the rank-normalised split chains: how many independent draws they are worth."""
    values = checked(draws)
    if np.ptp(values) == 0.0:
        return float("nan")
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))

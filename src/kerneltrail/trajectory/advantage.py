"""What an action adds, per context, with its uncertainty: r(s,1) - r(s,0) of a reward model (method (33))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from kerneltrail.errors import DataError
from kerneltrail.kernels import Array


@dataclass(frozen=True)
class Advantage:
    """The advantage of acting at m contexts, in the target's units: a Normal at each, means and variances (m,)."""

    mean: Array
    variance: Array

    @property
    def sd(self) -> Array:
        """Standard deviation, (m,)."""
        return np.sqrt(self.variance)

    @property
    def positive(self) -> Array:
        """Probability that acting helps, (m,); where nothing is uncertain, 0 or 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.variance > 0, self.mean / self.sd, np.inf * np.sign(self.mean))
        return np.asarray(scipy.special.ndtr(np.where(np.isnan(ratio), 0.0, ratio)))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval that holds the advantage with probability `level`: (low, high), each (m,)."""
        if not 0.0 < level < 1.0:
            raise DataError(f"the level of an interval lies between 0 and 1, got {level}")
        half = float(scipy.special.ndtri(0.5 + 0.5 * level)) * self.sd
        return self.mean - half, self.mean + half


def mixed(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and variance of a mixture of S Normals at m places (method (31)), from (S,), (S, m) and (S, m)."""
    share = weights / weights.sum()
    mean = share @ means
    # Around the joint mean, not as a difference of squares: targets may be large.
    return mean, share @ (variances + (means - mean) ** 2)

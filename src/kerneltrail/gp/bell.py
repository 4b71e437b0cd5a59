"""A Normal or a Student-t for each of some rows: their densities, and their probabilities stretch by stretch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LEAST = 1e-300
"""Least probability of a stretch: its logarithm is a number."""


class Bell(NamedTuple):
    """A Normal or a Student-t for each of m rows, all (m,).

    Attributes:
        mean: where it is.
        scale: of the Student-t; a Normal's standard deviation.
        freedom: its degrees of freedom; infinite for a Normal.
    """

    mean: Array
    scale: Array
    freedom: Array

    def stretches(self, edges: Array) -> Array:
        """Probability between neighbouring edges, and beyond the first and the last, (m, edges + 1)."""
        ends = np.concatenate([[-np.inf], edges, [np.inf]])
        z = (ends - self.mean[:, None]) / self.scale[:, None]
        nu = self.freedom[:, None]
        low, high = z[:, :-1], z[:, 1:]
        # By the tail on their own side, which does not round to 1.
        above = low > 0.0
        upper = scipy.special.stdtr(nu, np.where(above, -low, high))
        lower = scipy.special.stdtr(nu, np.where(above, -high, low))
        return np.maximum(upper - lower, LEAST)

    def log_density(self, y: Array) -> Array:
        """Log density at y, (m,)."""
        z, normal = (y - self.mean) / self.scale, np.isinf(self.freedom)
        heavy = student_log_density(z, np.where(normal, 1.0, self.freedom))
        return np.where(normal, -0.5 * (np.log(2.0 * np.pi) + z**2), heavy) - np.log(self.scale)

    def wider(self, factor: float) -> Bell:
        """So many times as wide."""
        return self._replace(scale=factor * self.scale)


def student_log_density(z: Array, freedom: ArrayLike) -> Array:
    """Log density of a Student-t at z.

    >>> float(np.round(student_log_density(np.array([0.0]), 1.0)[0], 6)) == round(float(-np.log(np.pi)), 6)
    True
    """
    nu = np.asarray(freedom, dtype=np.float64)
    constant = scipy.special.gammaln(0.5 * (nu + 1.0)) - scipy.special.gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)
    return np.asarray(constant - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu))

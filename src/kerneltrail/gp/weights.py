"""Bayesian regression on features: f = φ'w with w ~ N(0, I), so that the kernel is the features' inner product.

The posterior of w needs a factor of A = ΦΦᵀ + σ²I and nothing of the size of the rows. The factor comes from the rows'
sums, which is all that an online state keeps, or from the rows themselves, where sums would round the noise away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp import gram
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper

Array = NDArray[np.float64]

SUMS_RESOLUTION = 1e-13
"""As `numerics.RESOLUTION`, for sums over any number of rows: a million equal rows alone take six digits."""


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of the weights: N(mean, σ²A⁻¹).

    Attributes:
        lower: L with LLᵀ = A, (r, r).
        mean: (r,).
        noise: σ².
        log_evidence: of all rows seen.
    """

    lower: Array
    mean: Array
    noise: float
    log_evidence: float

    @classmethod
    def from_sums(cls, sums: Array, rows: int, noise: float, *, what: str) -> WeightPosterior:
        """From [Φ; y][Φ; y]ᵀ summed over so many rows, (r + 1, r + 1)."""
        size = len(sums) - 1
        a = sums[:size, :size].copy()
        a[np.diag_indices(size)] += noise
        lower = factorise(a, what=what, resolution=SUMS_RESOLUTION)
        b = sums[:size, -1]
        mean = solve_upper(lower, solve_lower(lower, b))
        # Stationary in the mean: its rounding enters squared.
        remainder = sums[-1, -1] - 2.0 * mean @ b + mean @ a @ mean
        if remainder < SUMS_RESOLUTION * sums[-1, -1] and 1e-13 * sums[-1, -1] > noise:
            raise NumericalError(
                f"{what} drowns in rounding: targets of that size are too large for a noise of {noise:g}"
            )
        quad = remainder / noise
        logdet = (rows - size) * np.log(noise) + 2.0 * np.log(np.diagonal(lower)).sum()
        return cls(lower, mean, noise, float(-0.5 * (quad + logdet + rows * LOG_2PI)))

    @classmethod
    def from_rows(cls, features: Array, y: Array, noise: float, *, what: str) -> WeightPosterior:
        """From features (r, n) and targets, by reflections: rounding is relative to the features, not their squares."""
        size, rows = features.shape
        upper = np.zeros((size + 1, size + 1))
        stacked = np.ascontiguousarray(np.vstack([features, y]))
        logdet = gram.reflect(stacked, np.ones(size + 1), rows, noise, upper)
        quad = upper[-1, -1] ** 2 / noise
        log = -0.5 * (quad + (rows - size) * np.log(noise) + logdet + rows * LOG_2PI)
        if not np.isfinite(log):
            raise NumericalError(f"{what} drowns in rounding: features are too large for the noise, or almost equal")
        mean = scipy.linalg.solve_triangular(upper[:size, :size], upper[:size, size])
        return cls(np.asfortranarray(upper[:size, :size].T), mean, noise, float(log))

    def spread(self, features: Array) -> Array:
        """V with σ² VᵀV the posterior covariance of f at features (r, m)."""
        return solve_lower(self.lower, features)

    def moments(self, features: Array) -> tuple[Array, Array]:
        """Mean and variance of f at features (r, m), each (m,)."""
        v = self.spread(features)
        return self.mean @ features, self.noise * np.einsum("ij,ij->j", v, v)

    def parts(self, features: Array, groups: list[NDArray[np.int64]]) -> list[tuple[Array, Array]]:
        """Moments of the part of f that each group of features makes."""
        found = []
        for group in groups:
            alone = np.zeros_like(features)
            alone[group] = features[group]
            found.append(self.moments(alone))
        return found

    def last(self, root: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of Ru, where u are the last q weights."""
        q = len(root)
        unit = np.zeros((len(self.mean), q))
        unit[-q:] = np.eye(q)
        v = self.spread(unit) @ root.T
        return root @ self.mean[-q:], self.noise * (v.T @ v)

"""Covariances of atoms and their slopes, entry by entry: one pass where NumPy would need several."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]


@compiled()
def outer(a: Array, b: Array) -> Array:
    """a_i b_j; NumPy's own pays for each row of so short a matrix."""
    out = np.empty((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            out[i, j] = a[i] * b[j]
    return out


@compiled()
def cosines(cos_a: Array, sin_a: Array, cos_b: Array, sin_b: Array, factor: float) -> Array:
    """factor · (cos(a_i - b_j) - 1), never above 0: equal rows give 0, not the rounding of it."""
    out = np.empty((cos_a.shape[0], cos_b.shape[0]))
    for i in range(cos_a.shape[0]):
        for j in range(cos_b.shape[0]):
            out[i, j] = min(factor * (cos_a[i] * cos_b[j] + sin_a[i] * sin_b[j] - 1.0), 0.0)
    return out


@compiled()
def periodic_slopes(angle: Array, cosine: Array, sine: Array, covariance: Array, factor: float) -> tuple[Array, Array]:
    """dk/d log ℓ = k·2(1 - cos δ)/ℓ² and dk/d log p = k·δ sin δ/ℓ², δ = 2π(x-x')/p, in one pass.

    Cosine and sine of the differences come from those of the rows: n of each in place of n².
    """
    n = angle.shape[0]
    by_lengthscale = np.empty((n, n))
    by_period = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            weight = factor * covariance[i, j]
            by_lengthscale[i, j] = weight * (1.0 - cosine[i] * cosine[j] - sine[i] * sine[j])
            by_period[i, j] = weight * 0.5 * (angle[i] - angle[j]) * (sine[i] * cosine[j] - cosine[i] * sine[j])
    return by_lengthscale, by_period


@compiled()
def squared_slope(x: Array, covariance: Array, factor: float) -> Array:
    """dk/d log ℓ = k·(x-x')²/ℓ²."""
    n = x.shape[0]
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = factor * covariance[i, j] * (x[i] - x[j]) ** 2
    return out

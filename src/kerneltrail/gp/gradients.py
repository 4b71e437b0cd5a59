"""Compiled: what a gradient of the log evidence needs besides the factor that `gram` makes (method (15)).

With A = ΦΦᵀ + σ²I, the mean m = A⁻¹Φy and α = K⁻¹y, d log p/dΦᵀ = α mᵀ - Φᵀ A⁻¹. Weights and amplitudes need of it only
the diagonal of A⁻¹. What moves the features themselves, a frequency or a location, needs whole rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.feature_rows import FAST
from kerneltrail.gp.gram import add_trigonometric
from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]


@compiled(fastmath=FAST)
def invert(upper: Array, wanted: NDArray[np.bool_], out: Array) -> None:
    """The diagonal of (UᵀU)⁻¹ for the leading rows that `out` has, and of wanted ones the whole row and column.

    The rest of `out` is left as it is.
    """
    r = out.shape[0]
    inverse = np.zeros((r + 3, r))  # row j holds column j of U⁻ᵀ, that is row j of U⁻¹; three of zeros to read past it
    for i in range(r - 1, -1, -1):
        inverse[i, i] = 1.0 / upper[i, i]
        for k in range(i + 1, r, 4):
            row, row0, row1, row2, row3 = (
                inverse[i, k:],
                inverse[k, k:],
                inverse[k + 1, k:],
                inverse[k + 2, k:],
                inverse[k + 3, k:],
            )
            factor0 = upper[i, k] * inverse[i, i]
            factor1 = upper[i, k + 1] * inverse[i, i] if k + 1 < r else 0.0
            factor2 = upper[i, k + 2] * inverse[i, i] if k + 2 < r else 0.0
            factor3 = upper[i, k + 3] * inverse[i, i] if k + 3 < r else 0.0
            for j in range(r - k):
                row[j] -= factor0 * row0[j] + factor1 * row1[j] + factor2 * row2[j] + factor3 * row3[j]
    for i in range(r):  # U⁻¹U⁻ᵀ: inner products of the rows of U⁻¹
        row = inverse[i, i:]
        total = 0.0
        for k in range(r - i):
            total += row[k] * row[k]
        out[i, i] = total
        for j in range(i + 1, r, 2):
            if not (wanted[i] or wanted[j] or (j + 1 < r and wanted[j + 1])):
                continue
            row, other, next_one = inverse[i, j:], inverse[j, j:], inverse[j + 1, j:]
            total, next_total = 0.0, 0.0
            for k in range(r - j):
                total += row[k] * other[k]
                next_total += row[k] * next_one[k]
            out[i, j] = total
            out[j, i] = total
            if j + 1 < r:
                out[i, j + 1] = next_total
                out[j + 1, i] = next_total


@compiled(fastmath=FAST)
def subtract(rows: Array, weights: Array, out: Array) -> None:
    """out -= Σ weights[k] rows[k], four rows at a time: `out` is then read and written a quarter as often."""
    r = weights.shape[0]
    for k in range(0, r, 4):
        k1, k2, k3 = min(k + 1, r - 1), min(k + 2, r - 1), min(k + 3, r - 1)
        row, row1, row2, row3 = rows[k], rows[k1], rows[k2], rows[k3]
        weight = weights[k]
        weight1 = weights[k1] if k + 1 < r else 0.0
        weight2 = weights[k2] if k + 2 < r else 0.0
        weight3 = weights[k3] if k + 3 < r else 0.0
        for i in range(out.shape[0]):
            out[i] -= weight * row[i] + weight1 * row1[i] + weight2 * row2[i] + weight3 * row3[i]


@compiled(fastmath=FAST)
def _subtract_two(rows: Array, scale: Array, weights: Array, other_weights: Array, out: Array, other: Array) -> None:
    """`subtract` of the same rows, by two sets of weights, each times a scale."""
    r = weights.shape[0]
    for k in range(0, r, 2):
        k1 = min(k + 1, r - 1)
        row, row1 = rows[k], rows[k1]
        scale1 = scale[k1] if k + 1 < r else 0.0
        a, a1 = scale[k] * weights[k], scale1 * weights[k1]
        b, b1 = scale[k] * other_weights[k], scale1 * other_weights[k1]
        for i in range(out.shape[0]):
            out[i] -= a * row[i] + a1 * row1[i]
            other[i] -= b * row[i] + b1 * row1[i]


@compiled(fastmath=FAST)
def frequency_slope(
    features: Array, scale: Array, mean: Array, inverse: Array, residual: Array, x: Array, first: int, stop: int
) -> float:
    """d log p/dω of a product whose rows first … stop are 1, cos θ, sin θ, cos 2θ, … with θ = ωx; `residual` is α.

    dΦ/dω is x times these rows with cosine and sine exchanged. Against the product's own rows it gives sums of
    x cos mθ and x sin mθ, which are few, as in `gram`: O(n r) in place of O(n r²). The rows of the others are passed
    one by one.
    """
    n, r, terms = x.shape[0], mean.shape[0], (stop - first + 1) // 2
    if terms < 2:
        return 0.0
    weighted = np.empty((3, n))
    for c in range(3):
        row, moved = features[first if c == 0 else stop - 3 + c], weighted[c]
        for i in range(n):
            moved[i] = x[i] * row[i]
    sums = np.zeros((2, 2 * terms))
    add_trigonometric(features, weighted[0], weighted[1], weighted[2], first, terms, np.int64(0), n, sums)
    total = 0.0
    slope, other = np.empty(n), np.empty(n)
    for j in range(1, terms):
        c = first + 2 * j - 1
        s = c + 1
        for i in range(n):
            slope[i] = mean[c] * residual[i]
            other[i] = mean[s] * residual[i]
        _subtract_two(features[:first], scale, inverse[c, :first], inverse[s, :first], slope, other)
        _subtract_two(features[stop:r], scale[stop:], inverse[c, stop:], inverse[s, stop:], slope, other)
        cosines, sines = features[c], features[s]
        change = 0.0
        for i in range(n):
            change += x[i] * (other[i] * cosines[i] - slope[i] * sines[i])
        # Its own rows: 2 cos a sin b = sin(a+b) - sin(a-b), …, both orders of a pair of terms together.
        own = scale[first] * (inverse[s, first] * sums[0, j] - inverse[c, first] * sums[1, j])
        for k in range(1, j + 1):
            ck = first + 2 * k - 1
            cc, ss, cs, sc = inverse[c, ck], inverse[s, ck + 1], inverse[c, ck + 1], inverse[s, ck]
            pair = (j + k) * ((cs + sc) * sums[0, j + k] - (cc - ss) * sums[1, j + k])
            pair += (j - k) * ((sc - cs) * sums[0, j - k] - (cc + ss) * sums[1, j - k])
            own += (0.25 if k == j else 0.5) * scale[ck] * pair / j
        total += j * scale[c] * (change - own)
    return total

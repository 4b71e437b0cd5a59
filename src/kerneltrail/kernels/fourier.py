"""Fourier coefficients of stationary kernels on one covariate: exact to tolerance, computed for many θ at once.

A stationary kernel k(τ) on a bounded range is a short cosine series, k(τ) = Σ_j w_j cos(jωτ) with w_j ≥ 0 and
Σ_j w_j = k(0) = 1. Since cos(jω(x-x')) = cos jωx cos jωx' + sin jωx sin jωx', the weights give features whose
inner product is the kernel (method (12)).

Weights are never normalised after truncation: what is dropped is what is lost, and it is below `tail`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONGEST = 1 << 14
"""No series is longer: it would cost more than the dense method for any number of rows that can be held.

A lengthscale that wants more (below some 1e-4 of the period or range) gets this length and is *not* exact; its `count`
tells the caller that dense is cheaper. Without the limit one such sample would fill the memory of all batched with it.
"""


NO_FAMILY, GAUSSIAN, BESSEL = 0, 1, 2
"""Families of series that compiled code can make by itself (`one_series`).

GAUSSIAN: exp(-τ²/(2ℓ²)), whose one hyperparameter is the lengthscale. BESSEL: exp(-2 sin²(πτ/p)/ℓ²), lengthscale and
period. An atom kind without a family works all the same, by its `series` method.
"""


@dataclass(frozen=True)
class Series:
    """A cosine series for each of S hyperparameter vectors, padded to the longest.

    Attributes:
        omega: fundamental angular frequency, shape (S,).
        count: number of terms kept, the constant included, shape (S,).
        weights: w_j for j = 0 … J-1, shape (S, J); only the first `count` of a row are meaningful.
        dlog_weights: d log w_j / du for each unconstrained hyperparameter u of the atom, shape (k, S, J).
        domega: dω/du, shape (k, S).
    """

    omega: Array
    count: NDArray[np.int64]
    weights: Array
    dlog_weights: Array
    domega: Array


@numba.njit(cache=True)
def _bessel_weights(z: float, tail: float, weights: Array, slopes: Array) -> int:
    """Fill w_0 = I_0(z)e^{-z}, w_j = 2 I_j(z)e^{-z} and d log w_j / dz; return how many terms carry all but `tail`.

    Miller's downward recurrence I_{j-1} = I_{j+1} + (2j/z) I_j, normalised by I_0 + 2 Σ I_j = e^z: stable for every
    z > 0, with no call to a special function.
    """
    size = weights.shape[0]
    # Start far enough above the last order wanted for the unstable start-up to have died out.
    top = size + 16
    above, here, total, beyond = 0.0, 1e-280, 0.0, 0.0
    for j in range(top, 0, -1):
        below = above + (2.0 * j / z) * here
        if j < size:
            weights[j] = here
        else:
            beyond += 2.0 * here
        total += 2.0 * here
        above, here = here, below
        if here > 1e200:  # rescale: only ratios matter
            above *= 1e-200
            here *= 1e-200
            total *= 1e-200
            beyond *= 1e-200
            for i in range(j, size):
                weights[i] *= 1e-200
    weights[0] = here
    total += here
    for j in range(size):
        weights[j] /= total
    # d/dz (I_j e^{-z}) = ((I_{j-1} + I_{j+1})/2 - I_j) e^{-z}
    for j in range(size):
        before = weights[j - 1] if j > 0 else (weights[1] if size > 1 else 0.0)
        after = weights[j + 1] if j + 1 < size else 0.0
        slopes[j] = 0.5 * (before + after) / weights[j] - 1.0 if weights[j] > 0.0 else 0.0
    for j in range(1, size):
        weights[j] *= 2.0
    remaining = beyond / total
    count = size
    while count > 1 and remaining + weights[count - 1] < tail:
        remaining += weights[count - 1]
        count -= 1
    return count


@numba.njit(cache=True)
def _bessel_size(z: float, tail: float) -> int:
    """An order past which Σ 2 I_j(z) e^{-z} < tail.

    I_j(z)e^{-z} decays like a Gaussian in j of variance z while j ≲ z, and like (z/2)^j/j! beyond; the sum of the two
    lengths is a safe bound for both regimes.
    """
    digits = -math.log(tail)
    return int(min(math.sqrt(2.0 * z * digits) + 1.2 * digits / math.log(2.0 + digits / (z + 1.0)), LONGEST)) + 6


@numba.njit(cache=True)
def _bessel_batch(z: Array, tail: Array, weights: Array, slopes: Array, count: NDArray[np.int64]) -> None:
    for s in range(z.shape[0]):
        count[s] = _bessel_weights(z[s], tail[s], weights[s], slopes[s])


def periodic_series(lengthscale: Array, period: Array, tail: Array) -> Series:
    """Series of PER (method (13)): exp(-2 sin²(πτ/p)/ℓ²) = e^{-z} Σ_j I_j(z) cos(2πjτ/p) with z = 1/ℓ².

    Args:
        lengthscale: ℓ, shape (S,).
        period: p, shape (S,).
        tail: largest total weight that may be dropped, shape (S,).
    """
    z = np.maximum(1.0 / lengthscale**2, 1e-60)  # the recurrence divides by z; the kernel is the constant 1 long before
    size = _bessel_size(float(z.max()), float(tail.min()))
    samples = z.shape[0]
    weights = np.empty((samples, size))
    dlog = np.zeros((2, samples, size))
    count = np.empty(samples, dtype=np.int64)
    _bessel_batch(z, tail, weights, dlog[0], count)
    dlog[0] *= -2.0 * z[:, None]  # dz/d log ℓ = -2z
    omega = 2.0 * np.pi / period
    domega = np.zeros((2, samples))
    domega[1] = -omega  # dω/d log p = -ω
    return Series(omega, count, weights, dlog, domega)


@numba.njit(cache=True)
def _gaussian_batch(
    exponent: Array, scale: Array, tail: Array, weights: Array, slopes: Array, count: NDArray[np.int64]
) -> None:
    size = weights.shape[1]
    for s in range(exponent.shape[0]):
        total = 0.0
        for j in range(size):
            weights[s, j] = (2.0 if j else 1.0) * scale[s] * math.exp(-exponent[s] * j * j)
            slopes[s, j] = 1.0 - 2.0 * exponent[s] * j * j
            total += weights[s, j]
        remaining = 0.0
        terms = size
        if 1.0 - total > max(tail[s], 1e-12):  # shorter than it needs to be (LONGEST): nothing can be spared
            remaining = 1.0
        while terms > 1 and remaining + weights[s, terms - 1] < tail[s]:
            remaining += weights[s, terms - 1]
            terms -= 1
        count[s] = terms


def gaussian_series(lengthscale: Array, span: float, tail: Array) -> Series:
    """Series of exp(-τ²/(2ℓ²)) on |τ| ≤ span (method (14)): repeated with a period so long that the copies do not
    matter.

    With period L = span + ℓ sqrt(-2 log(tail/5)) each of the two nearest copies adds less than a fifth of `tail`, which
    leaves half of it for the terms dropped. The weights are the Gaussian's own spectrum,
    w_j = 2 sqrt(2π) (ℓ/L) exp(-2π²j²ℓ²/L²). L depends on ℓ, but the series equals the kernel for every such L, so the
    derivative is taken at L fixed.
    """
    reach = span + lengthscale * np.sqrt(-2.0 * np.log(0.2 * tail))
    ratio = lengthscale / reach
    exponent = 2.0 * np.pi**2 * ratio**2
    digits = -np.log(0.5 * tail)
    size = int(min(np.sqrt((digits + 2.0) / exponent).max(), LONGEST)) + 3
    samples = lengthscale.shape[0]
    weights = np.empty((samples, size))
    dlog = np.empty((1, samples, size))
    count = np.empty(samples, dtype=np.int64)
    _gaussian_batch(exponent, math.sqrt(2.0 * math.pi) * ratio, 0.5 * tail, weights, dlog[0], count)
    return Series(2.0 * np.pi / reach, count, weights, dlog, np.zeros((1, samples)))


@numba.njit(cache=True)
def one_series(family: int, values: Array, span: float, tail: float) -> tuple[float, int, Array, Array, Array]:
    """ω, number of terms, weights (J,), d log weights (2, J) and dω (2,) of one θ; for compiled searches."""
    sizes = np.empty(1)
    tails = np.empty(1)
    counts = np.empty(1, dtype=np.int64)
    domega = np.zeros(2)
    if family == BESSEL:
        z = max(1.0 / values[0] ** 2, 1e-60)
        size = _bessel_size(z, tail)
        weights = np.empty(size)
        dlog = np.zeros((2, size))
        count = _bessel_weights(z, tail, weights, dlog[0])
        dlog[0] *= -2.0 * z
        omega = 2.0 * math.pi / values[1]
        domega[1] = -omega
        return omega, count, weights, dlog, domega
    reach = span + values[0] * math.sqrt(-2.0 * math.log(0.2 * tail))
    ratio = values[0] / reach
    exponents = sizes
    exponents[0] = 2.0 * math.pi**2 * ratio**2
    size = int(min(math.sqrt((2.0 - math.log(0.5 * tail)) / exponents[0]), LONGEST)) + 3
    table = np.empty((1, size))
    dlog = np.zeros((2, size))
    tails[0] = 0.5 * tail
    scale = np.full(1, math.sqrt(2.0 * math.pi) * ratio)
    _gaussian_batch(exponents, scale, tails, table, dlog[:1], counts)
    return 2.0 * math.pi / reach, counts[0], table[0], dlog, domega

"""Weights of cosine series, term by term: those of `fourier`, and one series at a time for compiled searches."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels.compiled.cached import compiled
from kerneltrail.kernels.families import BESSEL, LONGEST

Array = NDArray[np.float64]


@compiled()
def bessel_weights(z: float, tail: float, weights: Array, slopes: Array) -> int:
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


@compiled()
def bessel_size(z: float, tail: float) -> int:
    """An order past which Σ 2 I_j(z) e^{-z} < tail.

    I_j(z)e^{-z} decays like a Gaussian in j of variance z while j ≲ z, and like (z/2)^j/j! beyond; the sum of the two
    lengths is a safe bound for both regimes.
    """
    digits = -math.log(tail)
    return int(min(math.sqrt(2.0 * z * digits) + 1.2 * digits / math.log(2.0 + digits / (z + 1.0)), LONGEST)) + 6


@compiled()
def bessel_batch(z: Array, tail: Array, weights: Array, slopes: Array, count: NDArray[np.int64]) -> None:
    """`bessel_weights` for each z, as long as it needs by itself, and how many terms are kept; 0 beyond."""
    size = weights.shape[1]
    for s in range(z.shape[0]):
        own = min(bessel_size(z[s], tail[s]), size)
        count[s] = bessel_weights(z[s], tail[s], weights[s][:own], slopes[s][:own])
        for j in range(own, size):
            weights[s, j] = 0.0
            slopes[s, j] = 0.0


@compiled()
def gaussian_batch(
    exponent: Array, scale: Array, tail: Array, weights: Array, slopes: Array, count: NDArray[np.int64]
) -> None:
    """Weights scale · exp(-exponent · j²), doubled from j = 1 on, their slopes, and how many carry all but `tail`."""
    size = weights.shape[1]
    for s in range(exponent.shape[0]):
        total = 0.0
        for j in range(size):
            weights[s, j] = (2.0 if j else 1.0) * scale[s] * math.exp(-exponent[s] * j * j)
            slopes[s, j] = 1.0 - 2.0 * exponent[s] * j * j
            total += weights[s, j]
        remaining = 0.0
        kept = size
        if 1.0 - total > max(tail[s], 1e-12):  # shorter than it needs to be (LONGEST): nothing can be spared
            remaining = 1.0
        while kept > 1 and remaining + weights[s, kept - 1] < tail[s]:
            remaining += weights[s, kept - 1]
            kept -= 1
        count[s] = kept


@compiled()
def one_series(family: int, values: Array, span: float, tail: float) -> tuple[float, int, Array, Array, Array]:
    """ω, number of terms, weights (J,), d log weights (2, J) and dω (2,) of one θ; for compiled searches."""
    sizes = np.empty(1)
    tails = np.empty(1)
    counts = np.empty(1, dtype=np.int64)
    domega = np.zeros(2)
    if family == BESSEL:
        z = max(1.0 / values[0] ** 2, 1e-60)
        size = bessel_size(z, tail)
        weights = np.empty(size)
        dlog = np.zeros((2, size))
        count = bessel_weights(z, tail, weights, dlog[0])
        for j in range(size):  # a whole row at once takes seconds more to compile, for its error message
            dlog[0, j] *= -2.0 * z
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
    gaussian_batch(exponents, scale, tails, table, dlog[:1], counts)
    return 2.0 * math.pi / reach, counts[0], table[0], dlog, domega

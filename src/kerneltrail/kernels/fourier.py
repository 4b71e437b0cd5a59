"""Fourier coefficients of stationary kernels on one covariate: exact to tolerance, computed for many θ at once.

A stationary kernel k(τ) on a bounded range is a short cosine series, k(τ) = Σ_j w_j cos(jωτ) with w_j ≥ 0 and
Σ_j w_j = k(0) = 1. Since cos(jω(x-x')) = cos jωx cos jωx' + sin jωx sin jωx', the weights give features whose
inner product is the kernel (method (12)).

Weights are never normalised after truncation: what is dropped is what is lost, and it is below `tail`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels import compiled
from kerneltrail.kernels.families import LONGEST

Array = NDArray[np.float64]


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


def periodic_series(lengthscale: Array, period: Array, tail: Array) -> Series:
    """Series of PER (method (13)): exp(-2 sin²(πτ/p)/ℓ²) = e^{-z} Σ_j I_j(z) cos(2πjτ/p) with z = 1/ℓ².

    Args:
        lengthscale: ℓ, shape (S,).
        period: p, shape (S,).
        tail: largest total weight that may be dropped, shape (S,).
    """
    z = np.maximum(1.0 / lengthscale**2, 1e-60)  # the recurrence divides by z; the kernel is the constant 1 long before
    size = compiled.bessel_size(float(z.max()), float(tail.min()))
    samples = z.shape[0]
    weights = np.empty((samples, size))
    dlog = np.zeros((2, samples, size))
    count = np.empty(samples, dtype=np.int64)
    compiled.bessel_batch(z, tail, weights, dlog[0], count)
    dlog[0] *= -2.0 * z[:, None]  # dz/d log ℓ = -2z
    omega = 2.0 * np.pi / period
    domega = np.zeros((2, samples))
    domega[1] = -omega  # dω/d log p = -ω
    return Series(omega, count, weights, dlog, domega)


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
    compiled.gaussian_batch(exponent, math.sqrt(2.0 * math.pi) * ratio, 0.5 * tail, weights, dlog[0], count)
    return Series(2.0 * np.pi / reach, count, weights, dlog, np.zeros((1, samples)))

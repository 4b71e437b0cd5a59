"""The horseshoe's scales and their variational factors: half-Cauchy priors by inverse-gamma augmentation.

For one scale x = τ² or λ_i², with τ, λ_i ~ half-Cauchy(0, 1):

    x | φ ~ IG(½, 1/φ),  φ ~ IG(½, 1),   q(x) = LogNormal(m, v),  q(φ) = IG(1, b).

q(φ) has the coordinate update b = 1 + E[1/x] = 1 + exp(-m + v/2). IG(a, b) has density ∝ x^(-a-1) e^(-b/x).
"""

from __future__ import annotations

import numpy as np

from kerneltrail.methods.protocol import Array

EULER = 0.5772156649015329
"""γ: E[log φ] = log b + γ under IG(1, b)."""

LOG_PI = float(np.log(np.pi))


def best_rates(m: Array, v: Array) -> Array:
    """The coordinate update of q(φ): b = 1 + E[1/x]."""
    return 1.0 + np.exp(-m + 0.5 * v)


def log_normal_entropy(m: Array, v: Array) -> Array:
    """Entropy of LogNormal(m, v), v the variance of the logarithm: m + ½ log v + ½ log 2πe.

    The half before log v belongs there: the public code of the original leaves it out, and so overstates every spread.
    """
    return m + 0.5 * np.log(v) + 0.5 * (np.log(2.0 * np.pi) + 1.0)


def bound(m: Array, v: Array, b: Array) -> float:
    """E_q[log p(x|φ) + log p(φ)] + entropy of q(x) and of q(φ), summed over the scales: the ELBO but for the data."""
    inverse = np.exp(-m + 0.5 * v)  # E[1/x]
    log_phi = np.log(b) + EULER
    given = -0.5 * log_phi - 0.5 * LOG_PI - 1.5 * m - inverse / b
    prior = -0.5 * LOG_PI - 1.5 * log_phi - 1.0 / b
    entropy_phi = 1.0 + np.log(b) + 2.0 * EULER
    return float((given + prior + entropy_phi + log_normal_entropy(m, v)).sum())


def slopes(m: Array, v: Array, b: Array) -> tuple[Array, Array]:
    """Gradient of `bound` by m and by log v with b fixed; at the best b it is also that of the bound at its best b."""
    inverse = np.exp(-m + 0.5 * v) / b
    return -0.5 + inverse, 0.5 - 0.5 * v * inverse


def standard_draws(dimensions: int, pairs: int, seed: int) -> Array:
    """Fixed antithetic standard normal draws, (2·pairs, dimensions), each coordinate of variance exactly 1."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((pairs, dimensions))
    half /= np.sqrt(np.mean(half**2, axis=0))
    return np.concatenate([half, -half])

"""Draws of hyperparameters from a mixture, with its density: what importance sampling needs of a proposal.

Coordinates are whitened by the prior: it is N(0, I), and one unit is one prior standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.numerics import LOG_2PI

Array = NDArray[np.float64]

TAILS = 5.0
"""Degrees of freedom of a component: its tails are heavier than those of any posterior under a Normal prior."""

WIDER = 1.3
"""By how much a component's covariance exceeds that of the mode it stands at."""

FLATTEST = 0.5
"""Least curvature that is believed of a mode, relative to the prior's: a posterior is hardly ever wider than that."""


@dataclass(frozen=True)
class Component:
    """One part of a proposal: a multivariate t with `TAILS` degrees of freedom, or a Normal.

    Attributes:
        centre: (k,).
        lower: lower Cholesky factor of the scale matrix, (k, k).
        tails: degrees of freedom; infinite for a Normal.
        draws: how many draws come from it.
    """

    centre: Array
    lower: Array
    tails: float
    draws: int

    @classmethod
    def prior(cls, k: int, draws: int) -> Component:
        """The prior itself."""
        return cls(np.zeros(k), np.eye(k), math.inf, draws)

    @classmethod
    def at_mode(cls, mode: Array, precision: Array, draws: int) -> Component:
        """Around a mode with the curvature of the log posterior there, all whitened."""
        values, vectors = np.linalg.eigh(precision)
        covariance = (vectors * (WIDER / np.maximum(values, FLATTEST))) @ vectors.T
        return cls(mode, np.linalg.cholesky(covariance), TAILS, draws)

    @cached_property
    def _whitening(self) -> Array:
        """L⁻ᵀ: turns differences from the centre, as rows, into standard ones."""
        return np.asarray(np.linalg.inv(self.lower).T, dtype=np.float64)

    def log_density(self, points: Array) -> Array:
        """At points (S, k), (S,)."""
        k = len(self.centre)
        standard = (points - self.centre) @ self._whitening
        square = np.einsum("sk,sk->s", standard, standard)
        log_scale = float(np.log(np.diagonal(self.lower)).sum())
        if math.isinf(self.tails):
            return -0.5 * square - log_scale - 0.5 * k * LOG_2PI
        both = 0.5 * (self.tails + k)
        constant = math.lgamma(both) - math.lgamma(0.5 * self.tails) - 0.5 * k * math.log(self.tails * math.pi)
        return constant - log_scale - both * np.log1p(square / self.tails)

    def sample(self, rng: np.random.Generator) -> Array:
        """Its draws, (draws, k)."""
        standard = rng.standard_normal((self.draws, len(self.centre)))
        if not math.isinf(self.tails):
            standard *= np.sqrt(self.tails / rng.chisquare(self.tails, self.draws))[:, None]
        return self.centre + standard @ self.lower.T


def log_sum(components: Sequence[Component], points: Array) -> Array:
    """Log of Σ n_j q_j at points, (S,): n_j draws come from component j, of density q_j.

    Less log Σ n_j it is the log density of the mixture: the balance heuristic of multiple importance sampling.
    """
    log = np.stack([each.log_density(points) + math.log(each.draws) for each in components])
    return log_total(log)


def log_total(log: Array) -> Array:
    """Log of the sum of exponentials of each column of (S, T), (T,): SciPy's, without what that checks on the way.

    >>> log_total(np.array([[0.0, -np.inf], [np.log(3.0), -np.inf]])).round(3).tolist()
    [1.386, -inf]
    """
    top = log.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(log - top).sum(axis=0)))


def log_normal_density(points: Array, mean: Array | float = 0.0, variance: Array | float = 1.0) -> Array:
    """Log density of independent Normals at points (S, k), (S,)."""
    k = points.shape[1]
    square = ((points - mean) ** 2 / variance).sum(axis=1)
    return np.asarray(-0.5 * square - 0.5 * float(np.log(np.broadcast_to(variance, k)).sum()) - 0.5 * k * LOG_2PI)


def effective_size(log_weights: Array) -> Array:
    """(Σw)²/Σw² of each column of log weights (S, T), (T,); 0 where no draw has weight.

    >>> effective_size(np.log([[1.0, 1.0], [1.0, 1e-9]])).round(3).tolist()
    [2.0, 1.0]
    """
    top = log_weights.max(axis=0)
    weights = np.exp(log_weights - np.where(np.isfinite(top), top, 0.0))
    squares = (weights**2).sum(axis=0)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0))

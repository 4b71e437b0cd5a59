"""The population mean: one ridge regression on all training rows, so that nobody starts from nothing (SPEC §10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward

Array = NDArray[np.float64]

PENALTIES = tuple(float(p) for p in np.logspace(-2, 5, 15))
"""Ridge penalties tried, in units of one row's noise per squared unit of a scaled covariate."""


@dataclass(frozen=True, eq=False)
class PopulationMean:
    """β₀ + β'z (+ a·β_a'[1, φ(z)]) of scaled rows; a `Mean` of a frame.

    Attributes:
        weights: constant first, then the covariates in order, then the action's.
        covariates: columns of X.
        reward: whose expert features multiply the action, or None.
        penalty: ridge penalty, on everything but the constant.
    """

    weights: Array
    covariates: tuple[str, ...]
    reward: Reward | None
    penalty: float

    @classmethod
    def train(cls, users: Sequence[User], reward: Reward | None) -> PopulationMean:
        """Fit on scaled training users; the penalty is the best of `PENALTIES` with each user left out in turn."""
        users = [user for user in users if user.rows]
        if not users:
            raise DataError("a population mean needs at least one training row")
        names = users[0].covariates
        designs = [design(user.X, names, reward, user.action) for user in users]
        grams = [b.T @ b for b in designs]
        sides = [b.T @ user.y for b, user in zip(designs, users, strict=True)]
        gram, side = np.sum(grams, axis=0), np.sum(sides, axis=0)

        def error(penalty: float) -> float:
            total = 0.0
            for b, g, s, user in zip(designs, grams, sides, users, strict=True):
                total += float(((user.y - b @ ridge(gram - g, side - s, penalty)) ** 2).sum())
            return total

        best = min(PENALTIES, key=error) if len(users) > 1 else 1.0
        return cls(ridge(gram, side, best), names, reward, best)

    @classmethod
    def constant(cls, users: Sequence[User]) -> PopulationMean:
        """The mean of all training rows, whatever the covariates."""
        weights = np.zeros(1 + len(users[0].covariates))
        weights[0] = np.concatenate([user.y for user in users]).mean()
        return cls(weights, users[0].covariates, None, float("inf"))

    def at(self, X: Array, action: Array | None) -> Array:
        """The mean at scaled rows."""
        return design(X, self.covariates, self.reward, action) @ self.weights


def design(X: Array, covariates: tuple[str, ...], reward: Reward | None, action: Array | None) -> Array:
    """[1, z, a, a·φ(z)] for each row; without a reward model [1, z]."""
    parts = [np.ones((len(X), 1)), X]
    if reward is not None:
        if action is None:
            raise DataError("the population mean has the action's effect in it, so it needs the action")
        parts.append(np.asarray(action, dtype=np.float64)[:, None] * reward.contexts(X, covariates))
    return np.hstack(parts)


def ridge(gram: Array, side: Array, penalty: float) -> Array:
    """The weights β of min |y - Bβ|² + penalty·|β without the constant|², from B'B and B'y."""
    loaded = gram + penalty * np.diag(np.r_[0.0, np.ones(len(gram) - 1)])
    return np.asarray(scipy.linalg.lstsq(loaded, side)[0])

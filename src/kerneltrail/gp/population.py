"""The population: a ridge regression on all training rows (method (34)), and how far users lie from it.

So nobody starts from nothing, and what is said of somebody without rows is as wide as users differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.gp.reward import Reward

Array = NDArray[np.float64]

ROUNDS = 200
"""Most rounds of EM: each costs next to nothing, and the likelihood never falls."""

PENALTIES = tuple(float(p) for p in np.logspace(-2, 5, 15))
"""Ridge penalties tried, in units of one row's noise per squared unit of a scaled covariate."""


@dataclass(frozen=True, eq=False)
class PopulationMean:
    """β₀ + β'z (+ a·β_a'[1, φ(z)]) of scaled rows; what users vary around.

    Attributes:
        weights: constant first, then the covariates in order, then the action's.
        covariates: columns of X.
        reward: whose expert features multiply the action, if it has one; or None.
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

    def centred(self, user: User) -> User:
        """A scaled user with the mean subtracted from the target."""
        return user.with_y(user.y - self.at(user.X, user.action)) if user.rows else user

    def advantage(self, X: Array) -> Array:
        """What the action adds to the mean at scaled rows; 0 where there is no action."""
        if self.reward is None or not self.reward.acts:
            return np.zeros(len(X))
        return self.reward.contexts(X, self.covariates) @ self.weights[1 + len(self.covariates) :]


def spread(users: Sequence[User], reward: Reward) -> Reward:
    """The reward model with the variances of its weights between users, learnt from scaled users who are centred.

    EM for y_m = B_m w_m + ε with w_m ~ N(0, diag(v)) (method (35)). E: each user's posterior of w_m. M: v = (v₀ + Σ_m
    E[w_m²]) / (M + 1), where v₀ are the reward model's own, counted as one user's, so that few users do not end at
    zero; σ² is the mean squared residual. The baseline's composition is not in it: what users share of that is in the
    mean already.
    """
    known = [user for user in users if user.rows]
    if not known:
        raise DataError("the spread of a population needs at least one training row")
    blocks = [(reward.block(u.X, u.covariates, _action_of(u) if reward.acts else None).features, u.y) for u in known]
    before = reward.weight_variances
    v, rows = before, sum(len(y) for _, y in blocks)
    noise = max(float(sum((y**2).sum() for _, y in blocks)) / rows, 1e-12)
    for _ in range(ROUNDS):
        squares, residual = before.copy(), 0.0
        for features, y in blocks:
            # (diag(1/v) + B'B/σ²)⁻¹, written so that a small v does no harm.
            root = np.sqrt(v)
            inner = np.eye(len(v)) + (root[:, None] * (features.T @ features) * root) / noise
            covariance = root[:, None] * np.linalg.inv(inner) * root
            mean = covariance @ (features.T @ y) / noise
            squares += mean**2 + np.diagonal(covariance)
            residual += float(((y - features @ mean) ** 2).sum())
            residual += float(np.einsum("ij,jk,ik->", features, covariance, features))
        last, v = v, squares / (len(blocks) + 1)
        noise = max(residual / rows, 1e-12)
        if np.allclose(v, last, rtol=1e-6, atol=0.0):
            break
    return replace(reward, variances=tuple(float(each) for each in v))


def _action_of(user: User) -> Array:
    if user.action is None:
        raise DataError(f"a reward model needs an action column, but user {user.name!r} has no actions")
    return user.action


def design(X: Array, covariates: tuple[str, ...], reward: Reward | None, action: Array | None) -> Array:
    """[1, z, a, a·φ(z)] for each row; without an action's advantage [1, z]."""
    parts = [np.ones((len(X), 1)), X]
    if reward is not None and reward.acts:
        if action is None:
            raise DataError("the population mean has the action's effect in it, so it needs the action")
        parts.append(np.asarray(action, dtype=np.float64)[:, None] * reward.contexts(X, covariates))
    return np.hstack(parts)


def ridge(gram: Array, side: Array, penalty: float) -> Array:
    """The weights β of min |y - Bβ|² + penalty·|β without the constant|², from B'B and B'y."""
    loaded = gram + penalty * np.diag(np.r_[0.0, np.ones(len(gram) - 1)])
    return np.asarray(scipy.linalg.lstsq(loaded, side)[0])

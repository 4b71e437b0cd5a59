"""The population: a ridge regression on all training rows (method (34)), and how far users lie from it.

So nobody starts from nothing, and what is said of somebody without rows is as wide as users differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp.mixed import MixedModel, Sums
from kerneltrail.gp.reward import Reward

Array = NDArray[np.float64]

PENALTIES = tuple(float(p) for p in np.logspace(-2, 5, 15))
"""Ridge penalties tried, in units of one row's noise per squared unit of a scaled covariate."""

BUMPS = 6
"""Gaussian bumps of which the curve of one covariate is made where it is learnt by linear weights."""

PLACES = np.linspace(-0.5, 1.5, 65)
"""Places at which the curve of a covariate is known, over the pilot users' range and half of it on either side; between
them it is straight."""

MOST_USERS = 120
"""Users from whom it is learnt how much effects differ, and the shape of what they share; a variance is then known to
about 13 %."""

WIDTH = 0.25
"""Standard deviation of a bump, in units of the pilot users' range."""


@dataclass(frozen=True, eq=False)
class PopulationMean:
    """β₀ + β'z (+ a·β_a'[1, φ(z)]) (+ Σ_j s_j(z_j)) of scaled rows (method (34), (44)); what users vary around.

    Attributes:
        weights: constant first, then the covariates in order, then the action's.
        covariates: columns of X.
        reward: whose expert features multiply the action, if it has one; or None.
        penalty: ridge penalty, on everything but the constant and the curves.
        curves: values of the curve s_j of each covariate at `PLACES`, (d, 65); None for straight lines alone. Beyond
            them a curve stays as it is at its end, and its line goes on.
        between: variance between users, around this mean, of a covariate's slope and of the weight of each of its
            bumps, (d, 2); None where nobody learnt it. It changes no prediction: it says how sure a statement about one
            user is that rests on the others alone.
        level: what a user's covariates say of how high the user's rows lie, lines and curves without an action; None
            for nothing. Who walks more may be somebody who lives elsewhere: what differs between users is not what
            changes for one of them, so it is no part of the rest (method (73)).
        scatter: variance, within a user, of what single rows say of the level.
        own: prior covariance of a new user's weights around these, (q, q); None where nobody learnt it with them. A
            reward model takes it over (`own_of`), and files have it there.
    """

    weights: Array
    covariates: tuple[str, ...]
    reward: Reward | None
    penalty: float
    curves: Array | None = None
    between: Array | None = None
    level: PopulationMean | None = None
    scatter: float = 0.0
    own: Array | None = None

    @classmethod
    def train(cls, users: Sequence[User], reward: Reward | None) -> PopulationMean:
        """Straight lines, fitted on scaled training users; the penalty is the best with each user left out in turn."""
        users = [user for user in users if user.rows]
        if not users:
            raise DataError("a population mean needs at least one training row")
        names = users[0].covariates
        sums = Sums.of([(design(user.X, names, reward, user.assignment), user.y) for user in users])

        def error(penalty: float) -> float:
            return float(sums.errors(ridge_left_out(sums, penalty)).sum())

        best = 1.0 if len(users) == 1 else min(PENALTIES, key=error)
        return cls(ridge(sums.gram.sum(axis=0), sums.side.sum(axis=0), best), names, reward, best)

    @classmethod
    def constant(cls, users: Sequence[User]) -> PopulationMean:
        """The mean of all training rows, whatever the covariates."""
        weights = np.zeros(1 + len(users[0].covariates))
        weights[0] = np.concatenate([user.y for user in users]).mean()
        return cls(weights, users[0].covariates, None, float("inf"))

    def at(self, X: Array, action: Assignment | Array | None) -> Array:
        """The mean at scaled rows."""
        mean = design(X, self.covariates, self.reward, action) @ self.weights
        for j in self._bent:
            mean += self.curve(j, X[:, j])
        return mean

    @cached_property
    def _bent(self) -> tuple[int, ...]:
        """The covariates that have a curve besides their line."""
        return () if self.curves is None else tuple(np.flatnonzero(self.curves.any(axis=1)).tolist())

    def curve(self, j: int, x: Array) -> Array:
        """The curve of covariate j, without its line, at scaled values x, (g,)."""
        return np.zeros(len(x)) if self.curves is None else np.interp(x, PLACES, self.curves[j])

    def along(self, j: int, x: Array) -> Array:
        """What the mean gains as covariate j alone takes the scaled values x, (g,), up to a constant."""
        return self.weights[1 + j] * x + self.curve(j, x)

    def bends(self, j: int) -> bool:
        """Whether covariate j has a curve besides its line."""
        return j in self._bent

    def difference(self, j: int, x: Array, z: Array) -> Array:
        """Prior covariance of how far a user's effect of covariate j is from the mean's, between values x and z."""
        if self.between is None:
            return np.zeros((len(x), len(z)))
        shapes = bumps(x[:, None], BUMPS) @ bumps(z[:, None], BUMPS).T
        return self.between[j, 0] * np.multiply.outer(x, z) + self.between[j, 1] * shapes

    def own_of(self, reward: Reward) -> Reward | None:
        """The reward model with slopes of all covariates, whose weights differ as `own` says; None where it cannot."""
        slopes = replace(reward, slopes=self.covariates, variances=None, covariance=None)
        d, actions = len(self.covariates), len(self.weights) - 1 - len(self.covariates)
        order = [*range(1 + d, 1 + d + actions), *range(1, 1 + d)]
        order = [0, *order] if slopes.constant_variance > 0 else order
        if self.own is None or len(order) != len(slopes.names):
            return None
        covariance = self.own[np.ix_(order, order)]
        return replace(slopes, covariance=tuple(map(tuple, 0.5 * (covariance + covariance.T))))

    def moved(self, reward: Reward, weights: Array) -> PopulationMean:
        """The mean with weights of a reward model's features, slopes among them, added to its own."""
        moved = self.weights.copy()
        d, actions = len(self.covariates), 0
        for name, weight in zip(reward.names, weights, strict=True):
            if name == "constant":
                moved[0] += weight
            elif name.startswith("slope×"):
                moved[1 + self.covariates.index(name.removeprefix("slope×"))] += weight
            else:
                moved[1 + d + actions] += weight
                actions += 1
        return replace(self, weights=moved)

    def level_at(self, X: Array) -> Array:
        """What the covariates of each scaled row say of its user's level, (n,)."""
        return np.zeros(len(X)) if self.level is None else self.level.at(X, None)

    def centred(self, user: User) -> User:
        """A scaled user with the mean subtracted from the target, but not what is said of the level."""
        return user.with_y(user.y - self.at(user.X, user.assignment)) if user.rows else user

    def levelled(self, user: User) -> User:
        """A scaled user with the mean subtracted, and what all rows together say of the level."""
        centred = self.centred(user)
        return centred.with_y(centred.y - self.level_at(user.X).mean()) if user.rows and self.level else centred

    def advantage(self, X: Array) -> Array:
        """What the action adds to the mean at scaled rows; 0 where there is no action."""
        if self.reward is None or not self.reward.acts:
            return np.zeros(len(X))
        contexts, start = self.reward.contexts(X, self.covariates), 1 + len(self.covariates)
        return contexts @ self.weights[start : start + contexts.shape[1]]


def spread(users: Sequence[User], reward: Reward) -> Reward:
    """The reward model with the variances of its weights between users, learnt from scaled users who are centred.

    The baseline's composition is not in it: what users share of that is in the mean already.
    """
    known = [user for user in users if user.rows]
    if not known:
        raise DataError("the spread of a population needs at least one training row")
    blocks = [(reward.block(u.X, u.covariates, _assigned(u) if reward.acts else None).features, u.y) for u in known]
    shared = np.array([-1 if name == "constant" else 0 for name in reward.names])
    between = MixedModel.fit(Sums.of(blocks), shared=shared, scale=size_of(known)).between
    return replace(reward, variances=tuple(float(each) for each in between))


def size_of(users: Sequence[User]) -> float:
    """Root mean square of the users' targets: how far users may differ is counted in it."""
    squares = sum(float((user.y**2).sum()) for user in users) / sum(user.rows for user in users)
    return max(float(np.sqrt(squares)), 1e-6)


def centred_where_logged(reward: Reward, users: Sequence[User]) -> Reward:
    """The reward model in the centred coding (method (41)) where all users logged the action's probability.

    Its typical probability is their average over the rows at which somebody could act.
    """
    known = [user for user in users if user.rows]
    if not reward.acts or reward.coding == "plain" or not known or any(user.probability is None for user in known):
        return reward
    logged = [user.probability[_could(user)] for user in known if user.probability is not None]
    values = np.concatenate(logged)
    return replace(reward, typical=float(values.mean()) if len(values) else 0.5)


def _could(user: User) -> NDArray[np.bool_]:
    return np.ones(user.rows, dtype=bool) if user.availability is None else user.availability > 0


def effects_between(users: Sequence[User]) -> Array:
    """How much effects differ between centred users: variances of each covariate's slope and bumps, (d, 2).

    Of many users some are asked, spread over all: they say it well enough, and each has a matrix of all bumps.
    """
    known = [user for user in users if user.rows]
    d = len(known[0].covariates)
    some = some_of(known)
    blocks = [(np.hstack([np.ones((user.rows, 1)), user.X, bumps(user.X, BUMPS)]), user.y) for user in some]
    shapes = np.repeat(np.arange(d), BUMPS)
    fitted = MixedModel.fit(
        Sums.of(blocks),
        own=np.concatenate([[0], 1 + np.arange(d), 1 + d + shapes]),
        shared=np.concatenate([[-1], np.zeros(d, dtype=np.int64), np.ones(d * BUMPS, dtype=np.int64)]),
        scale=size_of(some),
        quick=True,
    )
    # The average itself is of as many users as there are.
    return np.column_stack([fitted.between[1 : 1 + d], fitted.between[1 + d :: BUMPS]]) * (1.0 + 1.0 / len(known))


def some_of(users: Sequence[User]) -> Sequence[User]:
    """At most `MOST_USERS` of the users, spread over all."""
    return users[:: -(-len(users) // MOST_USERS)]


def _assigned(user: User) -> Assignment:
    if user.assignment is None:
        raise DataError(f"a reward model needs an action column, but user {user.name!r} has no actions")
    return user.assignment


def design(X: Array, covariates: tuple[str, ...], reward: Reward | None, action: Assignment | Array | None) -> Array:
    """[1, z] for each row, and the action's features where it has an advantage."""
    parts = [np.ones((len(X), 1)), X]
    if reward is not None and reward.acts:
        if action is None:
            raise DataError("the population mean has the action's effect in it, so it needs the action")
        parts.append(reward.coded(X, covariates, action))
    return np.hstack(parts)


def bumps(X: Array, count: int) -> Array:
    """Gaussian bumps over the pilot users' range of every covariate, (n, d·count): features of curves.

    Beyond the range they vanish, and the lines are left.
    """
    centres = np.linspace(0.0, 1.0, count)
    return np.exp(-0.5 * ((X[:, :, None] - centres) / WIDTH) ** 2).reshape(len(X), X.shape[1] * count)


def ridge(gram: Array, side: Array, penalty: float | Array) -> Array:
    """The weights β of min |y - Bβ|² + Σ_k penalty_k β_k², from B'B and B'y; one penalty leaves the constant alone."""
    return np.asarray(scipy.linalg.lstsq(gram + np.diag(_loads(len(gram), penalty)), side)[0])


def ridge_left_out(sums: Sums, penalty: float | Array) -> Array:
    """The weights of `ridge` without each user in turn, (M, q)."""
    gram, side = sums.gram.sum(axis=0) - sums.gram, sums.side.sum(axis=0) - sums.side
    loads = _loads(gram.shape[1], penalty)
    try:
        return np.asarray(np.linalg.solve(gram + np.diag(loads), side[..., None])[..., 0])
    except np.linalg.LinAlgError:  # a user is all that there is, or what varies varies for one alone
        return np.array([ridge(g, s, loads) for g, s in zip(gram, side, strict=True)])


def _loads(q: int, penalty: float | Array) -> Array:
    return np.r_[0.0, np.full(q - 1, penalty)] if np.ndim(penalty) == 0 else np.asarray(penalty)

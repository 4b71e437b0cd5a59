"""Hyperparameters of a function that users share, and of one for each user, learnt from all users (method §10.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.data.arrays import deviations
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp.quasi_newton import minimise
from kerneltrail.gp.reward import Reward
from kerneltrail.gp.two_level import LevelRows, Levels, Slopes, TwoLevelEvidence

Array = NDArray[np.float64]

NoiseOf = Literal["user", "shared"]

PRIORS: Mapping[str, tuple[float, float]] = {
    "population": (float(np.log(0.02)), 2.5),
    "user": (float(np.log(0.01)), 2.5),
    "lengthscale": (float(np.log(2.0)), 0.7),
    "noise": (float(np.log(0.7)), 1.0),
}
"""Mean and standard deviation of the logarithm of each kind of hyperparameter, for covariates and a target of variance
1: a line or a curve explains a hundredth of the variance, give or take a factor of ten, and bends once or twice over
the range."""

SPREAD = 0.4
"""Standard deviation of users' log noise before it is learnt; it counts as one user's."""
LEAST_SPREAD = 0.1
"""However alike a few training users are, nobody's noise is sure to be theirs."""
ROUNDS = 3
"""Searches, each with the noises of users that the one before found."""
VARIANCES = (float(np.log(1e-5)), float(np.log(10.0)))
"""Bounds of the log of a variance between users where it is learnt by itself, for a target of variance 1."""
FACTOR, GRID = 6.0, 49
"""Logarithm of the most by which such variances may be larger or smaller in an interval, and the places tried."""
MOST_USERS = 30
"""Users from whom `learn_from_some` learns hyperparameters; a search takes as long as there are users."""


@dataclass(frozen=True, eq=False)
class Units:
    """Mean and standard deviation over all training rows, of each covariate and of the target."""

    centre: Array
    scale: Array
    target_centre: float
    target_scale: float

    @classmethod
    def of(cls, users: Sequence[User]) -> Units:
        """From training users; what does not vary keeps its size."""
        X, y = np.concatenate([user.X for user in users]), np.concatenate([user.y for user in users])
        scale = deviations(X)
        return cls(X.mean(axis=0), np.where(scale > 0.0, scale, 1.0), float(y.mean()), float(deviations(y)) or 1.0)


def inputs_of(
    X: Array, covariates: tuple[str, ...], units: Units, reward: Reward | None, action: Assignment | Array | None
) -> tuple[Array, Array]:
    """[1, z] and the action's features at scaled rows, and the standardised covariates z."""
    z = (X - units.centre) / units.scale
    parts = [np.ones((len(X), 1)), z]
    if reward is not None and reward.acts:
        parts.append(reward.coded(X, covariates, action))
    return np.hstack(parts), z


def level_rows(user: User, covariates: tuple[str, ...], units: Units, reward: Reward | None) -> LevelRows:
    """A scaled user's rows in standardised units."""
    action = user.assignment if user.rows else np.empty(0)
    if reward is not None and reward.acts and action is None:
        raise DataError(f"a reward model needs an action column, but user {user.name!r} has no actions")
    lines, z = inputs_of(user.X, covariates, units, reward, action)
    return LevelRows(lines, z, (user.y - units.target_centre) / units.target_scale)


@dataclass(frozen=True, eq=False)
class Learnt:
    """Hyperparameters at their optimum, each user's deviation in log noise, and what `HierarchicalGP` has of noise."""

    levels: Levels
    deviations: Array
    spread: float
    worth: float
    log_evidence: float


def prior_of(lines: int, d: int) -> tuple[Array, Array]:
    """Mean and standard deviation of all hyperparameters' logarithms, in the order of `Levels.from_vector`."""
    kinds = ["population"] * (lines + d) + ["user"] * (lines + d) + ["lengthscale"] * d + ["noise"]
    mean, sd = np.array([PRIORS[kind] for kind in kinds]).T
    return mean, sd


def learn(users: Sequence[LevelRows], *, noise: NoiseOf) -> Learnt:
    """Hyperparameters that maximise log p(y|θ) + log p(θ) over all users together.

    With a noise of everybody's own, searches alternate with `noises_of`.
    """
    evidence = TwoLevelEvidence(users)
    q, d = users[0].lines.shape[1], users[0].X.shape[1]
    mean, sd = prior_of(q, d)
    deviations, spread, worth = np.zeros(len(users)), 0.0, 1.0
    start = np.zeros((1, len(mean)))

    def objective(points: Array) -> tuple[Array, Array]:
        values, gradients = np.full(len(points), np.inf), np.zeros_like(points)
        for i, point in enumerate(points):
            try:
                slopes = evidence(mean + sd * point, deviations)
            except (NumericalError, np.linalg.LinAlgError):
                continue
            values[i] = 0.5 * float(point @ point) - slopes.log
            gradients[i] = point - sd * slopes.gradient
        return values, gradients

    for _ in range(ROUNDS):
        optimum = minimise(objective, start, gradient_tolerance=1e-2, value_tolerance=1e-6)
        if not np.isfinite(optimum.value[0]):
            raise NumericalError("the evidence of a function that users share, and one of each, is not finite")
        start = optimum.point
        theta = mean + sd * start[0]
        slopes = evidence(theta, deviations)
        if noise == "shared":
            break
        before = deviations
        deviations, spread, worth = noises_of(slopes, deviations)
        if np.abs(deviations - before).max() < 0.02:
            break
    levels = Levels.from_vector(theta, q)
    return Learnt(levels, deviations, spread, worth, slopes.log)


def level_variance(users: Sequence[LevelRows], learnt: Learnt) -> float:
    """Variance of users' levels, the first line, that these rows ask for if all else is as it was learnt."""
    posterior, mode = _posterior_of(users, learnt, [0]), float(np.log(learnt.levels.user[0]))
    least, most = (end - mode for end in VARIANCES)
    found = scipy.optimize.minimize_scalar(lambda log: -posterior(log), bounds=(least, most), options={"xatol": 0.05})
    return float(np.exp(mode + found.x))


def factor_interval(users: Sequence[LevelRows], learnt: Learnt, groups: Sequence[int]) -> tuple[float, float]:
    """Ends of the 90 % interval of a factor of the variances between users of some groups, all else being as learnt."""
    posterior, grid = _posterior_of(users, learnt, groups), np.linspace(-FACTOR, FACTOR, GRID)
    logs = np.array([posterior(log) for log in grid.tolist()])
    heights = np.exp(logs - logs.max())
    below = np.r_[0.0, np.cumsum(0.5 * (heights[1:] + heights[:-1]))]
    low, high = np.interp((0.05, 0.95), below / below[-1], grid).tolist()
    return float(np.exp(low)), float(np.exp(high))


def _posterior_of(users: Sequence[LevelRows], learnt: Learnt, groups: Sequence[int]) -> Callable[[float], float]:
    """Log posterior density of the log factor of some groups' variances between users, all else being as learnt."""
    step = max(-(-len(users) // MOST_USERS), 1)
    evidence, theta = TwoLevelEvidence(users[::step]), learnt.levels.vector
    chosen = len(learnt.levels.population) + np.asarray(groups)
    mean, sd = PRIORS["user"]

    def log_density(log: float) -> float:
        moved = theta.copy()
        moved[chosen] += log
        prior = float((((moved[chosen] - mean) / sd) ** 2).sum())
        try:
            return evidence(moved, learnt.deviations[::step]).log - 0.5 * prior
        except (NumericalError, np.linalg.LinAlgError):  # as in a search: such variances are not the best ones
            return -np.inf

    return log_density


def learn_from_some(users: Sequence[LevelRows]) -> Learnt:
    """`learn` from at most `MOST_USERS` of the users, spread over all, but with everybody's noise."""
    some = users[:: -(-len(users) // MOST_USERS)]
    learnt = learn(some, noise="shared" if len(some) < 3 else "user")
    if len(some) == len(users):
        return learnt
    none = np.zeros(len(users))
    deviations, *_ = noises_of(TwoLevelEvidence(users)(learnt.levels.vector, none), none)
    return replace(learnt, deviations=deviations)


def noises_of(slopes: Slopes, deviations: Array) -> tuple[Array, float, float]:
    """Users' deviations in log noise, their standard deviation s, and the worth of a row.

    The log of a variance over n rows has the sampling variance (κ - 1)/n, where κ is the rows' kurtosis: 2/n for a
    Normal. What users' log noises vary by beyond that is s² (the method of moments), and each is shrunk accordingly.
    """
    worth = min(2.0 / max(slopes.kurtosis - 1.0, 1e-3), 1.0)
    sampling = 2.0 / (worth * np.maximum(slopes.freedom, 1.0))
    asked = deviations + np.log(np.maximum(slopes.ratio, 1e-6))
    asked -= np.average(asked, weights=1.0 / (sampling + SPREAD**2))
    variance = (float(asked @ asked) + SPREAD**2) / len(asked) - float(sampling.mean())
    variance = max(variance, LEAST_SPREAD**2)
    return asked * (variance / (variance + sampling)), float(np.sqrt(variance)), worth

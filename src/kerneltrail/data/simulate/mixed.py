"""Users who differ by degrees: everybody has an intercept and slopes of their own around the population's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.simulate.truth import as_rng
from kerneltrail.data.user import User
from kerneltrail.errors import DataError


@dataclass(frozen=True)
class MixedTruth:
    """y = w_m0 + Σ_j w_mj x_j + ε, with w_m ~ N(weights, diag(between)): a linear mixed model.

    Attributes:
        weights: of the population, the intercept first, (1 + d,).
        between: variance of each weight between users, (1 + d,).
        noise: variance of ε; where it differs between users, its median.
        df: degrees of freedom of ε, which is Student's t scaled to that variance; infinite for a Normal.
        noise_spread: standard deviation of the log of ε's variance between users.
    """

    weights: tuple[float, ...] = (10.0, 1.0, -0.5, 0.0)
    between: tuple[float, ...] = (1.0, 0.5, 0.0, 0.0)
    noise: float = 4.0
    df: float = float("inf")
    noise_spread: float = 0.0

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.between) or len(self.weights) < 2:
            raise DataError("a mixed model needs an intercept and at least one slope, each with its variance")
        if min(self.between) < 0 or not self.noise > 0 or not self.df > 2 or not self.noise_spread >= 0:
            raise DataError("variances between users must not be negative, noise above 0, degrees of freedom above 2")


@dataclass(frozen=True)
class MixedSimulation:
    """Simulated users, the truth of the population, and the weights and the noise variance of each user by name."""

    train: Cohort
    test: Cohort
    truth: MixedTruth
    weights: Mapping[str, tuple[float, ...]]
    noises: Mapping[str, float]


def mixed(
    train: int = 15,
    test: int = 10,
    seed: int | np.random.Generator = 0,
    *,
    truth: MixedTruth | None = None,
    batches: tuple[int, ...] = (20, 20, 20, 20),
) -> MixedSimulation:
    """Users with random intercepts and slopes; covariates x1, x2, … are independent and standard Normal.

    The target is standardised by the training users, as that of a table is by default.

    >>> simulation = mixed(3, 2, batches=(5, 5))
    >>> simulation.test["test-01"].rows, len(simulation.weights)
    (10, 5)
    """
    if train < 1 or test < 1 or not batches or min(batches) < 1:
        raise DataError("a simulation needs at least one user on each side, and one row a batch")
    true, rng = truth or MixedTruth(), as_rng(seed)
    names = tuple(f"x{j}" for j in range(1, len(true.weights)))
    ends, users, weights, noises = tuple(accumulate(batches)), [], {}, {}
    for label, size in (("train", train), ("test", test)):
        for number in range(size):
            # A stream for each user, so that one more row does not change who comes next.
            stream = np.random.default_rng(rng.integers(0, 2**63, size=4))
            name = f"{label}-{number + 1:0{max(2, len(str(size)))}d}"
            w = np.array(true.weights) + np.sqrt(true.between) * stream.standard_normal(len(names) + 1)
            X = stream.standard_normal((ends[-1], len(names)))
            unit = _standard(true, ends[-1], stream)
            # Drawn last, so that users who differ in it are otherwise the same.
            noises[name] = true.noise * float(np.exp(true.noise_spread * stream.standard_normal()))
            y = w[0] + X @ w[1:] + np.sqrt(noises[name]) * unit
            weights[name] = tuple(w.tolist())
            users.append(User(name, names, X, y, ends))
    cohort = Cohort.from_users(users, target="y", target_scaling="standard")
    parts = cohort.split(test=[user.name for user in users[train:]])
    return MixedSimulation(*parts, true, FrozenDict(weights), FrozenDict(noises))


def _standard(truth: MixedTruth, rows: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Noise of variance 1."""
    if np.isinf(truth.df):
        return rng.standard_normal(rows)
    return np.sqrt((truth.df - 2.0) / truth.df) * rng.standard_t(truth.df, rows)

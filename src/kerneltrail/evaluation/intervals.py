"""Means, shares and paired differences over users, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.evaluation.tables import Row

DRAWS = 2000
"""Bootstrap draws: the ends of a 90 % interval then move by about a fiftieth of its width from seed to seed."""


@dataclass(frozen=True)
class Interval(Row):
    """A mean over `users` persons, with the ends of an interval of nominal coverage `level`."""

    mean: float
    low: float
    high: float
    level: float
    users: int


def over_users(
    values: ArrayLike,
    persons: Sequence[Hashable] | None = None,
    *,
    level: float = 0.9,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """The mean of values with a percentile interval from resampling users.

    Users who followed one and the same model are resampled as if independent: the interval says how much the choice of
    new users matters, not the choice of pilot users.

    Args:
        values: one for each user, or several for users who were followed in several runs.
        persons: whose each value is; a person is resampled with all values. None for one value a person.
        level, draws, seed: nominal coverage, and of the bootstrap.

    >>> over_users([1.0, 1.0, 4.0], ["ann", "ann", "bob"]).users
    2
    """
    every = np.asarray(values, dtype=np.float64)
    whose = range(len(every)) if persons is None else persons
    index = {person: i for i, person in enumerate(dict.fromkeys(whose))}
    sums, counts = np.zeros(len(index)), np.zeros(len(index))
    for person, value in zip(whose, every.tolist(), strict=True):
        sums[index[person]] += value
        counts[index[person]] += 1.0
    n = len(sums)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(n, size=(draws, n), dtype=np.int32)
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Interval(float(every.mean()), float(low), float(high), level, n)


def paired(first: ArrayLike, second: ArrayLike, *, level: float = 0.9, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The mean of first - second over users, with the interval of `over_users`.

    >>> interval = paired([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    >>> interval.mean, interval.low, interval.high
    (1.0, 1.0, 1.0)
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return over_users(difference, level=level, draws=draws, seed=seed)


def mean_over_users(values: ArrayLike, *, level: float = 0.9) -> Interval:
    """The mean of one value for each user, with Student's t interval: for users too few to be resampled.

    >>> few = mean_over_users([-1.0, -2.0, -3.0])
    >>> few.mean, round(few.low, 2), round(few.high, 2)
    (-2.0, -3.69, -0.31)
    """
    every = np.asarray(values, dtype=np.float64)
    n = len(every)
    if n < 2:  # nothing is known of how users differ
        return Interval(float(every.mean()), -np.inf, np.inf, level, n)
    reach = float(scipy.stats.t.ppf(0.5 + level / 2.0, n - 1) * every.std(ddof=1) / np.sqrt(n))
    return Interval(float(every.mean()), float(every.mean()) - reach, float(every.mean()) + reach, level, n)


def exact_share(hits: int, rows: int, *, level: float = 0.95) -> Interval:
    """A share with the interval of Clopper and Pearson, for rows that are independent: each counts as a user.

    >>> found = exact_share(0, 10)
    >>> found.low, round(found.high, 3)
    (0.0, 0.308)
    """
    tail = (1.0 - level) / 2.0
    low = float(scipy.stats.beta.ppf(tail, hits, rows - hits + 1)) if hits else 0.0
    high = float(scipy.stats.beta.ppf(1.0 - tail, hits + 1, rows - hits)) if hits < rows else 1.0
    return Interval(hits / rows, low, high, level, rows)


def share_over_users(hits: Sequence[NDArray[np.bool_]], *, level: float = 0.95) -> Interval:
    """The share of rows that are hits, with an interval that allows for a user's rows being alike.

    Rows of one user go together, so it is users who are counted: Student's t with one degree of freedom less than
    users, on the users' own shares weighted by their rows. Where users happen to agree more than chance allows, the
    exact binomial interval of Clopper and Pearson, as if rows were independent, is wider; the wider ends are given. Of
    one user only the latter can be said.

    >>> alike = share_over_users([np.array([True] * 18 + [False] * 2)] * 5)
    >>> round(alike.mean, 2), round(alike.low, 2), round(alike.high, 2), alike.users
    (0.9, 0.82, 0.95, 5)

    Args:
        hits: for each user, whether each row is a hit; users without rows are left out.
        level: nominal coverage.
    """
    counted = [np.asarray(each, dtype=bool) for each in hits if len(each)]
    rows, inside = np.array([len(each) for each in counted]), np.array([each.sum() for each in counted])
    users, n, k = len(counted), int(rows.sum()), int(inside.sum())
    if not users:
        raise ValueError("a share needs at least one row")
    share, tail = k / n, (1.0 - level) / 2.0
    exact = exact_share(k, n, level=level)
    low, high = exact.low, exact.high
    if users > 1:
        # The share is a ratio of sums over users: linearised, its error is the mean of (hits - share·rows).
        error = float(np.sqrt(users / (users - 1) * np.sum((inside - share * rows) ** 2))) / n
        reach = float(scipy.stats.t.ppf(1.0 - tail, users - 1)) * error
        low, high = min(low, max(share - reach, 0.0)), max(high, min(share + reach, 1.0))
    return Interval(share, low, high, level, users)

"""Paired differences over users, with bootstrap intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

DRAWS = 2000
"""Bootstrap draws: the ends of a 90 % interval then move by about a fiftieth of its width from seed to seed."""


@dataclass(frozen=True)
class Interval:
    """A mean with a bootstrap interval.

    Attributes:
        mean: over users.
        low, high: ends of the interval.
        level: its nominal coverage.
        users: how many there were.
    """

    mean: float
    low: float
    high: float
    level: float
    users: int

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def paired(first: ArrayLike, second: ArrayLike, *, level: float = 0.9, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The mean of first - second over users, with a percentile interval from resampling users.

    Users who followed one and the same model are resampled as if independent: the interval says how much the choice of
    new users matters, not the choice of pilot users.

    >>> found = paired([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    >>> found.mean, found.low, found.high
    (1.0, 1.0, 1.0)
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    n = len(difference)
    rng = np.random.default_rng(seed)
    means = difference[rng.integers(n, size=(draws, n), dtype=np.int32)].mean(axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Interval(float(difference.mean()), float(low), float(high), level, n)

"""The few ways in which moves use chance, and no others.

Every random choice of a move goes through a function of this module, called as `draw.name(...)`. So a test can put an
enumerator in their place, run a move through all its outcomes, and have its exact transition matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Source(Protocol):
    """A distribution over compositions that can be drawn from and evaluated."""

    def sample(self, rng: np.random.Generator) -> int:
        """A composition."""
        ...

    def log_prob(self, mask: int) -> float:
        """The log probability with which `sample` returns it."""
        ...


def index(rng: np.random.Generator, n: int) -> int:
    """0, …, n-1 with equal probability."""
    return int(rng.random() * n)  # random() < 1 in steps of 2⁻⁵³: never n, and ten times faster than integers(n)


def pick(rng: np.random.Generator, weights: Sequence[float]) -> int:
    """An index with probability proportional to its weight."""
    left = rng.random() * math.fsum(weights)
    last = 0
    for i, weight in enumerate(weights):
        if weight > 0.0:
            left -= weight
            last = i
            if left < 0.0:
                break
    return last


def pick_log(rng: np.random.Generator, log_weights: Sequence[float]) -> int:
    """An index with probability proportional to exp of its log weight."""
    top = max(log_weights)
    return pick(rng, [math.exp(w - top) for w in log_weights])


def accept(rng: np.random.Generator, log_ratio: float) -> bool:
    """True with probability min(1, exp(log_ratio)): Metropolis and Hastings."""
    return log_ratio >= 0.0 or (log_ratio > -math.inf and math.log1p(-rng.random()) < log_ratio)


def subset(rng: np.random.Generator, n: int, size: int) -> tuple[int, ...]:
    """`size` of the indices 0, …, n-1, every subset equally likely; ascending."""
    rest = list(range(n))
    for i in range(size):  # Fisher and Yates, stopped early
        j = i + int(rng.random() * (n - i))
        rest[i], rest[j] = rest[j], rest[i]
    return tuple(sorted(rest[:size]))


def mask(rng: np.random.Generator, source: Source) -> int:
    """A composition from a source."""
    return source.sample(rng)

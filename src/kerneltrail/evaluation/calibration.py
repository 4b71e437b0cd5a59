"""Whether probabilities of compositions can be taken at their word: Brier score and reliability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from kerneltrail.kernels import Composition

EDGES = (0.0, 0.6, 0.8, 0.9, 0.99, 1.0)
"""Bins of the most probable node's probability: narrow near 1, where most of them are."""


def brier(probabilities: Mapping[Composition, float], truth: Composition) -> float:
    """Σ_k (p_k - [k is the truth])²: 0 for certain and right, 2 for certain and wrong.

    A truth that is not in the graph counts as a composition of probability 0.

    >>> from kerneltrail.kernels import parse
    >>> brier({parse("SE[x]"): 0.75, parse("LIN[x]"): 0.25}, parse("SE[x]"))
    0.125
    """
    every = {**probabilities, truth: probabilities.get(truth, 0.0)}
    return sum((p - (composition == truth)) ** 2 for composition, p in every.items())


@dataclass(frozen=True)
class Bin:
    """Selections whose probability lay between `low` (excluded) and `high`.

    Attributes:
        low, high: its ends.
        count: how many selections there were.
        said: their mean probability.
        right: the share of them that was right; calibrated if equal to `said`.
    """

    low: float
    high: float
    count: int
    said: float
    right: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def reliability(selections: Iterable[tuple[float, bool]], edges: Sequence[float] = EDGES) -> tuple[Bin, ...]:
    """Selections as (probability, whether right), gathered into bins; empty bins are left out."""
    every = list(selections)
    bins = []
    for low, high in pairwise(edges):
        own = [(p, right) for p, right in every if low < p <= high]
        if own:
            said = sum(p for p, _ in own) / len(own)
            bins.append(Bin(low, high, len(own), said, sum(right for _, right in own) / len(own)))
    return tuple(bins)

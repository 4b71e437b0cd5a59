"""How good predictions and probabilities are: error, log density, coverage, Brier score, reliability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.evaluation.tables import Row
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Array, Composition

LEVELS = (50, 90)
"""Per cent of the intervals that are looked at."""

EDGES = (0.0, 0.6, 0.8, 0.9, 0.99, 1.0)
"""Bins of the most probable node's probability: narrow near 1, where most of them are."""


def rmse(mean: ArrayLike, y: ArrayLike) -> float:
    """The root mean squared error of predicted means (method (40)).

    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    error = np.asarray(y, dtype=np.float64) - np.asarray(mean, dtype=np.float64)
    return float(np.sqrt(np.mean(error**2)))


def mean_log_density(prediction: Prediction, y: Array) -> float:
    """The mean log density of observations under a prediction, noise included (method (40))."""
    return float(prediction.log_density(y).mean())


def coverage(prediction: Prediction, y: Array, level: float) -> float:
    """The share of observations that lie inside the interval of a level, noise included."""
    return _share_inside(prediction.interval(level), y)


def _share_inside(ends: tuple[Array, Array], y: Array) -> float:
    low, high = ends
    return float(np.mean((low <= y) & (y <= high)))


def scores(prediction: Prediction, y: Array) -> dict[str, Any]:
    """How well targets were predicted: rmse, log_density, coverage50, coverage90, length90."""
    ends = {percent: prediction.interval(percent / 100) for percent in LEVELS}
    low, high = ends[90]
    return {
        "rmse": rmse(prediction.mean, y),
        "log_density": mean_log_density(prediction, y),
        **{f"coverage{percent}": _share_inside(each, y) for percent, each in ends.items()},
        "length90": float(np.mean(high - low)),
    }


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
class Bin(Row):
    """`count` selections whose probability lay between `low` (excluded) and `high`.

    `said` is their mean probability, `right` the share of them that was right: equal if calibrated.
    """

    low: float
    high: float
    count: int
    said: float
    right: float


def reliability(selections: Iterable[tuple[float, bool]], edges: Sequence[float] = EDGES) -> tuple[Bin, ...]:
    """Selections as (probability, whether right), gathered into bins; empty bins are left out."""
    every = list(selections)
    bins = []
    for low, high in pairwise(edges):
        inside = [(p, right) for p, right in every if low < p <= high]
        if inside:
            probability = sum(p for p, _ in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), probability, sum(right for _, right in inside) / len(inside)))
    return tuple(bins)

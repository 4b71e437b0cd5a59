"""Was drawn as often as the probabilities say? The sample-ratio check, exact, for each version of the policy.

Draws are independent given their probabilities, so the number of messages sent is a sum of independent coins, each with
a probability of its own. Its distribution is exact where there are few of them, and a Normal's where there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.evaluation.intervals import Interval, exact_share
from kerneltrail.trial.decided import Point

Array = NDArray[np.float64]
EXACT = 2000
"""Up to so many decisions the distribution is computed exactly."""
RARE = 0.001
"""A difference that chance makes more rarely, over all that are looked at together, is called one."""
TENTHS = 10


@dataclass(frozen=True)
class Ratio:
    """Messages sent beside what the probabilities say.

    Attributes:
        decisions: at which somebody could act.
        expected: messages, the sum of the probabilities.
        sent: messages.
        low, high: the middle 95 % of what chance makes.
        p: how often chance makes so large a difference, or a larger one.
    """

    decisions: int
    expected: float
    sent: int
    low: int
    high: int
    p: float


def distribution(probabilities: Array) -> Array:
    """How probable each number of ones is, of independent coins with these probabilities.

    >>> distribution(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    counts = np.array([1.0])
    for p in probabilities:
        counts = np.append(counts * (1.0 - p), 0.0) + np.append(0.0, counts * p)
    return counts


def ratio(probabilities: Sequence[float], sent: int) -> Ratio:
    """The check of some decisions.

    >>> ratio([0.5] * 10, 10).p
    0.001953125
    """
    chances = np.asarray(probabilities, dtype=np.float64)
    expected = float(chances.sum())
    if len(chances) <= EXACT:
        counts = distribution(chances)
        below = np.cumsum(counts)
        low, high = (int(np.searchsorted(below, tail)) for tail in (0.025, 0.975))
        least = min(float(below[sent]), float(counts[sent:].sum()))
    else:
        sd = float(np.sqrt((chances * (1.0 - chances)).sum()))
        low, high = (round(expected + sign * 1.959964 * sd) for sign in (-1, 1))
        least = float(scipy.special.ndtr(-max(abs(sent - expected) - 0.5, 0.0) / sd))
    return Ratio(len(chances), expected, sent, low, high, min(1.0, 2.0 * least))


def ratio_of(points: Sequence[Point]) -> Ratio:
    """The check of decisions at which somebody could act."""
    return ratio([each.probability for each in points], sum(each.action for each in points))


@dataclass(frozen=True)
class Tenth:
    """Decisions whose probabilities are alike: their mean probability beside the share that was sent.

    Attributes:
        low, high: their smallest and largest probability.
        decisions: how many.
        mean: of their probabilities.
        share: that was sent, with an exact interval: given the probabilities, draws are independent.
        ratio: the check of them alone; `unlikely` judges those of all tenths together.
    """

    low: float
    high: float
    decisions: int
    mean: float
    share: Interval
    ratio: Ratio


def tenths(points: Sequence[Point], level: float = 0.95) -> list[Tenth]:
    """Decisions in tenths by their probability, as many in each; those of one probability stay together."""
    chances = np.array([each.probability for each in points])
    sent = np.array([each.action for each in points], dtype=bool)
    edges = np.unique(np.quantile(chances, np.linspace(0.0, 1.0, TENTHS + 1)[1:], method="higher"))
    place = np.searchsorted(edges, chances)
    found = []
    for number in range(len(edges)):
        chosen = place == number
        if chosen.any():
            inside = chances[chosen]
            hits, ends = int(sent[chosen].sum()), (float(inside.min()), float(inside.max()))
            share = exact_share(hits, len(inside), level=level)
            found.append(Tenth(*ends, len(inside), float(inside.mean()), share, ratio(inside.tolist(), hits)))
    return found


def by_version(points: Sequence[Point]) -> dict[str, Ratio]:
    """The check for each version of the policy, fallbacks apart."""
    groups: dict[str, list[Point]] = {}
    for each in points:
        name = f"policy {each.version}" if each.rung == "policy" else f"fallback: {each.rung}"
        groups.setdefault(name, []).append(each)
    return {name: ratio_of(several) for name, several in groups.items()}


def unlikely(ratios: Sequence[Ratio]) -> list[bool]:
    """Which differences are more than chance makes, when all of them are looked at together."""
    return [each.p < RARE / len(ratios) for each in ratios]

"""The sample-ratio check, beside enumeration and simulation."""

from datetime import UTC, datetime
from itertools import pairwise, product

import numpy as np
import pytest
import scipy

from kerneltrail.trial.decided import Point
from kerneltrail.trial.ratio import EXACT, by_version, distribution, ratio, tenths, unlikely


def point(probability, action, version="1", rung="policy"):
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Point(
        "p", 1, "walk", at, 0, True, action, probability, None, rung, version, None, None, False, None, False, {}
    )


def test_the_distribution_is_that_of_all_outcomes():
    chances = np.array([0.2, 0.35, 0.8, 0.5, 0.61])
    counts = np.zeros(6)
    for coins in product((0, 1), repeat=5):
        counts[sum(coins)] += np.prod([p if coin else 1 - p for p, coin in zip(chances, coins, strict=True)])
    np.testing.assert_allclose(distribution(chances), counts, rtol=1e-12)


@pytest.mark.parametrize("sent", [0, 3, 10, 17, 20])
def test_with_equal_probabilities_it_is_the_binomial(sent):
    found, exact = ratio([0.4] * 20, sent), scipy.stats.binom(20, 0.4)
    assert found.p == pytest.approx(min(1.0, 2 * min(exact.cdf(sent), exact.sf(sent - 1))))
    assert (found.low, found.high) == tuple(exact.ppf([0.025, 0.975]))
    assert found.expected == pytest.approx(8.0)


def test_many_decisions_come_to_nearly_the_same():
    rng = np.random.default_rng(1)
    chances = rng.uniform(0.2, 0.8, EXACT)
    sent = round(chances.sum() + 2.0 * np.sqrt((chances * (1 - chances)).sum()))
    exact, normal = ratio(chances, sent), ratio([*chances, 0.0], sent)
    assert normal.decisions == EXACT + 1
    assert normal.p == pytest.approx(exact.p, rel=0.02)
    assert abs(normal.low - exact.low) <= 1


def test_honest_draws_are_rarely_called_unlikely_and_others_are_found():
    """At a level of 0.001 for all versions together, 200 honest looks have a false alarm with probability below 0.2."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(200):
        chances = rng.uniform(0.2, 0.8, (4, 60))
        ratios = [ratio(row, int((rng.random(60) < row).sum())) for row in chances]
        alarms += any(unlikely(ratios))
    assert alarms <= 1
    tilted = [ratio(row, int((rng.random(60) < np.minimum(row + 0.25, 1)).sum())) for row in chances]
    assert any(unlikely(tilted))


def test_versions_and_fallbacks_are_told_apart():
    points = [point(0.5, 1), point(0.5, 0), point(0.7, 1, "2"), point(0.5, 1, None, "fixed")]
    found = by_version(points)
    assert {name: (each.decisions, each.sent) for name, each in found.items()} == {
        "policy 1": (2, 1),
        "policy 2": (1, 1),
        "fallback: fixed": (1, 1),
    }


def test_tenths_hold_every_decision_once_and_those_alike_together():
    rng = np.random.default_rng(3)
    chances = np.concatenate([rng.uniform(0.2, 0.8, 80), np.full(40, 0.8)])
    points = [point(p, int(rng.random() < p)) for p in chances]
    found = tenths(points)
    ends = [(each.low, each.high) for each in found]
    assert all(high < low for (_, high), (low, _) in pairwise(ends))
    counts = [sum(low <= p <= high for p in chances) for low, high in ends]
    assert sum(counts) == 120
    assert counts[-1] >= 40
    for each, (low, high) in zip(found, ends, strict=True):
        inside = [one for one in points if low <= one.probability <= high]
        assert each.share.mean == pytest.approx(np.mean([one.action for one in inside]))
        assert each.mean == pytest.approx(np.mean([one.probability for one in inside]))
        assert each.share.low <= each.share.mean <= each.share.high

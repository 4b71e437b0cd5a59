"""The primitives of chance, against their probabilities: the enumerator of the exact tests stands in for these."""

from __future__ import annotations

import itertools
import math

import numpy as np

from kerneltrail.gp.urn_moves import tally
from kerneltrail.trajectory.sampler import proposals


def chi_square(drawn, chances):
    chances = np.asarray(chances, dtype=float)
    drawn = np.asarray(drawn)
    assert drawn[chances == 0.0].sum() == 0
    expected = drawn.sum() * chances[chances > 0.0]
    return float(((drawn[chances > 0.0] - expected) ** 2 / expected).sum())


# Thresholds are the 1 - 10⁻⁴ quantiles of chi-square for the number of outcomes: one false alarm in 10,000 seeds each.
N = 20_000


def test_index():
    rng = np.random.default_rng(0)
    drawn = np.bincount([proposals.index(rng, 5) for _ in range(N)], minlength=5)
    assert chi_square(drawn, [0.2] * 5) < 23.5


def test_pick_and_pick_log():
    rng = np.random.default_rng(1)
    weights = [0.5, 0.0, 2.0, 1.5]
    for pick, given in (
        (proposals.pick, weights),
        (proposals.pick_log, [math.log(w) if w else -math.inf for w in weights]),
    ):
        drawn = np.bincount([pick(rng, given) for _ in range(N)], minlength=4)
        assert chi_square(drawn, np.array(weights) / 4.0) < 18.4
    assert proposals.pick_log(rng, [-2000.0, -5000.0]) == 0


def test_accept():
    rng = np.random.default_rng(2)
    assert proposals.accept(rng, 0.0)
    assert proposals.accept(rng, math.inf)
    assert not proposals.accept(rng, -math.inf)
    assert not proposals.accept(rng, math.nan)
    taken = sum(proposals.accept(rng, math.log(0.3)) for _ in range(N))
    assert chi_square([taken, N - taken], [0.3, 0.7]) < 15.2


def test_the_compiled_ones():
    rng = np.random.default_rng(3)
    numbers = rng.random(N)
    weights = np.array([0.5, 0.0, 2.0, 1.5])
    assert chi_square(np.bincount([tally.index(u, 5) for u in numbers], minlength=5), [0.2] * 5) < 23.5
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    for drawn in ([tally.pick(u, weights) for u in numbers], [tally.pick_log(u, logs.copy()) for u in numbers]):
        assert chi_square(np.bincount(drawn, minlength=4), weights / 4.0) < 18.4
    taken = sum(tally.accept(u, math.log(0.3)) for u in numbers)
    assert chi_square([taken, N - taken], [0.3, 0.7]) < 15.2
    assert tally.accept(0.5, 0.0)
    assert not tally.accept(0.5, -math.inf)
    assert not tally.accept(0.5, math.nan)


def test_members_taken_one_by_one_are_every_subset_equally_often():
    every = {chosen: i for i, chosen in enumerate(itertools.combinations(range(5), 2))}
    rng, drawn = np.random.default_rng(4), np.zeros(10, dtype=int)
    for numbers in rng.random((N, 5)):
        chosen: list[int] = []
        for i, u in enumerate(numbers):
            if len(chosen) < 2 and tally.take(u, 2 - len(chosen), 5 - i):
                chosen.append(i)
        drawn[every[tuple(chosen)]] += 1
    assert chi_square(drawn, [0.1] * 10) < 33.8

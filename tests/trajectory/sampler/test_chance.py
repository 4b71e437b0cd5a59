"""The primitives of chance, against their probabilities: the enumerator of the exact tests stands in for these."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from kerneltrail.trajectory import ROOT
from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.proposals import Fresh
from support.exactness import tiny_problem


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


def test_subset():
    rng = np.random.default_rng(3)
    every = {chosen: i for i, chosen in enumerate(itertools.combinations(range(5), 2))}
    drawn = np.bincount([every[proposals.subset(rng, 5, 2)] for _ in range(N)], minlength=10)
    assert chi_square(drawn, [0.1] * 10) < 33.8
    assert proposals.subset(rng, 3, 0) == ()


@pytest.mark.parametrize("known", [(), (1,), (1, 3, 5)])
@pytest.mark.parametrize("keep", [None, 0.9])
def test_fresh_compositions_come_with_the_probability_they_say(known, keep):
    urn = tiny_problem(0, keep=keep, alpha=2.5).urn
    for parent in (ROOT, 3):
        source = Fresh(urn, parent, known)
        chances = [math.exp(source.log_prob(k)) for k in range(8)]
        assert math.fsum(chances) == pytest.approx(1.0)
        rng = np.random.default_rng(4)
        drawn = np.bincount([proposals.mask(rng, source) for _ in range(N)], minlength=8)
        assert chi_square(drawn, chances) < 29.9

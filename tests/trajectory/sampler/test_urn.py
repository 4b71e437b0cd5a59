from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import ROOT, Counts, Urn
from support.exactness import tiny_problem
from trajectory import oracle

PATHS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=5)


@given(PATHS, st.randoms())
def test_counts_forget_what_they_were_told_in_any_order(paths, random):
    counts = Counts.of(paths)
    steps = [(a, b) for path in paths for a, b in zip([ROOT, *path], path, strict=False)]
    assert sum(counts.totals.values()) == sum(counts.uses.values()) == len(steps)
    assert counts.edges == len(set(steps))
    random.shuffle(steps)
    for parent, child in steps:
        counts.remove(parent, child)
    assert (counts.rows, counts.totals, counts.uses) == ({}, {}, {})


@pytest.mark.parametrize("options", [{}, {"keep": 0.8}, {"allow_empty": True, "keep": 0.6}])
@pytest.mark.parametrize("parent", [ROOT, 0, 3, 5])
def test_steps_from_a_restaurant_add_up_to_one_and_mass_is_h0(options, parent):
    urn = tiny_problem(0, **options, alpha=1.7).urn
    if parent == 0 and not urn.pool.allow_empty:
        return
    counts = Counts.of([(3, 3, 5), (3, 5, 1)])
    masks = list(urn.pool.masks())
    assert math.fsum(math.exp(urn.log_step(counts, parent, k)) for k in masks) == pytest.approx(1.0)
    for k in masks:
        expected = 1.7 * oracle.h0(urn.pool, k, parent, urn.keep)
        assert math.exp(urn.log_mass(parent, k)) == pytest.approx(expected)
    tops, bottoms = urn.step_matrix(counts, tuple(masks))
    row = 0 if parent == ROOT else 1 + masks.index(parent)
    np.testing.assert_allclose(
        np.log(tops[row] / bottoms[row]), [urn.log_step(counts, parent, k) for k in masks], rtol=1e-12, atol=1e-12
    )


def test_the_root_and_noise_only_are_different_restaurants():
    urn = Urn(Pool.of("LIN[x]", "SE[x]").with_empty())
    counts = Counts.of([(1,), (1,)])
    assert urn.log_step(counts, ROOT, 1) > urn.log_step(counts, 0, 1)
    assert urn.log_step(counts, 0, 1) == pytest.approx(urn.log_mass(ROOT, 1))


def test_log_path_is_the_change_of_the_prior_and_restores_the_counts():
    urn = tiny_problem(0, keep=0.9).urn
    counts = Counts.of([(1, 3), (1, 1)])
    before = urn.log_prior(counts)
    gain = urn.log_path(counts, (1, 1, 1, 3))
    assert (counts.totals, counts.uses) == ({-1: 2, 1: 2}, {1: 3, 3: 1})
    counts.add_path((1, 1, 1, 3))
    assert urn.log_prior(counts) - before == pytest.approx(gain)


@pytest.mark.parametrize(("parent", "keep", "empty"), [(ROOT, None, False), (5, 0.9, False), (5, 0.9, True)])
def test_draws_from_h0(parent, keep, empty):
    """Chi-square with at most 7 degrees of freedom: above 29.9 once in 10,000 seeds (p = 10⁻⁴ at 7)."""
    urn = tiny_problem(0, keep=keep, allow_empty=empty).urn
    rng = np.random.default_rng(0)
    n = 20_000
    drawn = np.bincount([urn.sample_h0(rng, parent) for _ in range(n)], minlength=8)
    expected = n * np.array([oracle.h0(urn.pool, k, parent, keep) for k in range(8)])
    assert drawn[expected == 0.0].sum() == 0
    legal = expected > 0.0
    assert ((drawn - expected)[legal] ** 2 / expected[legal]).sum() < 29.9

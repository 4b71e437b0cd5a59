"""Where chains begin."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kerneltrail.trajectory import Urn
from kerneltrail.trajectory.sampler.chains import ChainTarget, _start

from .. import tiny

CANDIDATES = (tiny.LIN, tiny.PER, tiny.SE, tiny.LIN | tiny.SE)


@pytest.fixture(scope="module")
def table():
    return tiny.table()


def begun(table, start, seed, begin=None):
    target = ChainTarget(table, Urn(table.pool), tiny.settings(start=start), CANDIDATES, begin or {})
    return _start(target, 0, np.random.default_rng(seed)).paths


def test_drawn_is_each_customer_by_itself_from_h0_among_the_candidates(table):
    """9,000 customers of 1,500 starts; a share is off by more than 4 sd once in 4,000 runs."""
    starts = [begun(table, "drawn", seed) for seed in range(1500)]
    seen = Counter(mask for paths in starts for path in paths for mask in path)
    weights = {mask: np.exp(table.pool.log_h0(mask)) for mask in CANDIDATES}
    for mask in CANDIDATES:
        share = weights[mask] / sum(weights.values())
        assert seen[mask] / 9000 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 9000))
    alike = [path[0] == path[1] for paths in starts for path in paths]  # one user's two batches
    wanted = sum(weight**2 for weight in weights.values()) / sum(weights.values()) ** 2
    assert np.mean(alike) == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / 4500))


def test_best_is_each_customers_own_best_whatever_the_chain(table):
    score = {mask: [table.get(m, mask).log_laplace + table.pool.log_h0(mask) for m in range(3)] for mask in CANDIDATES}
    wanted = tuple(tuple(max(CANDIDATES, key=lambda mask: score[mask][m][t]) for t in range(2)) for m in range(3))
    assert begun(table, "best", 0) == begun(table, "best", 1) == wanted


def test_apart_is_one_composition_for_each_user_of_its_better_half(table):
    for seed in range(20):
        for m, path in enumerate(begun(table, "apart", seed)):
            ranked = sorted(CANDIDATES, key=lambda mask: -table.get(m, mask).log_laplace[-1])
            assert len(set(path)) == 1
            assert path[0] in ranked[:2]


@pytest.mark.parametrize("start", ["apart", "best", "drawn"])
def test_users_of_a_model_that_is_extended_go_on_from_their_paths(table, start):
    known = (tiny.SE, tiny.LIN | tiny.SE)
    assert begun(table, start, 0, {1: known})[1] == known

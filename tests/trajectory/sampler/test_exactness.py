"""Chains with the real generator, against the joint listed in full; and the helpers that measure it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kerneltrail.trajectory import EXACT, Sweep, TrajectoryError
from support.exactness import deviation, deviation_table, enumerate_joint, marginals, tiny_problem, total_variation
from trajectory import oracle


def test_the_listed_joint_is_that_of_the_plain_loops():
    joint = tiny_problem(0, (2, 1), products=2, keep=0.7, allow_empty=True)
    listed = enumerate_joint(joint)
    assert sum(listed.values()) == pytest.approx(1.0)
    plain = {p: oracle.log_joint(joint.urn, joint.evidence, p, [0, 1, 0]) for p in listed}
    top = max(plain.values())
    total = sum(np.exp(v - top) for v in plain.values())
    for paths, probability in listed.items():
        assert probability == pytest.approx(np.exp(plain[paths] - top) / total)


def test_marginals_of_a_listed_distribution():
    found = marginals({((1, 2), (1,)): 0.25, ((1, 1), (1,)): 0.75})
    assert found["customer (0, 1)"] == {2: 0.25, 1: 0.75}
    assert found["path of user 0"] == {(1, 2): 0.25, (1, 1): 0.75}
    assert found["nodes"] == {2: 0.25, 1: 0.75}
    assert total_variation(found["nodes"], {1: 1.0}) == 0.25


def test_a_space_too_large_is_refused():
    with pytest.raises(TrajectoryError, match="too many"):
        enumerate_joint(tiny_problem(0, (6, 6, 6)))


@pytest.mark.slow
@pytest.mark.parametrize("moves", [("seat",), ("path",), EXACT])
def test_long_chains_reproduce_every_customers_marginal(moves):
    """Total variation < 0.01 at 25,000 sweeps, for each of 4 customers.

    Over 12 other seeds of `seat` and `path` at 20,000 sweeps the largest of the four was 0.0049 on average, sd 0.0015,
    so at 25,000 it is 0.0044, sd 0.0013: 0.01 is 4.3 sd away, a false alarm in about one of 100,000 seeds. (The seed is
    fixed; the exact transition matrices have no false alarms at all.)
    """
    joint = tiny_problem(2, (2, 2), products=2, spread=2.0)
    few = {name: {"steps": 1} for name in moves if name in ("plate", "run", "rename")}  # there is little to move
    found = deviation(Sweep(joint, moves, few), np.random.default_rng(11), 25_000, exact=enumerate_joint(joint))
    assert found.customers < 0.01
    assert found.nodes < 0.01
    assert found.paths < 0.015  # nine paths a user instead of three compositions a customer: more noise


@pytest.mark.parametrize("size", [1, 2])
def test_every_pair_of_exact_moves_runs_and_stays_near(size):
    """Three products, two users: a coarse look at all combinations; the fine one is exact, on matrices."""
    joint = tiny_problem(4, (2, 1), spread=1.0)
    exact = enumerate_joint(joint)
    combinations = [c for c in itertools.combinations(EXACT, size) if {"seat", "path"} & set(c)]
    results = [deviation(Sweep(joint, c), np.random.default_rng(0), 2_000, exact=exact) for c in combinations]
    assert max(result.customers for result in results) < 0.06
    assert deviation_table(results).count("\n") == len(results) + 1

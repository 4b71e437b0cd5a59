"""Constant paths: the joint by a plain formula, and moves that leave it unchanged, shown on exact matrices."""

import itertools
import math

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import Joint, Urn
from kerneltrail.trajectory.evidence import EVIDENCES
from kerneltrail.trajectory.map_table import Fits, MapTable
from kerneltrail.trajectory.sampler.constant import stretched, whole_table
from kerneltrail.trajectory.sampler.joint import Structure
from support.exactness import enumerate_joint
from trajectory.enumerator import matrix_of, path, plate, reachable, rename, seat
from trajectory.tiny import PRIORS, QUICK, pilot, table

PROBLEMS = {
    "two users": {"users": 2, "products": 2},
    "three users": {"users": 3, "products": 2, "alpha": 0.6},
    "empty allowed": {"users": 2, "products": 2, "allow_empty": True},
    "three products": {"users": 2, "products": 3, "alpha": 2.0},
}


def problem(users, products, *, alpha=1.0, allow_empty=False):
    """A table of users of several batches with random evidences, and the urn."""
    names = ("LIN[x]", "PER[x]", "SE[x]")[:products]
    chances = dict(zip(names, (0.3, 0.2, 0.4), strict=False))
    pool = Pool.of(*names).with_probabilities(chances).with_empty(allow_empty)
    full = MapTable([pilot(m, ends=(2, 3, 5)[: 2 + m % 2]) for m in range(users)], pool, PRIORS, QUICK)
    rng = np.random.default_rng([users, products])
    for m, user in enumerate(full.users):
        for mask in pool.masks():
            T, k = user.batches, len(PRIORS.moments(pool.composition(mask))[0])
            log = 1.5 * rng.standard_normal(T)
            full.put(m, mask, Fits(rng.standard_normal((T, k)), log - 1.0, log, np.ones((T, k, k))))
    return full, Urn(pool, alpha=alpha)


def joint_of(full, urn):
    return Joint(urn, EVIDENCES["laplace"](whole_table(full), len(urn.pool)))


def by_formula(full, urn):
    """Every assignment of compositions to users with its probability: method (47), term by term."""
    masks = list(urn.pool.masks())
    weights = {}
    for kernels in itertools.product(masks, repeat=len(full.users)):
        weight = 1.0
        for k in set(kernels):
            a, n = urn.alpha * math.exp(urn.pool.log_h0(k)), kernels.count(k)
            weight *= math.gamma(a + n) / math.gamma(a)
        for m, k in enumerate(kernels):
            weight *= math.exp(full.get(m, k).log_laplace[-1])  # of all rows, once
        weights[tuple((k,) for k in kernels)] = weight
    total = sum(weights.values())
    return {paths: weight / total for paths, weight in weights.items()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_joint_is_the_formula(name):
    full, urn = problem(**PROBLEMS[name])
    exact, expected = enumerate_joint(joint_of(full, urn)), by_formula(full, urn)
    assert exact.keys() == expected.keys()
    np.testing.assert_allclose(list(exact.values()), [expected[paths] for paths in exact], rtol=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_gibbs_over_users_and_rename_leave_it_unchanged(name):
    full, urn = problem(**PROBLEMS[name])
    joint, exact = joint_of(full, urn), by_formula(full, urn)
    states, target = list(exact), np.array(list(exact.values()))
    users = range(len(full.users))
    steps = {
        "seat": [seat(m, m) for m in users],
        "path": [path(m) for m in users],
        "rename": [rename],
        "plate": [plate(False)],
    }
    for move, each in steps.items():
        sweep = np.eye(len(states))
        for step in each:
            matrix = matrix_of(joint, states, step)
            np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12, err_msg=move)
            np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-13, err_msg=move)
            assert np.trace(matrix) < len(matrix), f"{move} never moves"
            sweep = sweep @ matrix
        if move != "rename":  # which never makes two users of one kernel differ
            assert reachable(sweep), move
            assert np.abs(np.linalg.matrix_power(sweep, 8192) - target).max() < 1e-9, move


def test_rename_moves_all_users_of_a_kernel_together():
    full, urn = problem(users=3, products=2)
    joint = joint_of(full, urn)
    states = list(by_formula(full, urn))
    matrix = matrix_of(joint, states, rename)
    together = matrix[states.index(((1,), (1,), (1,)))]
    assert together[states.index(((3,), (3,), (3,)))] > 0
    assert together[states.index(((3,), (1,), (1,)))] == 0


def test_the_whole_table_has_the_fits_to_all_rows():
    full = table(2)
    for m in range(2):
        full.get(m, 3)
    whole = whole_table(full)
    assert [user.ends for user in whole.users] == [(7,), (7,)]
    for m in range(2):
        np.testing.assert_array_equal(whole.get(m, 3).theta, full.get(m, 3).theta[-1:])
        np.testing.assert_array_equal(whole.get(m, 3).log_laplace, full.get(m, 3).log_laplace[-1:])
        assert whole.get(m, 3).precision.shape == (1, *full.get(m, 3).precision.shape[1:])


def test_a_stretched_structure_stays_where_it_is():
    once = Structure(((1,), (3,), (3,)), -4.0, 2, 2, 7)
    long = stretched(once, [3, 1, 2])
    assert long.paths == ((1, 1, 1), (3,), (3, 3))
    assert (long.nodes, long.edges, long.visits, long.log_joint) == (2, 4, 7, -4.0)

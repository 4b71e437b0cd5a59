"""Every exact move leaves method (9) unchanged: shown on exact transition matrices, so without false alarms."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from kerneltrail.gp import urn_moves
from kerneltrail.trajectory import Joint
from support.exactness import enumerate_joint, tiny_problem
from trajectory.enumerator import matrix_of, path, plain_moves, plate, reachable, rename, seat

PROBLEMS = {
    "two users": {"customers": (2, 2), "products": 2},
    "self transitions": {"customers": (3, 1), "products": 2, "alpha": 0.7},
    "parent bias": {"customers": (3, 1), "products": 2, "keep": 0.8},
    "empty allowed": {"customers": (2, 1), "products": 2, "allow_empty": True, "keep": 0.9},
    "three users": {"customers": (1, 2, 1), "products": 2},
    "three products": {"customers": (2, 1), "products": 3},
}


LARGER = {
    "two users, three products": {"customers": (2, 2), "products": 3, "keep": 0.9},
    "three batches": {"customers": (3, 2), "products": 2},
    "three batches and a third user": {"customers": (3, 1, 1), "products": 2, "keep": 0.7, "alpha": 2.0},
}


def single_steps(joint, users):
    """The steps that each move's pass is made of."""
    starts = joint.book.starts
    return [
        *(("seat", seat(c, m)) for m in users for c in range(starts[m], starts[m + 1])),
        ("plate", plate(False)),
        ("run", plate(True)),
        *(("path", path(m)) for m in users),
        ("rename", rename),
    ]


def matrices(problem, *, seed=3, users=None, others=1):
    """(move, exact transition matrix, exact distribution) of every single step, one by one: they are large.

    What seats or draws a path leaves the paths of all other users as they are. Of those of the last user it then
    begins at every so many, `others`: a part of the states that no such step leads out of.
    """
    joint = tiny_problem(seed, **problem)
    exact = enumerate_joint(joint)
    last = sorted({paths[-1] for paths in exact})[::others]
    part = {paths: p for paths, p in exact.items() if paths[-1] in last}
    for move, step in single_steps(joint, range(len(joint.customers) if users is None else users)):
        begun = part if move in ("seat", "path") else exact
        weights = np.array(list(begun.values()))
        yield move, matrix_of(joint, list(begun), step), weights / weights.sum()


def check_steps(found):
    for move, matrix, exact in found:
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12, err_msg=move)
        np.testing.assert_allclose(exact @ matrix, exact, rtol=0, atol=1e-13, err_msg=move)
        flow = exact[:, None] * matrix  # and more: each single step is reversible, plate's among them
        assert np.abs(flow - flow.T).max() < 1e-13, move
        assert np.trace(matrix) < len(matrix), f"{move} never moves"


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_step_is_in_detailed_balance_with_the_joint(name):
    check_steps(matrices(PROBLEMS[name]))


@pytest.mark.parametrize("masks", [(1, 2, 3), (1, 3, 7), (2, 5)])
def test_every_step_is_in_detailed_balance_where_some_compositions_are_no_candidates(masks):
    """A neighbour that is no candidate is proposed and rejected, so both directions count it."""
    whole = tiny_problem(6, (2, 2), products=3, keep=0.8)
    joint = Joint(whole.urn, whole.evidence, masks)
    weights = {
        paths: p for paths, p in enumerate_joint(whole).items() if {m for path in paths for m in path} <= {*masks}
    }
    target = np.array(list(weights.values())) / sum(weights.values())
    found = [(move, matrix_of(joint, list(weights), step), target) for move, step in single_steps(joint, (0, 1))]
    check_steps((move, matrix, p) for move, matrix, p in found if move not in ("plate", "run") or masks != (2, 5))
    if masks == (2, 5):  # two products apart: one more or less leads from neither to the other
        for move, matrix, _ in found:
            assert move not in ("plate", "run") or (matrix == np.eye(len(matrix))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_every_step_is_in_detailed_balance_with_the_joint_on_larger_spaces(name):
    check_steps(matrices(LARGER[name], seed=4, users=1, others=4))


@pytest.mark.parametrize("name", ["self transitions", "parent bias", "three products"])
def test_every_combination_converges_to_the_joint_from_anywhere(name):
    """All sweeps of exact moves, from every start: total variation of the whole state, so of every marginal, to 0."""
    passes = {}
    for move, matrix, exact in matrices(PROBLEMS[name]):
        passes[move] = passes[move] @ matrix if move in passes else matrix
        target = exact
    unit = np.eye(len(target))
    irreducible = set()
    for size in range(1, len(passes) + 1):
        for combination in itertools.combinations(passes, size):
            sweep = np.linalg.multi_dot([unit, unit, *(passes[move] for move in combination)])
            if reachable(sweep):
                irreducible.add(combination)
                far = 0.5 * np.abs(np.linalg.matrix_power(sweep, 8192) - target).sum(axis=1).max()
                assert far < 1e-6, combination
    # Alone, rename never makes two customers of one composition differ, and run never cuts a run in two.
    every = {c for n in range(1, 6) for c in itertools.combinations(passes, n)}
    assert irreducible == {c for c in every if {"seat", "plate", "path"} & set(c)}


def test_path_is_corrected_where_the_users_own_transitions_interact():
    """A→B→A→B leaves restaurant A twice: four batches are the fewest at which the proposal is not the joint."""
    joint = tiny_problem(7, customers=(4,), products=2)
    exact = enumerate_joint(joint)
    matrix = matrix_of(joint, list(exact), path(0))
    p = np.array(list(exact.values()))
    np.testing.assert_allclose(p @ matrix, p, rtol=0, atol=1e-13)
    assert np.abs(matrix - p).max() > 1e-4  # not simply a draw from the joint: something was rejected
    assert reachable(matrix)


def test_path_without_returns_is_a_draw_from_the_conditional_itself():
    """Up to three batches no restaurant is left twice but in a run, which the chain counts: nothing is rejected."""
    joint = tiny_problem(8, customers=(3,), products=2)
    exact = enumerate_joint(joint)
    matrix = matrix_of(joint, list(exact), path(0))
    np.testing.assert_allclose(matrix, np.tile(list(exact.values()), (len(exact), 1)), rtol=0, atol=1e-13)


def test_seat_is_full_gibbs():
    joint = tiny_problem(9, customers=(2, 2), products=2)
    exact = enumerate_joint(joint)
    states = list(exact)
    matrix = matrix_of(joint, states, seat(0, 0))
    for i, paths in enumerate(states):
        same = [j for j, other in enumerate(states) if other[0][1:] == paths[0][1:] and other[1] == paths[1]]
        p = np.array([exact[states[j]] for j in same])
        np.testing.assert_allclose(matrix[i, same], p / p.sum(), rtol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_machine_code_does_with_the_same_numbers_what_the_plain_code_does(name):
    """So what the exact matrices show of the one holds for the other."""
    joint = tiny_problem(5, **PROBLEMS[name])
    plain, rng, target = plain_moves(scripted=False), np.random.default_rng(0), joint.target
    users, size, moved = len(joint.customers), joint.size, Counter()
    codes = np.zeros(size, dtype=np.int64)
    for _ in range(300):
        passes = {
            "seat_all": (rng.random(size),),
            "path_all": (rng.random((users, 1 + max(joint.customers))),),
            "plate_all": (rng.random((3, 4 + size)), bool(rng.integers(2))),
            "rename_all": (rng.random((3, 4)),),
        }
        for move, numbers in passes.items():
            mine, theirs, before = codes.copy(), codes.copy(), codes
            assert getattr(urn_moves, move)(target, mine, *numbers) == getattr(plain, move)(target, theirs, *numbers)
            assert mine.tolist() == theirs.tolist(), move
            moved[move] += mine.tolist() != before.tolist()
            codes = mine
    assert len(moved) == 4
    assert min(moved.values()) > 5

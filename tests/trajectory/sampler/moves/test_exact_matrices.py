"""Every exact move leaves method (9) unchanged: shown on exact transition matrices, so without false alarms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kerneltrail.trajectory.sampler.moves import Path, Plate, Rename, Run, Seat
from support.exactness import enumerate_joint, tiny_problem
from trajectory.enumerator import install, reachable, transition_matrix

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


def single_steps(joint, slots, users):
    """The steps that each move's pass is made of, as (move, step on a workspace)."""
    every = list(joint.urn.pool.masks())
    places = [(m, t) for m in users for t in range(joint.customers[m])]
    seat, plate, run = Seat(joint, fresh=1), Plate(joint), Run(joint)
    path, rename, known = Path(joint, fresh=slots), Rename(joint), Rename(joint, library=tuple(every[:2]))
    return [
        *(("seat", lambda r, w, m=m, t=t: seat.reseat(r, w, m, t)) for m, t in places),
        ("plate", lambda r, w: plate.replate(r, w)),
        ("run", lambda r, w: run.replate(r, w)),
        *(("path", lambda r, w, m=m: path.redraw(r, w, m)) for m in users),
        ("rename", lambda r, w: rename.transpose(r, w)),
        ("rename", lambda r, w: known.transpose(r, w)),
    ]


def matrices(problem, monkeypatch, *, seed=3, slots=1, users=None):
    """(move, exact transition matrix, exact distribution) of every single step, one by one: they are large."""
    joint = tiny_problem(seed, **problem)
    exact = enumerate_joint(joint)
    install(monkeypatch, len(joint.urn.pool))
    users = range(len(joint.customers) if users is None else users)
    for move, step in single_steps(joint, slots, users):
        yield move, transition_matrix(joint, list(exact), step), np.array(list(exact.values()))


def check_steps(found):
    for move, matrix, exact in found:
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12, err_msg=move)
        np.testing.assert_allclose(exact @ matrix, exact, rtol=0, atol=1e-13, err_msg=move)
        flow = exact[:, None] * matrix  # and more: each single step is reversible, plate's among them
        assert np.abs(flow - flow.T).max() < 1e-13, move
        assert np.trace(matrix) < len(matrix), f"{move} never moves"


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_step_is_in_detailed_balance_with_the_joint(name, monkeypatch):
    check_steps(matrices(PROBLEMS[name], monkeypatch))


@pytest.mark.parametrize(("name", "library"), [("self transitions", ()), ("parent bias", (1,))])
def test_seat_is_in_detailed_balance_with_two_slots(name, library, monkeypatch):
    """Each slot is drawn from q, so a composition in one of two weighs half of what it would in a single one."""
    joint = tiny_problem(3, **PROBLEMS[name])
    exact = enumerate_joint(joint)
    install(monkeypatch, len(joint.urn.pool))
    seat = Seat(joint, fresh=2, library=library)
    steps = [lambda r, w, m=m, t=t: seat.reseat(r, w, m, t) for m, n in enumerate(joint.customers) for t in range(n)]
    target = np.array(list(exact.values()))
    check_steps(("seat", transition_matrix(joint, list(exact), step), target) for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_every_step_is_in_detailed_balance_with_the_joint_on_larger_spaces(name, monkeypatch):
    check_steps(matrices(LARGER[name], monkeypatch, seed=4, users=1))


@pytest.mark.parametrize(("name", "slots"), [("self transitions", 2), ("parent bias", 2), ("three products", 1)])
def test_every_combination_converges_to_the_joint_from_anywhere(name, slots, monkeypatch):
    """All sweeps of exact moves, from every start: total variation of the whole state, so of every marginal, to 0."""
    passes = {}
    for move, matrix, exact in matrices(PROBLEMS[name], monkeypatch, slots=slots):
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


def test_path_alone_reaches_everything_with_as_many_slots_as_batches(monkeypatch):
    joint = tiny_problem(5, customers=(2,), products=2)
    exact = enumerate_joint(joint)
    install(monkeypatch, 2)
    enough, few = Path(joint, fresh=2), Path(joint, fresh=1)
    matrix = transition_matrix(joint, list(exact), lambda r, w: enough.redraw(r, w, 0))
    p = np.array(list(exact.values()))
    np.testing.assert_allclose(p @ matrix, p, rtol=0, atol=1e-14)
    assert reachable(matrix)
    assert not reachable(transition_matrix(joint, list(exact), lambda r, w: few.redraw(r, w, 0)))


@pytest.mark.parametrize("options", [{"library": (1, 2, 3), "fresh": 0}, {"library": (1,), "fresh": 1}])
def test_path_is_corrected_where_the_users_own_transitions_interact(options, monkeypatch):
    """A→B→A→B leaves restaurant A twice: four batches are the fewest at which the proposal is not the joint."""
    joint = tiny_problem(7, customers=(4,), products=2)
    exact = enumerate_joint(joint)
    install(monkeypatch, 2)
    move = Path(joint, **options)
    matrix = transition_matrix(joint, list(exact), lambda r, w: move.redraw(r, w, 0))
    p = np.array(list(exact.values()))
    np.testing.assert_allclose(p @ matrix, p, rtol=0, atol=1e-13)
    if not options["fresh"]:
        assert np.abs(matrix - p).max() > 1e-4  # not simply a draw from the joint: something was rejected
        assert reachable(matrix)


def test_path_without_returns_is_a_draw_from_the_conditional_itself(monkeypatch):
    """Up to three batches no restaurant is left twice but in a run, which the chain counts: nothing is rejected."""
    joint = tiny_problem(8, customers=(3,), products=2)
    exact = enumerate_joint(joint)
    install(monkeypatch, 2)
    move = Path(joint, library=(1, 2, 3), fresh=0)
    matrix = transition_matrix(joint, list(exact), lambda r, w: move.redraw(r, w, 0))
    np.testing.assert_allclose(matrix, np.tile(list(exact.values()), (len(exact), 1)), rtol=0, atol=1e-13)


def test_seat_with_all_compositions_is_full_gibbs(monkeypatch):
    joint = tiny_problem(9, customers=(2, 2), products=2)
    exact = enumerate_joint(joint)
    states = list(exact)
    install(monkeypatch, 2)
    move = Seat(joint, fresh=0, library=(1, 2, 3))
    matrix = transition_matrix(joint, states, lambda r, w: move.reseat(r, w, 0, 0))
    for i, paths in enumerate(states):
        same = [j for j, other in enumerate(states) if other[0][1:] == paths[0][1:] and other[1] == paths[1]]
        p = np.array([exact[states[j]] for j in same])
        np.testing.assert_allclose(matrix[i, same], p / p.sum(), rtol=1e-12)


def test_seat_without_slots_cannot_leave_what_nobody_else_uses(monkeypatch):
    joint = tiny_problem(9, customers=(1, 1), products=2)
    exact = enumerate_joint(joint)
    install(monkeypatch, 2)
    matrix = transition_matrix(joint, list(exact), lambda r, w: Seat(joint, fresh=0).reseat(r, w, 0, 0))
    p = np.array(list(exact.values()))
    np.testing.assert_allclose(p @ matrix, p, rtol=0, atol=1e-14)
    assert not reachable(matrix)

from __future__ import annotations

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import PUBLISHED, FixedEvidence, Joint, Sweep, Urn
from kerneltrail.trajectory.exactness import compare_sets, deviation, deviation_table, enumerate_joint, tiny_problem
from kerneltrail.trajectory.moves.published import seat_at_tables
from kerneltrail.trajectory.urn import transitions


def tables_of(state):
    """Members by (restaurant, label)."""
    found = {}
    for m, (path, labels) in enumerate(zip(state.paths, state.tables, strict=True)):
        for t, ((parent, _), label) in enumerate(zip(transitions(path), labels, strict=True)):
            found.setdefault((parent, label), []).append((m, t))
    return found


@pytest.mark.parametrize("options", [{}, {"published_plate": {"inverted": True, "steps": 2}}])
def test_every_table_has_one_composition_and_every_label_one_table(options):
    joint = tiny_problem(0, (4, 3, 3), spread=1.0)
    rng = np.random.default_rng(0)
    state = joint.draw_prior(rng)
    sweep = Sweep(joint, PUBLISHED, options)
    for _ in range(300):
        state, _ = sweep.step(rng, state)
        tables = tables_of(state)
        for members in tables.values():
            assert len({state.paths[m][t] for m, t in members}) == 1
        labels = [label for _, label in tables]
        assert len(set(labels)) == len(labels)


def test_tables_are_seated_from_their_conditional():
    """Two customers who went the same way share a table with probability 1/(1+αH0) = 2/3; within 4 sd of 20,000."""
    joint = Joint(Urn(Pool.of("LIN[x]", probability=0.5), alpha=0.5), FixedEvidence.flat([1, 1]))
    rng = np.random.default_rng(0)
    n = 20_000
    shared = sum(len({labels for (labels,) in seat_at_tables(rng, joint.urn, ((1,), (1,)))}) == 1 for _ in range(n))
    assert shared / n == pytest.approx(1 / 1.5, abs=4 * np.sqrt(2 / 9 / n))


def test_without_next_customers_the_published_moves_are_exact_too():
    """One batch each: nothing is left out. Total variation over 3 masks at 10,000 sweeps; 0.03 is some 5 sd."""
    joint = tiny_problem(3, (1, 1, 1), products=2, spread=1.0)
    for moves in (PUBLISHED, ("published_seat",)):
        found = deviation(Sweep(joint, moves), np.random.default_rng(0), 10_000, exact=enumerate_joint(joint))
        assert found.customers < 0.03


def test_with_next_customers_the_published_moves_are_measurably_off():
    joint = tiny_problem(3, (3, 3), products=2, spread=1.0)
    exact, published, inverted, _ = compare_sets(joint, 3_000, seed=0)
    assert exact.customers < 0.04
    assert min(published.customers, inverted.customers) > 0.05
    assert exact.noise == published.noise < 0.02
    table = deviation_table([published, inverted])
    assert "published_seat + published_plate | 3,000" in table
    assert "published_plate(inverted=True) | 3,000" in table

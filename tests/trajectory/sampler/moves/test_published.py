from __future__ import annotations

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import PUBLISHED, Joint, Sweep, Urn
from kerneltrail.trajectory.sampler.moves.published import seat_at_tables
from kerneltrail.trajectory.sampler.urn import ROOT, transitions
from support.exactness import compare_sets, deviation, deviation_table, enumerate_joint, tiny_problem
from support.sampling import FixedEvidence, draw_prior


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
    state = draw_prior(joint, rng)
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


def few_of_many(library):
    """A pool of 12 products of which three compositions have an evidence, and a sweep over three users."""
    pool = Pool.of(*(f"SE[x{i}]" for i in range(12)), probability=0.05)
    log = {1: 0.0, 2: 0.5, 6: 1.0}
    joint = Joint(Urn(pool), FixedEvidence([3, 3, 2], lambda m, mask: [log.get(mask, -np.inf)] * (3, 3, 2)[m]))
    options = {"published_seat": {"library": library}} if library else {}
    return joint, Sweep(joint, PUBLISHED, options)


def test_a_customer_for_whom_nothing_is_on_offer_keeps_its_composition():
    """Draws from H0 hardly ever have an evidence here, and a predecessor's move leaves nobody's own table in place."""
    joint, sweep = few_of_many(())
    state, rng = joint.state(((1, 2, 6), (2, 1, 1), (6, 6))), np.random.default_rng(0)
    for _ in range(300):
        state, _ = sweep.step(rng, state)
        assert np.isfinite(state.log_joint)
        assert {mask for path in state.paths for mask in path} <= {1, 2, 6}


def test_a_library_is_drawn_from_by_h0():
    """With a flat evidence on the library and one customer, the law is H0 restricted to it; 5 sd of 8,000 sweeps."""
    pool = Pool.of(*(f"SE[x{i}]" for i in range(12)), probability=0.05)
    urn = Urn(pool)
    joint = Joint(urn, FixedEvidence([1], lambda m, mask: [0.0 if mask in (1, 2, 6) else -np.inf]))
    sweep = Sweep(joint, ("published_seat",), {"published_seat": {"library": (1, 2, 6)}})
    state, rng, n = joint.state(((1,),)), np.random.default_rng(0), 8000
    seen = dict.fromkeys((1, 2, 6), 0)
    for _ in range(n):
        state, _ = sweep.step(rng, state)
        seen[state.paths[0][0]] += 1
    wanted = np.exp([urn.log_mass(ROOT, mask) for mask in seen])
    np.testing.assert_allclose(np.array(list(seen.values())) / n, wanted / wanted.sum(), atol=0.05)

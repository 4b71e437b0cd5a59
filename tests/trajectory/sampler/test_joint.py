from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import EXACT, MOVES, Joint, Sweep, TrajectoryError, Urn
from support.exactness import enumerate_joint, tiny_problem
from support.sampling import FixedEvidence, draw_prior
from trajectory import oracle


@st.composite
def problems(draw):
    customers = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    joint = tiny_problem(
        draw(st.integers(0, 10**6)),
        customers,
        products=draw(st.integers(1, 4)),
        keep=draw(st.sampled_from([None, 0.5, 0.9])),
        allow_empty=draw(st.booleans()),
        alpha=draw(st.sampled_from([0.2, 1.0, 5.0])),
    )
    masks = list(joint.urn.pool.masks())
    paths = tuple(tuple(draw(st.sampled_from(masks)) for _ in range(t)) for t in customers)
    order = draw(st.permutations([m for m, t in enumerate(customers) for _ in range(t)]))
    return joint, paths, order


@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_closed_form_is_the_product_of_urn_conditionals_in_any_order_of_customers(problem):
    joint, paths, order = problem
    naive = oracle.log_joint(joint.urn, joint.evidence, paths, order)
    assert joint.log_joint(paths) == pytest.approx(naive, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"keep": 0.8}, {"allow_empty": True, "keep": 0.9}])
def test_the_prior_over_all_paths_adds_up_to_one(options):
    joint = tiny_problem(0, (2, 2), products=2, spread=0.0, **options)
    masks = list(joint.urn.pool.masks())
    every = [tuple(itertools.product(masks, repeat=t)) for t in joint.customers]
    total = math.fsum(math.exp(joint.log_joint(paths)) for paths in itertools.product(*every))
    assert total == pytest.approx(1.0, abs=1e-12)


@given(problems(), st.sampled_from([*[(name,) for name in MOVES], EXACT]), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_after_any_move_the_log_joint_in_the_state_is_that_of_its_paths(problem, moves, seed):
    joint, paths, _ = problem
    rng = np.random.default_rng(seed)
    before = joint.state(paths)
    state = before
    for _ in range(3):
        state, _ = Sweep(joint, moves).step(rng, state)
        assert state.log_joint == joint.log_joint(state.paths)  # to the bit, so that resuming is too
        assert state.log_joint == pytest.approx(
            oracle.log_joint(
                joint.urn, joint.evidence, state.paths, [m for m, t in enumerate(joint.customers) for _ in range(t)]
            )
        )
    assert before == joint.state(paths)  # moves are pure


def test_prior_draws_follow_the_urn():
    """Total variation over 9 states at 40,000 independent draws: its expectation is 0.004; 0.012 is never seen."""
    joint = tiny_problem(1, (1, 1), products=2, spread=0.0)
    exact = enumerate_joint(joint)
    rng = np.random.default_rng(0)
    n = 40_000
    seen = dict.fromkeys(exact, 0)
    for _ in range(n):
        seen[draw_prior(joint, rng).paths] += 1
    assert 0.5 * sum(abs(seen[paths] / n - p) for paths, p in exact.items()) < 0.012


def test_a_composition_of_tiny_mass_in_a_large_pool_has_a_finite_joint():
    pool = Pool.of(*(f"SE[x{i}]" for i in range(400)), probability=0.01)
    whole = (1 << 400) - 1  # H0 = 10⁻⁸⁰⁰: no float
    joint = Joint(Urn(pool), FixedEvidence.flat([3, 1]), (whole, whole ^ 1, 1, 3))
    state = joint.state(((whole, whole, whole), (1,)))
    assert math.isfinite(state.log_joint)
    rng = np.random.default_rng(0)
    for name in EXACT:
        assert math.isfinite(Sweep(joint, (name,)).step(rng, state)[0].log_joint)
    with pytest.raises(TrajectoryError, match="400 products has too many compositions to list: name the candidates"):
        Sweep(Joint(Urn(pool), FixedEvidence.flat([3, 1])), ("seat",)).step(rng, state)


def test_bad_paths_and_evidences_are_named():
    joint = tiny_problem(0, (2, 1), products=2)
    with pytest.raises(TrajectoryError, match="lengths"):
        joint.state(((1,), (1,)))
    with pytest.raises(TrajectoryError, match="user 1, batch 0"):
        joint.state(((1, 1), (0,)))
    with pytest.raises(TrajectoryError, match="at least one batch"):
        Joint(joint.urn, FixedEvidence.flat([2, 0]))
    broken = Joint(joint.urn, FixedEvidence([2, 1], lambda user, mask: [math.nan, 0.0][: 2 - user]))
    with pytest.raises(TrajectoryError, match=r"LIN\[x\] for user 0"):
        broken.state(((1, 1), (1,)))
    short = Joint(joint.urn, FixedEvidence([2, 1], {(0, 1): [0.0]}))
    with pytest.raises(TrajectoryError, match="must be 2 numbers"):
        short.row(0, 1)
    with pytest.raises(TrajectoryError, match="no evidence is given"):
        short.row(1, 1)
    impossible = Joint(joint.urn, FixedEvidence([1], lambda user, mask: [-math.inf if mask == 1 else 0.0]))
    with pytest.raises(TrajectoryError, match="probability zero"):
        impossible.state(((1,),))


def test_a_composition_of_evidence_zero_is_never_visited():
    joint = tiny_problem(0, (3, 2), products=2)
    table = joint.evidence

    def values(user, mask):
        return np.full(joint.customers[user], -np.inf) if mask == 3 else table.log_evidence(user, mask)

    cut = Joint(joint.urn, FixedEvidence(joint.customers, values))
    rng = np.random.default_rng(0)
    state = cut.state(((1, 1, 2), (1, 2)))
    for _ in range(200):
        state, _ = Sweep(cut, EXACT).step(rng, state)
        assert all(mask != 3 for path in state.paths for mask in path)


def test_an_urn_travels_to_another_process():
    urn = Urn(Pool.paper(), alpha=2.0, keep=0.9)
    again = pickle.loads(pickle.dumps(urn))
    assert (again.pool, again.alpha, again.keep) == (urn.pool, 2.0, 0.9)
    assert again.log_mass(3, 5) == urn.log_mass(3, 5)


@pytest.mark.parametrize(("alpha", "keep"), [(0.0, None), (math.inf, None), (1.0, 0.0), (1.0, 1.0)])
def test_an_urn_of_impossible_parameters_is_refused(alpha, keep):
    with pytest.raises(TrajectoryError):
        Urn(Pool.paper(), alpha=alpha, keep=keep)

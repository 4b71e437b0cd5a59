"""Online states: the same answers as the posterior, in a size that rows do not change."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.errors import DataError, KernelError
from kerneltrail.gp import LinearBlock, OnlineState, Posterior, prior_only
from kerneltrail.kernels import Hyperparameters, parse

from . import problems as gp

LOW, HIGH = (-4.0, 0.0), (4.0, 1.0)
SINGLE = ("LIN[x]", "PER[x]", "SE[x]", "SE[z]", "LIN[x]*PER[x]", "LIN[z]*SE[x]", "LIN[x]*LIN[z]")
"""Products of at most one series: those of two have hundreds of features, which widening takes seconds for."""

singles = st.lists(st.sampled_from(SINGLE), max_size=3, unique=True).map(lambda texts: parse(" + ".join(texts)))
single_problems = st.builds(gp.problem, singles, gp.splits, st.integers(0, 2**32 - 1), with_block=st.booleans())


def start(problem, low=LOW, high=HIGH, **options):
    prior = None if problem.block is None else problem.block.covariance
    return OnlineState.start(problem.hyperparameters, gp.COVARIATES, low=low, high=high, linear=prior, **options)


def run(state, problem):
    for X, y, linear in problem.pieces:
        state = state.update(X, y, **linear)
    return state


def moved(problem, X):
    """The problem at other rows."""
    user = User("u", gp.COVARIATES, X, problem.user.y, problem.user.ends)
    return gp.Problem(user, problem.hyperparameters, problem.block, problem.new, problem.features)


# Agreement


@settings(max_examples=40, deadline=None)
@given(gp.problems)
@example(gp.problem("", (3, 2), 0))
@example(gp.problem("", (3, 2), 0, with_block=True))
@example(gp.problem("LIN[x] + PER[x] + SE[z]", (1, 50, 3), 1, with_block=True))
def test_the_state_after_batches_is_the_posterior(problem):
    try:
        state = start(problem, max_rank=400)
    except KernelError:
        assume(False)
    state = run(state, problem)
    gp.assert_same(state, gp.fitted(problem), problem, 1e-7)
    assert state.rows == problem.user.rows
    assert state.widening_error == 0.0


@settings(max_examples=25, deadline=None)
@given(single_problems)
def test_one_piece_is_many_pieces(problem):
    linear = {} if problem.block is None else {"linear": problem.block.features}
    many, one = run(start(problem), problem), start(problem).update(problem.user.X, problem.user.y, **linear)
    np.testing.assert_allclose(many.gram, one.gram, rtol=1e-12, atol=1e-12 * np.abs(one.gram).max())
    gp.assert_same(many, one, problem, 1e-9)
    # In any order, too: sums have none.
    order = np.random.default_rng(0).permutation(problem.user.rows)
    shuffled = start(problem).update(
        problem.user.X[order], problem.user.y[order], **{k: v[order] for k, v in linear.items()}
    )
    np.testing.assert_allclose(shuffled.gram, one.gram, rtol=1e-12, atol=1e-12 * np.abs(one.gram).max())


def test_the_features_inner_product_is_the_kernel():
    problem = gp.problem("LIN[x] + PER[x] + SE[z] + LIN[z]*SE[x]", (20,), 3)
    state = start(problem)
    phi = state.basis.features(problem.user.X)
    h = problem.hyperparameters
    owner = state.basis.owner()
    for p in range(len(h.composition)):
        own = phi[owner == p]
        exact = gp.product_covariance(h, p, problem.user.X, problem.user.X)
        # Dropped weight: 2e-8·σ²/(4 products · 1e5 rows) and rounding.
        np.testing.assert_allclose(own.T @ own, exact, atol=1e-12 * max(1.0, np.abs(exact).max()))
    assert len(phi) == state.basis.rank == state.basis.widths.sum()


# Size


def test_the_size_does_not_depend_on_the_rows():
    problem = gp.problem("LIN[x] + PER[x] + SE[z]", (40,), 4, with_block=True)
    state = start(problem)
    shape = state.gram.shape
    size = len(pickle.dumps(state))
    assert shape == (state.basis.rank + 3 + 1,) * 2
    for _ in range(20):
        state = state.update(problem.user.X, problem.user.y, linear=problem.block.features)
        assert state.gram.shape == shape
    assert state.rows == 800
    assert len(pickle.dumps(state)) < size + 100_000  # what is cached of the basis, but no rows


def test_many_rows_agree_with_a_direct_regression_on_the_features():
    problem = gp.problem("LIN[x] + PER[x] + SE[x]", (5,), 5)
    rng = np.random.default_rng(1)
    X = gp.rows(rng, 20_000)
    y = X[:, 0] + np.sin(X[:, 0]) + rng.standard_normal(20_000)
    state = start(problem)
    for piece in range(0, 20_000, 500):
        state = state.update(X[piece : piece + 500], y[piece : piece + 500])
    assert state.rows == 20_000
    found = state.predict(problem.new)
    assert np.isfinite(found.mean).all()
    assert math.isfinite(state.log_evidence)
    # Ridge regression by least squares on the rows themselves, with the prior as rows of its own.
    phi, noise = state.basis.features(X), problem.hyperparameters["noise"]
    r = len(phi)
    stacked, target = np.vstack([phi.T, math.sqrt(noise) * np.eye(r)]), np.concatenate([y, np.zeros(r)])
    q, upper = np.linalg.qr(stacked)
    weights = np.linalg.solve(upper, q.T @ target)
    new = state.basis.features(problem.new)
    np.testing.assert_allclose(found.mean, weights @ new, atol=1e-7)
    spread = np.linalg.solve(upper.T, new)
    np.testing.assert_allclose(found.variance, noise * (spread**2).sum(axis=0), rtol=1e-5, atol=1e-12)
    residual = target - stacked @ weights
    logdet = 2.0 * np.log(np.abs(np.diagonal(upper))).sum() + (20_000 - r) * math.log(noise)
    expected = -0.5 * (residual @ residual / noise + logdet + 20_000 * math.log(2 * math.pi))
    assert state.log_evidence == pytest.approx(expected, rel=1e-9)


# Values outside the box


@settings(max_examples=25, deadline=None)
@given(single_problems, st.floats(0.05, 0.9))
def test_values_outside_the_box_widen_it(problem, share):
    state = start(problem, low=(-4.0 * share, 0.5 - 0.5 * share), high=(4.0 * share, 0.5 + 0.5 * share))
    state = run(state, problem)
    gp.assert_same(state, gp.fitted(problem), problem, 1e-5)
    assert (np.array(state.basis.low) <= problem.user.X.min(axis=0)).all()
    assert (np.array(state.basis.high) >= problem.user.X.max(axis=0)).all()


@pytest.mark.parametrize("text", ["SE[x]", "LIN[x] + PER[x]", "LIN[x]*SE[x] + SE[z]", "LIN[x]*PER[x] + SE[x]"])
@pytest.mark.parametrize("step", [1.5, -6.0])
def test_a_drifting_covariate_widens_again_and_again(text, step):
    problem = gp.problem(text, (10,) * 12, 6, with_block=True)
    drift = np.stack([np.repeat(step * np.arange(12), 10), np.zeros(120)], axis=1)
    problem = moved(problem, problem.user.X * [0.25, 1.0] + drift)
    state, boxes = start(problem, low=(-1.0, 0.0), high=(1.0, 1.0)), set()
    for X, y, linear in problem.pieces:
        state = state.update(X, y, **linear)
        boxes.add((state.basis.low, state.basis.high))
    assert 2 <= len(boxes) <= 11
    gp.assert_same(state, gp.fitted(problem), problem, 1e-5)
    assert 0.0 < state.widening_error < 1e-4


def test_products_of_two_series_widen_too():
    h = Hyperparameters.from_values(parse("SE[x]*SE[z]"), [2.0, 4.0, 1.5, 0.3])
    drawn = gp.problem("SE[x]*SE[z]", (15, 15), 7)
    problem = gp.Problem(drawn.user, h, None, drawn.new, None)
    state = run(start(problem, low=(-1.0, 0.4), high=(1.0, 0.6)), problem)
    gp.assert_same(state, gp.fitted(problem), problem, 1e-5)


def test_a_prediction_outside_the_box_leaves_the_state_as_it_is():
    problem = gp.problem("LIN[x] + SE[x]", (20,), 8)
    state = run(start(problem), problem)
    basis, gram = state.basis, state.gram.copy()
    far = np.array([[-9.0, 0.5], [12.0, 0.5]])
    found, exact = state.predict(far), gp.fitted(problem).predict(far)
    scale = exact.variance.max()
    np.testing.assert_allclose(found.mean, exact.mean, atol=1e-5 * scale)
    np.testing.assert_allclose(found.variance, exact.variance, atol=1e-5 * scale)
    assert state.basis == basis
    np.testing.assert_array_equal(state.gram, gram)


def test_widening_before_any_row_is_free():
    problem = gp.problem("SE[x]", (20,), 9, with_block=True)
    state = run(start(problem, low=(50.0, 0.0), high=(51.0, 1.0)), problem)
    assert state.widening_error == 0.0
    gp.assert_same(state, gp.fitted(problem), problem, 1e-7)


def test_an_outlier_that_would_need_too_many_features_is_refused():
    problem = gp.problem("SE[x]", (20,), 10)
    state = run(start(problem, max_rank=300), problem)
    with pytest.raises(KernelError, match=r"SE\[x\] needs \d+ features on x from .* more than 300: grow a Posterior"):
        state.update([[1e5, 0.5]], [1.0])
    with pytest.raises(KernelError, match="more than 300"):
        state.predict([[1e5, 0.5]])
    gp.assert_same(state, gp.fitted(problem), problem, 1e-7)  # and it still works


# Edges


@settings(max_examples=15, deadline=None)
@given(single_problems)
def test_before_any_row_predictions_are_the_priors(problem):
    state = start(problem)
    assert state.rows == 0
    assert state.log_evidence == 0.0
    gp.assert_same(state, prior_only(problem.hyperparameters, gp.COVARIATES, block=problem.block), problem, 1e-9)


def test_no_rows_change_nothing():
    for with_block in (False, True):
        problem = gp.problem("SE[x]", (5,), 11, with_block=with_block)
        state = run(start(problem), problem)
        assert state.update(np.empty((0, 2)), [], linear=np.empty((0, 3)) if with_block else None) is state
        nothing = {"linear": np.empty((0, 3))} if with_block else {}
        assert state.predict(np.empty((0, 2)), **nothing).mean.shape == (0,)
        assert all(part.mean.shape == (0,) for part in state.components(np.empty((0, 2)), **nothing))


def test_updating_leaves_the_old_state_and_aliases_nothing():
    problem = gp.problem("LIN[x] + SE[z]", (6, 5), 12, with_block=True)
    (X, y, linear), (more, target, features) = problem.pieces
    old = start(problem).update(X, y, **linear)
    gram, before = old.gram.copy(), old.predict(problem.new, **problem.linear)
    arrays = more.copy(), target.copy(), features["linear"].copy()
    new = old.update(arrays[0], arrays[1], linear=arrays[2])
    expected = new.predict(problem.new, **problem.linear)
    for array in arrays:
        array[:] = 1e6
    np.testing.assert_array_equal(old.gram, gram)
    np.testing.assert_array_equal(old.predict(problem.new, **problem.linear).mean, before.mean)
    np.testing.assert_array_equal(new.predict(problem.new, **problem.linear).mean, expected.mean)
    assert (old.rows, new.rows) == (6, 11)
    prior = np.eye(3)
    state = OnlineState.start(problem.hyperparameters, gp.COVARIATES, low=LOW, high=HIGH, linear=prior)
    prior[:] = 7.0
    np.testing.assert_array_equal(state.linear, np.eye(3))


def test_a_pickled_state_goes_on_as_if_nothing_had_happened():
    problem = gp.problem("LIN[x] + PER[x]", (6, 5), 13, with_block=True)
    (X, y, linear), (more, target, features) = problem.pieces
    state = start(problem).update(X, y, **linear)
    copy = pickle.loads(pickle.dumps(state))
    one, other = (each.update(more, target, **features) for each in (state, copy))
    np.testing.assert_array_equal(one.gram, other.gram)
    assert one.log_evidence == other.log_evidence
    assert one.basis == other.basis


@pytest.mark.parametrize("prior", [np.ones((2, 2)), np.diag([1.0, 0.0]), np.zeros((2, 2)), np.diag([1e8, 1e-8])])
def test_a_linear_prior_may_be_singular_or_lopsided(prior):
    problem = gp.problem("SE[x]", (15,), 14)
    B, F = np.random.default_rng(0).normal(size=(15, 2)), np.random.default_rng(1).normal(size=(7, 2))
    block = LinearBlock(B, prior, ("a", "b"))
    state = OnlineState.start(problem.hyperparameters, gp.COVARIATES, low=LOW, high=HIGH, linear=prior)
    state = state.update(problem.user.X, problem.user.y, linear=B)
    exact = Posterior.fit(problem.user, problem.hyperparameters, block=block)
    assert state.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    one, other = state.predict(problem.new, linear=F), exact.predict(problem.new, linear=F)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(one.variance, other.variance, atol=1e-6 * max(1.0, prior.max() * 1e-2))


@pytest.mark.parametrize("case", ["one row", "constant", "duplicates", "targets × 1e6"])
def test_degenerate_rows_are_taken(case):
    X, y = {
        "one row": ([[0.3, 0.4]], [1.2]),
        "constant": (np.full((20, 2), 0.5), np.full(20, 3.0)),
        "duplicates": (np.repeat([[0.1, 0.9], [0.5, 0.2]], 10, axis=0), np.arange(20.0)),
        "targets × 1e6": (gp.rows(np.random.default_rng(0), 20), 1e6 * np.random.default_rng(1).normal(size=20)),
    }[case]
    user = User("u", gp.COVARIATES, X, y, (len(y),))
    h = gp.problem("LIN[x] + PER[x] + SE[z]", (1,), 15).hyperparameters
    # A box without width: the margin alone.
    state = OnlineState.start(h, gp.COVARIATES, low=0.5, high=0.5, margin=6.0).update(user.X, user.y)
    exact, new = Posterior.fit(user, h), gp.rows(np.random.default_rng(2), 5)
    size = max(1.0, np.abs(user.y).max())
    np.testing.assert_allclose(state.predict(new).mean, exact.predict(new).mean, atol=1e-7 * size)
    assert state.log_evidence == pytest.approx(exact.log_evidence, rel=1e-7, abs=1e-7)


# Refusals


@pytest.mark.usefixtures("new_atoms")
def test_an_atom_without_a_series_is_refused_by_name():
    composition = parse("LIN[x] + MATERN52[x]")
    h = Hyperparameters(composition, (0.0,) * 5)
    with pytest.raises(KernelError, match=r"LIN\[x\] \+ MATERN52\[x\] has an atom without a spectral form"):
        OnlineState.start(h, ("x",), low=0.0, high=1.0)


def test_what_cannot_be_read_is_refused_by_name():
    plain, block = (gp.problem("SE[x]", (6,), 16, with_block=b) for b in (False, True))
    state, with_block = run(start(plain), plain), run(start(block), block)
    row = [[0.1, 0.2]]
    with pytest.raises(KernelError, match=r"needs .* features on x from -6 to 6, z from -0.25 to 1.25, more than 10"):
        start(plain, max_rank=10)
    for method in (state.predict, state.components):
        with pytest.raises(DataError, match=r"rows need 2 columns \(x, z\), got shape \(1, 3\)"):
            method([0.1, 0.2, 0.3])
        with pytest.raises(DataError, match="z of row 0 is not finite"):
            method([[0.1, np.nan]])
        with pytest.raises(DataError, match="no linear block, but features were given"):
            method(row, linear=[[1.0]])
    with pytest.raises(DataError, match="x of row 0 is not finite"):
        state.update([[np.inf, 0.0]], [1.0])
    with pytest.raises(DataError, match="rows need 2 columns"):
        state.update([[0.1]], [1.0])
    for wrong in ([1.0, 2.0], [np.nan], [[1.0]], []):
        with pytest.raises(DataError, match="1 rows needs as many finite targets"):
            state.update(row, wrong)
    with pytest.raises(DataError, match="needs its features at these rows: linear="):
        with_block.update(row, [1.0])
    with pytest.raises(DataError, match="linear= needs shape"):
        with_block.predict(row, linear=[[1.0, 2.0]])
    with pytest.raises(DataError, match="linear=: row 0 is not finite"):
        with_block.update(row, [1.0], linear=[[1.0, np.nan, 0.0]])
    for low, high in ((1.0, 0.0), (np.nan, 1.0), (0.0, np.inf)):
        with pytest.raises(DataError, match="finite low ≤ high"):
            start(plain, low=low, high=high)
    for prior in ([1.0, 2.0], [[np.nan]]):
        with pytest.raises(DataError, match="prior covariance"):
            OnlineState.start(plain.hyperparameters, gp.COVARIATES, low=LOW, high=HIGH, linear=prior)
    with pytest.raises(DataError, match="reads x"):
        OnlineState.start(plain.hyperparameters, ("a",), low=0.0, high=1.0)

"""Posteriors that grow row by row, against refitting."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings

from kerneltrail.data.user import User
from kerneltrail.gp import Posterior, prior_only
from kerneltrail.kernels import Hyperparameters, parse

from . import oracle
from . import problems as gp

FAST = settings(max_examples=30, deadline=None)


@settings(max_examples=60, deadline=None)
@given(gp.problems)
@example(gp.problem("SE[x]", (1, 1, 1, 50, 50), 0, with_block=True))
@example(gp.problem("", (1, 2), 0))
def test_grown_is_refitted(problem):
    (X, y, linear), *rest = problem.pieces
    first = None if problem.block is None else problem.block.at(linear["linear"])
    grown = Posterior.fit(User("u", gp.COVARIATES, X, y, (len(y),)), problem.hyperparameters, block=first)
    for X, y, linear in rest:
        grown = grown.grow(X, y, **linear)
    refitted = gp.fitted(problem)
    gp.assert_same(grown, refitted, problem, 1e-8)
    assert grown.rows == refitted.rows
    np.testing.assert_array_equal(grown.inputs.X, refitted.inputs.X)
    np.testing.assert_array_equal(grown.inputs.y, refitted.inputs.y)
    np.testing.assert_array_equal(grown.inputs.ends, refitted.inputs.ends)
    # The factors too: growing is exact, not merely good enough for a prediction.
    scale = np.abs(refitted.lower).max()
    np.testing.assert_allclose(np.tril(grown.lower), np.tril(refitted.lower), atol=1e-8 * scale)
    one, other = (each.covariance(problem.new, **problem.linear) for each in (grown, refitted))
    np.testing.assert_allclose(one, other, atol=1e-8 * gp.scale_of(problem))


@FAST
@given(gp.problems)
def test_grown_from_nothing_is_fitted(problem):
    grown = prior_only(problem.hyperparameters, gp.COVARIATES, block=problem.block)
    for X, y, linear in problem.pieces:
        grown = grown.grow(X, y, **linear)
    gp.assert_same(grown, gp.fitted(problem), problem, 1e-8)
    np.testing.assert_array_equal(grown.inputs.ends, problem.user.ends)


def test_row_by_row_is_all_at_once():
    problem = gp.problem("LIN[x] + PER[x] + SE[z]", (60,), 6, with_block=True)
    grown = prior_only(problem.hyperparameters, gp.COVARIATES, block=problem.block)
    for i in range(60):
        grown = grown.grow(problem.user.X[i], problem.user.y[i], linear=problem.block.features[i])
    gp.assert_same(grown, gp.fitted(problem), problem, 1e-9)


def test_growing_leaves_the_old_one_as_it_was_and_aliases_nothing():
    problem = gp.problem("LIN[x] + SE[z]", (6, 5), 7, with_block=True)
    (X, y, _), (more_X, more_y, more_linear) = problem.pieces
    old = Posterior.fit(User("u", gp.COVARIATES, X, y, (6,)), problem.hyperparameters, block=problem.block.rows(6))
    kept = {name: np.array(getattr(old, name)) for name in ("lower", "z", "alpha")}
    kept_rows = (old.inputs.X.copy(), old.inputs.y.copy(), old.inputs.block.features.copy())
    before = old.predict(problem.new, **problem.linear)
    more_X, more_y, features = more_X.copy(), more_y.copy(), more_linear["linear"].copy()
    new = old.grow(more_X, more_y, linear=features)
    expected = new.predict(problem.new, **problem.linear)
    part = new.components(problem.new, **problem.linear)[0]
    for array in (more_X, more_y, features):
        array[:] = 1e6
    assert (old.rows, new.rows) == (6, 11)
    for name, array in kept.items():
        np.testing.assert_array_equal(getattr(old, name), array, err_msg=name)
    for now, then in zip((old.inputs.X, old.inputs.y, old.inputs.block.features), kept_rows, strict=True):
        np.testing.assert_array_equal(now, then)
    after = old.predict(problem.new, **problem.linear)
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.variance, before.variance)
    np.testing.assert_array_equal(new.predict(problem.new, **problem.linear).mean, expected.mean)
    np.testing.assert_array_equal(new.components(problem.new, **problem.linear)[0].mean, part.mean)
    assert not np.shares_memory(old.lower, new.lower)


class Loose:
    """Rows that are not sealed: any object with these attributes may be fitted."""

    name, covariates, ends = "loose", ("x", "z"), (5,)

    def __init__(self):
        rng = np.random.default_rng(0)
        self.X, self.y = gp.rows(rng, 5), rng.normal(size=5)


def test_rows_changed_after_fitting_change_no_prediction():
    loose = Loose()
    h = Hyperparameters.from_values(parse("SE[x]"), [1.0, 1.0, 0.1])
    posterior = Posterior.fit(loose, h)
    before = posterior.predict([[0.3, 0.3]])
    loose.X[:], loose.y[:] = 9.0, 9.0
    after = posterior.predict([[0.3, 0.3]])
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.variance, before.variance)
    assert posterior.shares()["noise"] < 1.0


def test_growing_by_no_rows_changes_nothing():
    problem = gp.problem("SE[x]", (6,), 8, with_block=True)
    posterior = gp.fitted(problem)
    grown = posterior.grow(np.empty((0, 2)), [], linear=np.empty((0, 3)))
    gp.assert_same(grown, posterior, problem, 1e-15)
    np.testing.assert_array_equal(grown.inputs.ends, posterior.inputs.ends)


def test_growing_duplicates_with_next_to_no_noise_is_finite():
    h = Hyperparameters.from_values(parse("LIN[x] + SE[x]"), [1.0, 0.0, 1.0, 1.0, 1e-12])
    posterior = prior_only(h, ("x",))
    for _ in range(5):
        posterior = posterior.grow(np.full((4, 1), 0.5), np.full(4, 2.0))
    found = posterior.predict([[0.5], [3.0]])
    # Twenty equal rows are one of a twentieth of the noise: k(x, ½)/k(½, ½) of what was seen there.
    share = (3.0 * 0.5 + math.exp(-3.125)) / 1.25
    np.testing.assert_allclose(found.mean, [2.0, 2.0 * share], rtol=1e-9)
    np.testing.assert_allclose(found.variance, [1e-12 / 20, 10.0 - 1.25 * share**2], rtol=1e-6)
    user = User("u", ("x",), np.full((20, 1), 0.5), np.full(20, 2.0), (20,))
    expected = oracle.precise_grouped(user, h.composition, h.unconstrained, 20)
    assert posterior.log_evidence == pytest.approx(expected, abs=1e-3)

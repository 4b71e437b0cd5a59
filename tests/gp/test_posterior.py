"""The posterior against the textbook, explicit conditioning, refitting and scikit-learn."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.gp import LinearBlock, Posterior, log_evidence, prior_only
from kerneltrail.kernels import Hyperparameters, Priors, parse

from . import problems as gp

FAST = settings(max_examples=30, deadline=None)
small = st.builds(
    gp.problem,
    gp.compositions,
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
    with_block=st.booleans(),
)


# Predictions


@FAST
@given(small)
@example(gp.problem("", (3,), 0))
@example(gp.problem("", (3,), 0, with_block=True))
def test_predictions_are_the_textbooks(problem):
    posterior, naive, scale = gp.fitted(problem), gp.condition(problem), gp.scale_of(problem)
    found = posterior.predict(problem.new, **problem.linear)
    np.testing.assert_allclose(found.mean, naive.mean, atol=1e-9 * scale)
    np.testing.assert_allclose(found.variance, np.diagonal(naive.covariance), atol=1e-9 * scale)
    np.testing.assert_allclose(posterior.covariance(problem.new, **problem.linear), naive.covariance, atol=1e-9 * scale)
    assert found.noise == problem.hyperparameters["noise"]
    np.testing.assert_array_equal(found.total, found.variance + found.noise)
    assert posterior.log_evidence == pytest.approx(naive.log_evidence, rel=1e-9, abs=1e-9)


@FAST
@given(small)
def test_components_are_the_textbooks_and_add_up(problem):
    posterior, naive, scale = gp.fitted(problem), gp.condition(problem), gp.scale_of(problem)
    parts = posterior.components(problem.new, **problem.linear)
    expected = [*problem.hyperparameters.composition, *([] if problem.block is None else [None])]
    assert [part.product for part in parts] == expected
    for part, mean, covariance in zip(parts, naive.part_means, naive.part_covariances, strict=True):
        np.testing.assert_allclose(part.mean, mean, atol=1e-9 * scale)
        np.testing.assert_allclose(part.variance, np.diagonal(covariance), atol=1e-9 * scale)
    whole = posterior.predict(problem.new, **problem.linear).mean
    np.testing.assert_allclose(sum((part.mean for part in parts), np.zeros(len(whole))), whole, atol=1e-9 * scale)


@FAST
@given(gp.problems)
def test_evidence_is_the_engines(problem):
    h = problem.hyperparameters
    engine = log_evidence(problem.user, h.composition, h.vector, block=problem.block, method="dense")
    assert gp.fitted(problem).log_evidence == pytest.approx(engine[0, -1], rel=1e-12, abs=1e-10)


@pytest.mark.parametrize(
    "text", ["LIN[x]", "PER[x]", "SE[x]", "LIN[x] + PER[x]", "SE[x]*SE[z] + LIN[z]", "PER[x]*SE[z] + LIN[x]*SE[x]"]
)
def test_predictions_are_scikit_learns(text):
    regression = pytest.importorskip("sklearn.gaussian_process")
    from kerneltrail.adapters.sklearn import to_sklearn

    problem = gp.problem(text, (30,), 1)
    kernel = to_sklearn(problem.hyperparameters, gp.COVARIATES)
    theirs = regression.GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    theirs.fit(problem.user.X, problem.user.y)
    # Theirs predicts observations: their variance includes the noise.
    mean, covariance = theirs.predict(problem.new, return_cov=True)
    ours = gp.fitted(problem).predict(problem.new)
    scale = gp.scale_of(problem)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-8 * scale)
    np.testing.assert_allclose(ours.total, np.diagonal(covariance), atol=1e-8 * scale)
    assert gp.fitted(problem).log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


def test_log_density_is_the_normal_distributions():
    problem = gp.problem("LIN[x] + SE[z]", (12,), 2)
    found = gp.fitted(problem).predict(problem.new)
    y = np.random.default_rng(0).normal(0.0, 3.0, len(problem.new))
    expected = scipy.stats.norm(found.mean, np.sqrt(found.total)).logpdf(y)
    np.testing.assert_allclose(found.log_density(y), expected, rtol=1e-12)
    # One more row: its density is what the evidence grows by.
    grown = gp.fitted(problem).grow(problem.new[:1], y[:1])
    assert grown.log_evidence - gp.fitted(problem).log_evidence == pytest.approx(found.log_density(y)[0], abs=1e-9)
    for wrong in (y[0], y[:1], y[:, None]):
        with pytest.raises(DataError, match="7 rows needs as many targets"):
            found.log_density(wrong)


def test_variance_is_never_negative_however_many_rows_say_the_same():
    h = Hyperparameters.from_values(parse("SE[x]"), [1e4, 1.0, 1e-8])
    x = np.repeat(np.linspace(-1.0, 1.0, 10), 30)[:, None]
    user = User("u", ("x",), x, np.sin(x[:, 0]), (300,))
    found = Posterior.fit(user, h).predict(x)
    assert (found.variance >= 0.0).all()
    assert (found.variance < 1e-4).all()


# Draws


def test_draws_have_the_posteriors_moments():
    # Whitened draws are standard normal: mean and covariance are tested by chi-square statistics with a chance of a
    # false alarm of 1e-6 each, with a fixed seed.
    problem = gp.problem("LIN[x] + PER[x] + SE[z]", (9,), 3, with_block=True, new=4)
    posterior, size = gp.fitted(problem), 4000
    for noise in (False, True):
        draws = posterior.sample(problem.new, size, np.random.default_rng(0), noise=noise, **problem.linear)
        assert draws.shape == (size, 4)
        covariance = posterior.covariance(problem.new, **problem.linear)
        covariance += noise * problem.hyperparameters["noise"] * np.eye(4)
        away = draws - posterior.predict(problem.new, **problem.linear).mean
        white = np.linalg.solve(np.linalg.cholesky(covariance), away.T)
        by_mean = size * (white.mean(axis=1) ** 2).sum()
        assert scipy.stats.chi2(4).sf(by_mean) > 1e-6
        # Each draw's squared length is chi-square of 4; so are sums over draws, which tests the overall scale.
        total = (white**2).sum()
        assert min(scipy.stats.chi2(4 * size).sf(total), scipy.stats.chi2(4 * size).cdf(total)) > 1e-6
        # Products of different coordinates: variance 1/size each.
        second = white @ white.T / size
        assert np.abs(second[np.triu_indices(4, 1)]).max() < scipy.stats.norm.isf(1e-6 / 12) / math.sqrt(size)


def test_draws_repeat_with_the_seed_and_follow_the_generator():
    problem = gp.problem("SE[x]", (5,), 4)
    posterior = gp.fitted(problem)
    one, again = (posterior.sample(problem.new, 3, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, posterior.sample(problem.new, 3, np.random.default_rng(8)))
    assert posterior.sample(np.empty((0, 2)), 3, np.random.default_rng(7)).shape == (3, 0)


@pytest.mark.parametrize("noise", [1e-10, 1e-6, 1.0])
def test_draws_at_rows_seen_and_repeated_are_possible(noise):
    h = Hyperparameters.from_values(parse("SE[x]"), [2.0, 0.5, noise])
    x = np.random.default_rng(0).uniform(0.0, 1.0, (25, 1))
    posterior = Posterior.fit(User("u", ("x",), x, np.sin(3 * x[:, 0]), (25,)), h)
    draws = posterior.sample(np.vstack([x, x]), 5, np.random.default_rng(1))
    # The draws of a row given twice differ by the jitter only: a millionth of the prior's standard deviation, times 8.
    assert np.abs(draws[:, :25] - draws[:, 25:]).max() < 8 * 1e-6 * math.sqrt(2 * 2.0) + 1e-5
    if noise < 1e-5:
        assert np.abs(draws[:, :25] - np.sin(3 * x[:, 0])).max() < 0.02


def test_draws_without_a_kernel_are_zero():
    posterior = prior_only(Hyperparameters.from_values(parse(""), [0.5]), ("x",))
    np.testing.assert_allclose(posterior.sample([[1.0], [2.0]], 3, np.random.default_rng(0)), 0.0, atol=1e-100)


# Shares


@FAST
@given(small)
def test_shares_add_up_to_one(problem):
    shares = gp.fitted(problem).shares()
    assert set(shares) == {*problem.hyperparameters.composition, "noise", *([] if problem.block is None else [None])}
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(0.0 <= share <= 1.0 for share in shares.values())
    assert shares["noise"] > 0.0


def test_shares_are_the_variances_of_the_parts_over_the_rows_seen():
    problem = gp.problem("LIN[x] + PER[x]", (15,), 5)
    posterior = gp.fitted(problem)
    sizes = [np.var(part.mean) for part in posterior.components(problem.user.X)] + [problem.hyperparameters["noise"]]
    np.testing.assert_allclose(list(posterior.shares().values()), np.array(sizes) / sum(sizes), rtol=1e-12)


# Before any row


@FAST
@given(small)
def test_before_any_row_predictions_are_the_priors(problem):
    h = problem.hyperparameters
    posterior = prior_only(h, gp.COVARIATES, block=problem.block)
    found = posterior.predict(problem.new, **problem.linear)
    prior = sum((gp.product_covariance(h, p, problem.new, problem.new) for p in range(len(h.composition))),
                np.zeros((len(problem.new),) * 2))  # fmt: skip
    if problem.block is not None:
        prior = prior + problem.features @ problem.block.covariance @ problem.features.T
    np.testing.assert_array_equal(found.mean, 0.0)
    np.testing.assert_allclose(found.variance, np.diagonal(prior), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance(problem.new, **problem.linear), prior, rtol=1e-9, atol=1e-9)
    assert posterior.rows == 0
    assert posterior.log_evidence == 0.0
    assert len(posterior.components(problem.new, **problem.linear)) == len(h.composition) + (problem.block is not None)


# Refusals


def test_what_cannot_be_read_is_refused_by_name():
    plain, block = (gp.fitted(gp.problem("SE[x]", (6,), 9, with_block=b)) for b in (False, True))
    row, features = [[0.1, 0.2]], [[1.0, 2.0, 3.0]]
    with pytest.raises(DataError, match=r"rows need 2 columns \(x, z\), got shape \(1, 3\)"):
        plain.predict([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="rows need 2 columns"):
        plain.predict(np.zeros((1, 2, 1)))
    with pytest.raises(DataError, match="z of row 1 is not finite"):
        plain.predict([[0.0, 0.0], [0.0, np.nan]])
    with pytest.raises(DataError, match="x of row 0 is not finite"):
        plain.components([[np.inf, 0.0]])
    with pytest.raises(DataError, match="no linear block, but features were given"):
        plain.predict(row, linear=features)
    with pytest.raises(DataError, match=r"needs its features \(a, b, c\) at these rows: linear="):
        block.predict(row)
    with pytest.raises(DataError, match=r"linear= needs shape \(1, 3\), got \(1, 2\)"):
        block.sample(row, 2, np.random.default_rng(0), linear=[[1.0, 2.0]])
    with pytest.raises(DataError, match="linear=: row 0 is not finite"):
        block.predict(row, linear=[[1.0, np.nan, 3.0]])
    for wrong in ([1.0, 2.0], [np.nan], [[1.0]], []):
        with pytest.raises(DataError, match="1 rows needs as many finite targets"):
            plain.grow(row, wrong)
    with pytest.raises(DataError, match="linear="):
        block.grow(row, [1.0])
    with pytest.raises(DataError, match="no linear block"):
        plain.weights()


def test_a_block_or_a_column_that_does_not_fit_is_refused():
    problem = gp.problem("SE[x]", (6,), 10, with_block=True)
    with pytest.raises(DataError, match="a linear block of 4 rows for 6 targets"):
        Posterior.fit(problem.user, problem.hyperparameters, block=problem.block.rows(4))
    with pytest.raises(DataError, match="reads x, which user 'u' does not have"):
        Posterior.fit(User("u", ("a",), [[1.0]], [1.0], (1,)), problem.hyperparameters)
    with pytest.raises(DataError, match="reads x, which user 'new' does not have"):
        prior_only(problem.hyperparameters, ("a",))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_targets_of_any_scale_are_predicted_in_it(scale):
    # Predictions are linear in the target, so a rescaled user has rescaled predictions.
    problem = gp.problem("LIN[x] + SE[z]", (20,), 11)
    user = problem.user
    scaled = Posterior.fit(User("u", gp.COVARIATES, user.X, user.y * scale, (20,)), problem.hyperparameters)
    expected = gp.fitted(problem).predict(problem.new).mean * scale
    np.testing.assert_allclose(scaled.predict(problem.new).mean, expected, rtol=1e-8)


def test_a_constant_covariate_and_one_row_are_fitted():
    h = Hyperparameters(parse("LIN[x] + PER[x]"), tuple(Priors.synthetic().moments(parse("LIN[x] + PER[x]"))[0]))
    user = User("u", ("x",), np.full((5, 1), 0.7), [1.0, 2.0, 3.0, 2.0, 2.0], (1, 5))
    found = Posterior.fit(user, h).predict([[0.7], [100.0]])
    assert np.isfinite(found.mean).all()
    assert 1.0 < found.mean[0] < 2.0
    one = Posterior.fit(User("u", ("x",), [[0.7]], [3.0], (1,)), h)
    assert 0.0 < one.predict([[0.7]]).mean[0] < 3.0


def test_linear_block_with_a_singular_prior_is_one_feature_less():
    problem = gp.problem("SE[x]", (10,), 12)
    B = np.random.default_rng(0).normal(size=(10, 2))
    # Two features with one weight between them are their sum with that weight.
    twice = LinearBlock(B, np.ones((2, 2)), ("a", "b"))
    once = LinearBlock(B.sum(axis=1, keepdims=True), np.eye(1), ("a+b",))
    F = np.random.default_rng(1).normal(size=(7, 2))
    one = Posterior.fit(problem.user, problem.hyperparameters, block=twice).predict(problem.new, linear=F)
    other = Posterior.fit(problem.user, problem.hyperparameters, block=once).predict(
        problem.new, linear=F.sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-10)
    np.testing.assert_allclose(one.variance, other.variance, atol=1e-10)

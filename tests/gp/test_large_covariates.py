"""Covariates so large that squares of them round the noise away, against exact fractions."""

import numpy as np
import pytest
import scipy.stats

from kerneltrail.data.user import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock, OnlineState, Posterior, evidence_of, inputs_for, prior_only, slope_of
from kerneltrail.kernels import Hyperparameters, layout_of, parse

from . import oracle

NAMES = ("a", "b")
SCALES = (1.0, 1e2, 1e4, 1e6)
TEXTS = ("LIN[a]*LIN[b]", "LIN[a] + LIN[a]*LIN[b]", "LIN[a] + LIN[b] + LIN[a]*LIN[b]", "LIN[a]*LIN[a] + LIN[a]")
ENDS = (1, 7, 20)


def problem(text, scale, *, spread=0.1, noise=0.01):
    """Twenty rows around `scale`, and hyperparameters under which the noise is that of the target."""
    rng = np.random.default_rng(0)
    X = scale * (1.0 + spread * rng.standard_normal((20, 2)))
    y = X[:, 0] * X[:, 1] / scale**2 + np.sqrt(noise) * rng.standard_normal(20)
    values = {"noise": np.log(noise), "location": 0.3}
    theta = np.array([values.get(slot.spec.name, 0.0) for slot in layout_of(parse(text)).slots])
    return User("ann", NAMES, X, y, ENDS), parse(text), theta


@pytest.mark.parametrize("spread", [0.1, 1e-3])
@pytest.mark.parametrize("method", ["auto", "dense", "spectral"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("text", TEXTS)
def test_the_evidence_is_the_exact_one(text, scale, method, spread):
    user, composition, theta = problem(text, scale, spread=spread)
    expected = [oracle.Rational(user, composition, theta, rows).log_evidence for rows in ENDS]
    found = evidence_of(inputs_for(user, composition), theta, method=method)
    np.testing.assert_allclose(found.log[0], expected, rtol=0, atol=5e-4)
    slope = slope_of(inputs_for(user, composition), theta, method=method)
    assert slope.log[0] == pytest.approx(expected[-1], abs=5e-4)
    for k, slot in enumerate(layout_of(composition).slots):
        h = 1e-4 * (scale if slot.spec.name == "location" else 1.0)
        ahead, behind = (
            oracle.Rational(user, composition, theta + s * h * np.eye(len(theta))[k]).log_evidence for s in (1.0, -1.0)
        )
        unit = 1.0 / scale if slot.spec.name == "location" else 1.0
        difference = (ahead - behind) / (2 * h)
        assert slope.gradient[0, k] == pytest.approx(difference, rel=1e-3, abs=2e-3 * unit), slot.name


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("text", TEXTS)
def test_the_posterior_is_the_exact_one(text, scale):
    user, composition, theta = problem(text, scale)
    exact = oracle.Rational(user, composition, theta)
    posterior = Posterior.fit(user, Hyperparameters(composition, tuple(theta)))
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=5e-4)
    new = np.vstack([user.X[:3], scale * np.array([[1.0, 1.0], [0.0, 0.0], [-2.0, 0.5], [5.0, 5.0]])])
    found = posterior.predict(new)
    expected = np.array([exact.predict(row) for row in new])
    # The rounding of a factor differs between processors; beside a noise of sd 0.1 it must not be seen.
    np.testing.assert_allclose(found.mean, expected[:, 0], rtol=1e-5, atol=1e-4 * np.sqrt(exp(theta[-1])))
    np.testing.assert_allclose(found.variance, expected[:, 1], rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(posterior.covariance(new)), expected[:, 1], rtol=1e-3, atol=1e-7)
    parts = posterior.components(new)
    assert [part.product for part in parts] == list(composition)
    np.testing.assert_allclose(sum(part.mean for part in parts), found.mean, rtol=2e-5, atol=1e-5)
    shares = posterior.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    residual = user.y - posterior.predict(user.X).mean  # σ²K⁻¹y
    np.testing.assert_allclose(posterior.alpha * exp(theta[-1]), residual, atol=1e-5)


def exp(u):
    return float(np.exp(u))


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_growing_is_refitting(scale):
    user, composition, theta = problem(TEXTS[2], scale)
    h = Hyperparameters(composition, tuple(theta))
    grown = prior_only(h, NAMES)
    for start, end in ((0, 1), (1, 7), (7, 20)):
        grown = grown.grow(user.X[start:end], user.y[start:end])
    fitted = Posterior.fit(user, h)
    assert grown.log_evidence == pytest.approx(fitted.log_evidence, abs=1e-6)
    one, other = grown.predict(user.X), fitted.predict(user.X)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-6)
    assert grown.inputs.ends.tolist() == [1, 7, 20]
    # Rows of another order of magnitude, one by one.
    near = Posterior.fit(user.with_X(user.X / scale), h)
    far = near.grow(1e6 * np.ones((1, 2)), [1.0])
    both = User("ann", NAMES, np.vstack([near.inputs.X, 1e6 * np.ones((1, 2))]), np.append(user.y, 1.0), (21,))
    assert far.log_evidence == pytest.approx(oracle.Rational(both, composition, theta).log_evidence, abs=1e-3)


def test_draws_have_the_posteriors_moments():
    """Whitened by the exact mean and variance at one row; chances of a false alarm 1e-6 each, with a fixed seed."""
    user, composition, theta = problem(TEXTS[1], 1e6)
    posterior = Posterior.fit(user, Hyperparameters(composition, tuple(theta)))
    mean, variance = oracle.Rational(user, composition, theta).predict(user.X[3])
    for noise in (False, True):
        draws = posterior.sample(user.X[3:5], 4000, np.random.default_rng(0), noise=noise)[:, 0]
        white = (draws - mean) / np.sqrt(variance + noise * exp(theta[-1]))
        assert abs(white.mean()) * np.sqrt(4000) < scipy.stats.norm.isf(5e-7)
        total = (white**2).sum()
        assert min(scipy.stats.chi2(4000).sf(total), scipy.stats.chi2(4000).cdf(total)) > 1e-6


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
def test_series_times_lines_are_the_precise_ones(scale):
    """80-bit numbers hold this covariance, 64-bit ones do not."""
    text = "LIN[a]*SE[b] + LIN[a]"
    user, composition, theta = problem(text, scale)
    user = user.with_X(np.column_stack([user.X[:, 0], user.X[:, 1] / scale]))
    expected = oracle.precise(user, composition, theta).astype(float)
    for method in ("auto", "dense"):
        found = evidence_of(inputs_for(user, composition), theta, method=method).log[0]
        np.testing.assert_allclose(found, expected, atol=2e-3)
    posterior = Posterior.fit(user, Hyperparameters(composition, tuple(theta)))
    assert posterior.log_evidence == pytest.approx(expected[-1], abs=2e-3)
    # One more row: its density is what the evidence grows by. Outside the box of the rows as well.
    for b in (1.0, 2.5):
        row, y = np.array([[scale, b]]), np.array([1.1])
        more = User("ann", NAMES, np.vstack([user.X, row]), np.append(user.y, y), (20, 21))
        grown = oracle.precise(more, composition, theta).astype(float)
        assert posterior.predict(row).log_density(y)[0] == pytest.approx(grown[1] - grown[0], abs=5e-3)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_linear_block_goes_with_it(scale):
    """A block of constants is one more line through a column of ones, at a location of 0."""
    user, composition, theta = problem(TEXTS[1], scale)
    block = LinearBlock(np.ones((20, 1)), np.eye(1), ("constant",))
    wider = User("ann", (*NAMES, "one"), np.column_stack([user.X, np.ones(20)]), user.y, ENDS)
    longer = parse(f"{TEXTS[1]} + LIN[one]")
    names = layout_of(composition).names
    extended = np.array([0.0 if "one" in n else theta[names.index(n)] for n in layout_of(longer).names])
    exact = oracle.Rational(wider, longer, extended)
    posterior = Posterior.fit(user, Hyperparameters(composition, tuple(theta)), block=block)
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=5e-4)
    found = posterior.predict(user.X[:4], linear=np.ones((4, 1)))
    expected = np.array([exact.predict(row) for row in wider.X[:4]])
    np.testing.assert_allclose(found.mean, expected[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found.variance, expected[:, 1], rtol=1e-4)
    mean, covariance = posterior.weights()
    at_zero = exact.predict(np.array([0.3, 0.3, 1.0]))  # where LIN is nothing: the constant alone
    assert (mean[0], covariance[0, 0]) == pytest.approx(at_zero, rel=1e-4)
    assert [part.product for part in posterior.components(user.X, linear=block.features)][-1] is None


@pytest.mark.usefixtures("new_atoms")
def test_what_has_no_features_is_refused_by_name():
    user, _, _ = problem("LIN[a]", 1e6)
    composition = parse("LIN[a]*LIN[b]*MATERN52[b]")
    h = Hyperparameters.from_values(composition, [1.0, 0.0, 0.0, 1e6, 0.01])
    with pytest.raises(
        NumericalError,
        match=r"MATERN52\[b\] for user 'ann'.*too small beside variances of up to .* scale the covariates",
    ):
        Posterior.fit(user, h)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("text", TEXTS)
def test_an_online_state_is_right(text, scale):
    user, composition, theta = problem(text, scale)
    exact = oracle.Rational(user, composition, theta)
    h = Hyperparameters(composition, tuple(theta))
    state = OnlineState.start(h, NAMES, low=user.X.min(axis=0), high=user.X.max(axis=0)).update(user.X, user.y)
    assert state.log_evidence == pytest.approx(exact.log_evidence, abs=5e-4)
    found = state.predict(user.X)
    expected = np.array([exact.predict(row) for row in user.X])
    np.testing.assert_allclose(found.mean, expected[:, 0], rtol=1e-5)
    np.testing.assert_allclose(found.variance, expected[:, 1], rtol=1e-3)


def test_an_online_state_that_cannot_tell_is_refused():
    """Two lines so alike that their sums differ by rounding only."""
    composition = parse("LIN[a] + LIN[b]")
    h = Hyperparameters.from_values(composition, [1.0, 0.0, 1.0, 0.0, 1e-6])
    x = 1e6 * (1.0 + 0.1 * np.random.default_rng(0).standard_normal(20))
    state = OnlineState.start(h, NAMES, low=0.0, high=2e6).update(np.column_stack([x, x]), x / 1e6)
    with pytest.raises(NumericalError, match=r"online state of LIN\[a\] \+ LIN\[b\].*noise variance.*too small beside"):
        state.predict([[1e6, 1e6]])

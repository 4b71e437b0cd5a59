"""Predictions with heavy tails: against scipy's Student-t, and the Normal that they approach."""

import numpy as np
import pytest
from scipy import special, stats

from kerneltrail.gp.prediction import FEWEST, Prediction, freedom_of

MEAN, VARIANCE, NOISE = np.array([0.5, -1.0, 2.0]), np.array([0.2, 0.0, 3.0]), 0.7
FREEDOM = np.array([3.5, 8.0, 40.0])
STUDENT = Prediction(MEAN, VARIANCE, NOISE, freedom=FREEDOM)


def reference():
    """The same distribution by scipy: location, scale from the variance, degrees of freedom."""
    return stats.t(FREEDOM, MEAN, np.sqrt((VARIANCE + NOISE) * (FREEDOM - 2.0) / FREEDOM))


def test_density_and_intervals_are_scipys():
    y = np.array([0.1, -4.0, 2.5])
    np.testing.assert_allclose(STUDENT.log_density(y), reference().logpdf(y), rtol=1e-12)
    low, high = STUDENT.interval(0.9)
    np.testing.assert_allclose(low, reference().ppf(0.05), rtol=1e-9)
    np.testing.assert_allclose(high, reference().ppf(0.95), rtol=1e-9)


def test_mean_and_variance_are_as_stated():
    np.testing.assert_allclose(reference().var(), STUDENT.total)
    draws = STUDENT.draws(200_000, np.random.default_rng(0))[:, 1:]
    np.testing.assert_allclose(draws.mean(axis=0), MEAN[1:], atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), STUDENT.total[1:], rtol=0.03)


def test_the_function_itself_is_normal():
    plain = Prediction(MEAN, VARIANCE, NOISE)
    for one, other in zip(STUDENT.interval(0.9, noise=False), plain.interval(0.9, noise=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_degrees_of_freedom_are_a_normal():
    nearly, plain = Prediction(MEAN, VARIANCE, NOISE, freedom=np.full(3, 1e7)), Prediction(MEAN, VARIANCE, NOISE)
    np.testing.assert_allclose(nearly.log_density(MEAN + 1.0), plain.log_density(MEAN + 1.0), atol=1e-5)
    np.testing.assert_allclose(nearly.interval(0.9), plain.interval(0.9), rtol=1e-5)


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.05, 0.4, 0.9])
def test_degrees_of_freedom_have_the_log_variance_that_they_are_for(spread):
    freedom = float(freedom_of(spread))
    assert special.polygamma(1, 0.5 * freedom) == pytest.approx(spread, rel=1e-8)


def test_more_uncertainty_is_fewer_degrees_and_never_too_few():
    freedom = freedom_of(np.array([0.0, 0.01, 0.1, 1.0, 50.0]))
    assert (np.diff(freedom) <= 0.0).all()
    assert freedom[-1] == FEWEST
    assert np.isfinite(freedom).all()


def test_a_log_normal_scale_mixture_is_nearly_the_student():
    """Observations whose log variance is Normal with that spread: density within a hundredth of a nat on average."""
    rng = np.random.default_rng(1)
    spread = 0.3
    variances = np.exp(rng.normal(-0.5 * spread, np.sqrt(spread), 4000))
    y = np.sqrt(np.exp(rng.normal(-0.5 * spread, np.sqrt(spread), 2000))) * rng.standard_normal(2000)
    mixture = np.log(np.mean(stats.norm(0.0, np.sqrt(variances)[:, None]).pdf(y), axis=0))
    student = Prediction(np.zeros(2000), np.zeros(2000), 1.0, freedom=freedom_of(np.full(2000, spread))).log_density(y)
    normal = Prediction(np.zeros(2000), np.zeros(2000), 1.0).log_density(y)
    assert abs(np.mean(student - mixture)) < 0.01
    assert np.mean(normal - mixture) < -0.01


def test_normal_scores_are_where_observations_fell():
    y = np.array([0.1, -9.0, 2.5])
    np.testing.assert_allclose(special.ndtr(STUDENT.normal_scores(y)), reference().cdf(y), rtol=1e-9)
    plain = Prediction(MEAN, VARIANCE, NOISE)
    np.testing.assert_allclose(plain.normal_scores(y), (y - MEAN) / plain.sd)
    far = STUDENT.normal_scores(MEAN + 1e6)
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far, -STUDENT.normal_scores(MEAN - 1e6))

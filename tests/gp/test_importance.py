"""Proposals of importance sampling against SciPy's densities and plain loops."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from kerneltrail.gp.importance import (
    FLATTEST,
    TAILS,
    WIDER,
    Component,
    effective_size,
    log_normal_density,
    log_sum,
    log_total,
)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(scale=2.0, size=(7, 3))


def a_component(draws=5):
    precision = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 9.0]])
    return precision, Component.at_mode(np.array([0.5, -1.0, 2.0]), precision, draws)


def test_densities_are_scipys(points):
    precision, component = a_component()
    wanted = stats.multivariate_t([0.5, -1.0, 2.0], WIDER * np.linalg.inv(precision), df=TAILS).logpdf(points)
    np.testing.assert_allclose(component.log_density(points), wanted, atol=1e-10)
    normal = stats.multivariate_normal(np.zeros(3), np.eye(3)).logpdf(points)
    np.testing.assert_allclose(Component.prior(3, 5).log_density(points), normal, atol=1e-10)
    np.testing.assert_allclose(log_normal_density(points), normal, atol=1e-10)
    mean, variance = np.array([1.0, 0.0, -1.0]), np.array([0.1, 2.0, 1.0])
    wanted = stats.norm(mean, np.sqrt(variance)).logpdf(points).sum(axis=1)
    np.testing.assert_allclose(log_normal_density(points, mean, variance), wanted, atol=1e-10)


def test_a_mode_that_is_no_maximum_gets_a_component_no_wider_than_is_believed():
    component = Component.at_mode(np.zeros(2), np.diag([-7.0, 16.0]), 1)
    np.testing.assert_allclose(component.lower**2, np.diag([WIDER / FLATTEST, WIDER / 16.0]), atol=1e-12)


def test_the_mixture_counts_each_component_by_its_draws(points):
    _, component = a_component(draws=30)
    parts = (Component.prior(3, 10), component)
    for point, value in zip(points, log_sum(parts, points), strict=True):
        total = sum(part.draws * math.exp(part.log_density(point[None])[0]) for part in parts)
        assert value == pytest.approx(math.log(total))


def test_draws_follow_the_density():
    """Shares of draws within radii, against the F distribution; each is off by 4.5 sd with probability 7e-6."""
    _, component = a_component(draws=20_000)
    standard = np.linalg.solve(component.lower, (component.sample(np.random.default_rng(1)) - component.centre).T)
    square = (standard**2).sum(axis=0) / 3
    for level in (0.1, 0.5, 0.9, 0.99):
        share = float((square < stats.f(3, TAILS).ppf(level)).mean())
        assert abs(share - level) < 4.5 * math.sqrt(level * (1 - level) / component.draws)


def test_effective_sizes():
    weights = np.array([[1.0, 3.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(effective_size(np.log(weights)), [16 / 6, 1.0, 0.0])


def test_the_log_of_a_total_is_scipys():
    log = np.random.default_rng(1).normal(scale=300.0, size=(40, 5))
    log[:7, 1] = -np.inf
    log[:, 2] = -np.inf
    np.testing.assert_allclose(log_total(log), logsumexp(log, axis=0), rtol=1e-13)
    assert np.isneginf(log_total(log)[2])

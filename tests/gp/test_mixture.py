"""Mixtures of Normals, against draws and against a search of their distribution function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from kerneltrail.errors import DataError
from kerneltrail.gp.mixture import NormalMixture


def test_a_mixture_has_the_moments_of_its_draws():
    """400,000 draws: both limits are above six standard errors, so a false alarm has a chance below 1e-8."""
    rng = np.random.default_rng(0)
    weights, means, variances = np.array([1.0, 3.0]), np.array([[0.0], [2.0]]), np.array([[1.0], [0.25]])
    which = rng.choice(2, p=weights / 4.0, size=400_000)
    draws = means[which, 0] + np.sqrt(variances[which, 0]) * rng.standard_normal(len(which))
    mixture = NormalMixture(weights, means, variances)
    assert mixture.mean[0] == pytest.approx(draws.mean(), abs=0.01)
    assert mixture.variance[0] == pytest.approx(draws.var(), abs=0.02)
    assert mixture.above(1.5)[0] == pytest.approx((draws > 1.5).mean(), abs=0.005)


def test_two_kernels_that_disagree_are_not_one_normal():
    torn = NormalMixture([0.5, 0.5], [[1.0], [-0.1]], [[0.01], [0.01]])
    assert torn.positive[0] == pytest.approx(0.5 * stats.norm.cdf(10.0) + 0.5 * stats.norm.cdf(-1.0))
    assert abs(torn.positive[0] - stats.norm.cdf(torn.mean / torn.sd)[0]) > 0.2


parts = st.lists(
    st.tuples(st.floats(0.01, 1.0), st.floats(-5.0, 5.0), st.floats(0.0, 9.0)), min_size=1, max_size=4
).filter(lambda parts: max(variance for _, _, variance in parts) > 1e-3)


@given(parts, st.floats(0.02, 0.98))
def test_a_quantile_is_where_the_distribution_function_is(parts, probability):
    weights, means, variances = (np.array(column) for column in zip(*parts, strict=True))
    variances = np.maximum(variances, 1e-3)
    mixture = NormalMixture(weights, means[:, None], variances[:, None])
    share = weights / weights.sum()
    expected = optimize.brentq(
        lambda x: share @ stats.norm.cdf(x, means, np.sqrt(variances)) - probability, -60.0, 60.0, xtol=1e-12
    )
    assert mixture.quantile(probability)[0] == pytest.approx(expected, abs=1e-6)


def halved(mixture, probability):
    """The quantile by halving a bracket until nothing is left of it."""
    low, high = mixture.means.min(axis=0) - 50.0, mixture.means.max(axis=0) + 50.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        beyond = mixture.above(middle) > 1.0 - probability
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return 0.5 * (low + high)


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.31, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(
    ("means", "sds"),
    [
        ([[0.0, 5.0], [1.0, -5.0], [3.0, 0.0]], [[1.0, 0.1], [2.0, 0.1], [0.5, 3.0]]),
        ([[0.0, 0.0], [1.0, 1e-3], [2.0, 30.0]], [[1e-6, 1.0], [1.0, 1e-8], [1e-3, 1e-2]]),
        ([[0.0, 2.0], [1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
    ],
    ids=["two heaps", "needles", "known numbers"],
)
def test_a_quantile_is_exact_for_heaps_needles_and_known_numbers(means, sds, probability):
    mixture = NormalMixture([0.25, 0.45, 0.3], means, np.square(sds))
    np.testing.assert_allclose(mixture.quantile(probability), halved(mixture, probability), rtol=1e-12, atol=1e-12)


def test_a_number_that_is_known_is_its_own_interval():
    known = NormalMixture([1.0], [[2.0, 0.0]], [[0.0, 0.0]])
    np.testing.assert_array_equal(known.interval(0.9), [[2.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(known.positive, [1.0, 0.5])


def test_scaling_moves_every_normal():
    mixture = NormalMixture([0.2, 0.8], [[1.0, 2.0], [0.0, -1.0]], [[1.0, 0.5], [0.3, 2.0]])
    moved = mixture.scaled(-2.0, [1.0, 3.0])
    np.testing.assert_allclose(moved.mean, -2.0 * (mixture.mean + np.array([1.0, 3.0])))
    np.testing.assert_allclose(moved.variance, 4.0 * mixture.variance)
    low, high = mixture.interval(0.8)
    np.testing.assert_allclose(moved.interval(0.8)[0], -2.0 * (high + np.array([1.0, 3.0])), atol=1e-9)
    np.testing.assert_allclose(moved.interval(0.8)[1], -2.0 * (low + np.array([1.0, 3.0])), atol=1e-9)


def test_what_is_no_mixture_is_refused():
    with pytest.raises(DataError, match="S weights"):
        NormalMixture([0.5], [[1.0], [2.0]], [[1.0], [1.0]])
    for level in (0.0, 1.0, 90):
        with pytest.raises(DataError, match="between 0 and 1"):
            NormalMixture([1.0], [[1.0]], [[1.0]]).interval(level)
    with pytest.raises(DataError, match="between 0 and 1"):
        NormalMixture([1.0], [[1.0]], [[1.0]]).quantile(1.5)


def test_a_quantile_where_the_density_is_next_to_nothing_is_found_without_a_warning():
    """Newton's step there is beyond any number; the bracket is halved then."""
    gap = NormalMixture([1.0, 1.0, 1.0], [[0.0], [1.25], [-1.875]], [[2.0**-12], [2.0**-8], [2.0**-12]])
    low = float(gap.quantile(0.05)[0])
    assert float(gap.above(np.array([low]))[0]) == pytest.approx(0.95, abs=1e-12)

"""Fourier coefficients against Bessel functions, against the kernels themselves, and against finite differences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from kerneltrail.kernels import ATOMS
from kerneltrail.kernels.families import LONGEST
from kerneltrail.kernels.fourier import gaussian_series, periodic_series

ROUNDING = 2e-12
lengthscales = st.floats(math.log(0.02), math.log(50.0)).map(math.exp)
positive = st.floats(math.log(0.05), math.log(100.0)).map(math.exp)
tails = st.floats(math.log(1e-13), math.log(1e-3)).map(math.exp)
FAST = settings(max_examples=150, deadline=None)


def total(series, tau, s=0, factor=1.0):
    """Σ_j factor_j w_j cos(jωτ) over the terms kept."""
    j = np.arange(series.count[s])
    terms = series.weights[s, : len(j)] * np.broadcast_to(factor, series.weights.shape[1:])[: len(j)]
    return np.cos(np.multiply.outer(tau, j) * series.omega[s]) @ terms


@FAST
@given(lengthscales, positive, tails)
def test_periodic_weights_are_bessel_functions(ell, period, tail):
    series = periodic_series(np.array([ell]), np.array([period]), np.array([tail]))
    j = np.arange(series.count[0])
    expected = np.where(j == 0, 1.0, 2.0) * ive(j, ell**-2)
    np.testing.assert_allclose(series.weights[0, : len(j)], expected, rtol=1e-8, atol=0.01 * tail)
    assert series.omega[0] == pytest.approx(2 * math.pi / period)


def test_a_periodic_series_does_not_hang_on_its_company():
    """One short lengthscale makes the arrays long; those beside it are cut as by themselves, to the bit."""
    ells, tail = np.array([0.02, 0.3, 1.0, 5.0]), np.array([1e-9, 1e-6, 1e-3, 1e-9])
    together = periodic_series(ells, np.ones(4), tail)
    for s in range(4):
        alone = periodic_series(ells[s : s + 1], np.ones(1), tail[s : s + 1])
        count = int(alone.count[0])
        assert together.count[s] == count
        np.testing.assert_array_equal(together.weights[s, :count], alone.weights[0, :count])
        np.testing.assert_array_equal(together.dlog_weights[:, s, :count], alone.dlog_weights[:, 0, :count])
        assert not together.weights[s, alone.weights.shape[1] :].any()


@FAST
@given(lengthscales, positive, tails)
def test_periodic_series_is_the_kernel_to_its_tail(ell, period, tail):
    series = periodic_series(np.array([ell]), np.array([period]), np.array([tail]))
    tau = np.linspace(-3 * period, 3 * period, 101)
    exact = ATOMS["PER"].covariance(tau, np.zeros(1), np.array([ell, period]))[:, 0]
    assert np.abs(total(series, tau) - exact).max() <= tail + ROUNDING


@FAST
@given(lengthscales, st.floats(0.0, 30.0), tails)
def test_gaussian_series_is_the_kernel_to_its_tail_over_the_span(ell, span, tail):
    series = gaussian_series(np.array([ell]), span, np.array([tail]))
    tau = np.linspace(-span, span, 101)
    exact = ATOMS["SE"].covariance(tau, np.zeros(1), np.array([ell]))[:, 0]
    assert np.abs(total(series, tau) - exact).max() <= tail + ROUNDING


@FAST
@given(lengthscales, positive, tails)
def test_weights_are_a_distribution_but_for_the_tail(ell, width, tail):
    for series in (
        periodic_series(np.array([ell]), np.array([width]), np.array([tail])),
        gaussian_series(np.array([ell]), width, np.array([tail])),
    ):
        kept = series.weights[0, : series.count[0]]
        assert 1 <= series.count[0] <= series.weights.shape[1]
        assert np.all(kept >= 0.0)
        assert 1.0 - tail - ROUNDING <= kept.sum() <= 1.0 + tail + ROUNDING


@FAST
@given(lengthscales, positive, tails)
def test_periodic_slopes_are_finite_differences(ell, period, tail):
    step = 1e-5
    one = np.array([ell])
    series = periodic_series(one, np.array([period]), np.array([tail]))
    j = np.arange(series.count[0])
    up, down = (np.where(j == 0, 1.0, 2.0) * ive(j, (ell * math.exp(s)) ** -2) for s in (step, -step))
    visible = series.weights[0, : len(j)] > 1e-250
    numeric = (up - down) / (
        2 * step
    )  # of the weights, not of their logs: the last ones matter as little as they weigh
    found = series.dlog_weights[0, 0, : len(j)] * series.weights[0, : len(j)]
    z = ell**-2
    np.testing.assert_allclose(found[visible], numeric[visible], rtol=1e-4, atol=1e-8 + tail * (1 + z) ** 0.5)
    np.testing.assert_array_equal(series.dlog_weights[1], 0.0)
    np.testing.assert_allclose(series.domega[:, 0], [0.0, -series.omega[0]])


@FAST
@given(lengthscales, st.floats(0.0, 30.0), tails)
def test_gaussian_slopes_are_finite_differences_at_fixed_period(ell, span, tail):
    step = 1e-5
    cut = math.sqrt(-2.0 * math.log(0.2 * tail))
    start = span + ell * cut * 0.1  # room for the shorter span below
    series = gaussian_series(np.array([ell]), start, np.array([tail]))

    def at(shift):
        moved = ell * math.exp(shift)
        other = gaussian_series(np.array([moved]), start + (ell - moved) * cut, np.array([tail]))
        assert other.omega[0] == pytest.approx(series.omega[0])
        return np.log(other.weights[0])

    up, down = at(step), at(-step)
    size = min(len(up), len(down), series.count[0])
    numeric = (up[:size] - down[:size]) / (2 * step)
    np.testing.assert_allclose(series.dlog_weights[0, 0, :size], numeric, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(series.domega, 0.0)


@pytest.mark.parametrize("ell", [0.05, 0.3, 1.0, 8.0])
def test_the_series_derivative_is_the_kernels(ell):
    tail, tau = np.array([1e-12]), np.linspace(0.0, 1.0, 41)
    x = np.append(tau, 0.0)
    for name, values in (("SE", np.array([ell])), ("PER", np.array([ell, 0.7]))):
        kind = ATOMS[name]
        series = kind.series(values[None, :], 1.0, tail)
        exact = [matrix[:-1, -1] for matrix in kind.gradient(x, values, kind.covariance(x, x, values))]
        j = np.arange(series.weights.shape[1])
        for k, expected in enumerate(exact):
            by_weights = total(series, tau, factor=series.dlog_weights[k, 0])
            kept = slice(None, series.count[0])
            by_omega = -(np.sin(np.multiply.outer(tau, j[kept]) * series.omega[0]) * tau[:, None]) @ (
                series.weights[0, kept] * j[kept] * series.domega[k, 0]
            )
            np.testing.assert_allclose(by_weights + by_omega, expected, atol=1e-8)


@FAST
@given(st.lists(st.tuples(lengthscales, positive, tails), min_size=2, max_size=5))
def test_a_batch_is_its_samples_one_by_one(samples):
    ell, width, tail = (np.array(column) for column in zip(*samples, strict=True))
    batches = (periodic_series(ell, width, tail), gaussian_series(ell, 2.0, tail))
    for s in range(len(samples)):
        one = slice(s, s + 1)
        singles = (periodic_series(ell[one], width[one], tail[one]), gaussian_series(ell[one], 2.0, tail[one]))
        for batch, single in zip(batches, singles, strict=True):
            assert abs(int(batch.count[s]) - int(single.count[0])) <= 1  # a weight may stand right at the tail
            size = min(batch.count[s], single.count[0])
            np.testing.assert_allclose(batch.weights[s, :size], single.weights[0, :size], rtol=1e-7, atol=tail[s])


@pytest.mark.parametrize("ell", [1e-9, 1e-6, 1e6, 1e40])
def test_extreme_lengthscales_stay_bounded_and_finite(ell):
    tail = np.array([1e-8])
    for series in (periodic_series(np.array([ell]), np.ones(1), tail), gaussian_series(np.array([ell]), 1.0, tail)):
        assert series.weights.shape[1] <= LONGEST + 6
        assert np.all(np.isfinite(series.weights))


@pytest.mark.parametrize("tail", [1e-8, 1e-3])
@pytest.mark.parametrize("ell", [1e-9, 1e-6])
def test_a_series_too_long_to_hold_never_looks_cheap(ell, tail):
    one, tails = np.array([ell]), np.array([tail])
    for series in (periodic_series(one, np.ones(1), tails), gaussian_series(one, 1.0, tails)):
        assert series.count[0] > LONGEST // 2


def test_a_very_long_lengthscale_is_a_constant():
    tail = np.array([1e-8])
    series = periodic_series(np.array([1e6]), np.ones(1), tail)
    assert series.count[0] == 1
    assert series.weights[0, 0] == pytest.approx(1.0)


def test_ranks_are_what_the_design_says():
    tail = np.full(4, 1e-8)
    counts = gaussian_series(np.array([0.05, 0.1, 0.37, 1.0]), 1.0, tail).count
    assert list(2 * counts - 1) == pytest.approx([53, 33, 19, 15], abs=4)

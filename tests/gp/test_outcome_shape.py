"""Which outcomes there are: against integrals of the density, and against a search through all intervals."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from kerneltrail.gp import Prediction
from kerneltrail.gp.bell import Bell
from kerneltrail.gp.outcome_shape import OutcomeShape

EDGES = (-1.5, 0.1, 1.5, 2.9, 4.3, 5.8)
WEIGHTS = (-2.3, 2.9, -3.0, 1.3, 2.0, 0.7, -2.0)
PLAIN = OutcomeShape(EDGES, WEIGHTS)
WIDER = OutcomeShape(EDGES, WEIGHTS, 1.2)
ZEROS = OutcomeShape(EDGES, WEIGHTS, floor=-0.7)
SCALE_ENDS = OutcomeShape(EDGES, WEIGHTS, floor=-0.7, ceiling=5.0)
BELLS = [
    Bell(np.array([3.0]), np.array([2.6]), np.array([np.inf])),
    Bell(np.array([0.5]), np.array([0.8]), np.array([4.0])),
    Bell(np.array([9.0]), np.array([1.0]), np.array([6.0])),
]


def density(shape, bell, y):
    return float(np.exp(shape.log_density(bell, np.array([y])))[0])


def integral(shape, bell, low, high):
    ends = [low, *(edge for edge in EDGES if low < edge < high), high]
    return sum(quad(lambda y: density(shape, bell, y), a, b)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("shape", [PLAIN, WIDER, ZEROS])
@pytest.mark.parametrize("bell", BELLS)
def test_the_density_is_one(shape, bell):
    assert integral(shape, bell, -80.0, 80.0) == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("shape", [PLAIN, WIDER])
@pytest.mark.parametrize("bell", BELLS)
@pytest.mark.parametrize("y", [-2.0, 0.05, 1.0, 4.0, 5.7, 10.0])
def test_probabilities_below_are_integrals_and_quantiles_their_inverse(shape, bell, y):
    below = shape.below(bell, np.array([y]))
    assert below[0] == pytest.approx(integral(shape, bell, -80.0, y), abs=2e-5)
    assert shape.quantile(bell, below[:, None])[0, 0] == pytest.approx(y, abs=1e-6)


@pytest.mark.parametrize("bell", BELLS)
def test_the_density_is_the_bell_times_a_weight(bell):
    """Between two outcomes of one stretch the ratio is the bell's; across an edge it has the weights' too."""
    y = np.array([1.4, 1.6])
    ratio = np.diff(PLAIN.log_density(Bell(*(np.repeat(part, 2) for part in bell)), y))
    plain = np.diff(Bell(*(np.repeat(part, 2) for part in bell)).log_density(y))
    np.testing.assert_allclose(ratio - plain, WEIGHTS[3] - WEIGHTS[2], rtol=1e-9)


@given(st.lists(st.floats(-3.0, 3.0), min_size=7, max_size=7), st.floats(-20.0, 20.0), st.floats(0.05, 20.0))
def test_a_weight_for_all_changes_nothing_and_quantiles_never_fall(weights, mean, scale):
    bell = Bell(np.array([mean]), np.array([scale]), np.array([5.0]))
    one, more = (OutcomeShape(EDGES, tuple(w + by for w in weights)) for by in (0.0, 1.7))
    y = np.array([mean + 0.3 * scale])
    np.testing.assert_allclose(one.log_density(bell, y), more.log_density(bell, y), atol=1e-9)
    levels = np.linspace(0.0, 1.0, 101)[None, :]
    assert (np.diff(one.quantile(bell, levels)[0, 1:-1]) >= -1e-9).all()


def test_equal_weights_are_the_bell_itself():
    bell = Bell(np.array([0.3, 2.0]), np.array([1.0, 2.0]), np.array([5.0, np.inf]))
    even = OutcomeShape(EDGES, (0.0,) * 7)
    np.testing.assert_allclose(even.log_density(bell, np.array([1.0, 1.0])), bell.log_density(np.array([1.0, 1.0])))
    low, high = even.interval(bell, 0.9)
    np.testing.assert_allclose(high[0] - low[0], 2.0 * stats.t(5.0).ppf(0.95), rtol=1e-6)
    np.testing.assert_allclose(high[1] - low[1], 4.0 * stats.norm.ppf(0.95), rtol=1e-6)
    np.testing.assert_allclose(0.5 * (low + high), bell.mean, atol=1e-6)


@pytest.mark.parametrize("bell", BELLS)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_an_interval_holds_its_level_and_none_is_shorter(bell, level):
    (low,), (high,) = PLAIN.interval(bell, level)
    held = [PLAIN.below(bell, np.array([end]))[0] for end in (low, high)]
    assert held[1] - held[0] == pytest.approx(level, abs=1e-9)
    starts = np.linspace(1e-6, 1.0 - level - 1e-6, 400)[None, :]
    every = PLAIN.quantile(bell, starts + level) - PLAIN.quantile(bell, starts)
    assert high - low <= 1.03 * every.min()  # it tries 33 of them


def test_an_end_that_many_rows_have_ends_intervals_draws_and_quantiles():
    bell = Bell(*(np.concatenate(parts) for parts in zip(*BELLS, strict=True)))
    low, high = SCALE_ENDS.interval(bell, 0.9)
    assert low[0] == low[1] == -0.7
    assert high[2] == 5.0  # of somebody who is predicted far above the scale
    draws = SCALE_ENDS.draws(bell, 4000, np.random.default_rng(0))
    assert draws.shape == (4000, 3)
    assert draws.min() == -0.7
    assert draws.max() == 5.0
    # An outcome at the end is inside, however little of its stretch is: the interval begins with it.
    some = OutcomeShape(EDGES, WEIGHTS, floor=0.09).interval(BELLS[0], 0.9)
    assert some[0][0] == 0.09


def test_where_almost_all_is_at_the_end_an_interval_hardly_leaves_it():
    shape = OutcomeShape(EDGES, (-2.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0), floor=-0.7)
    (low,), (high,) = shape.interval(BELLS[1], 0.9)
    assert low == -0.7
    assert high < 0.1


def test_draws_have_the_distribution():
    """A test of 2,000 draws by Kolmogorov and Smirnov; it would fail for one seed of a thousand."""
    draws = WIDER.draws(BELLS[0], 2000, np.random.default_rng(1))[:, 0]
    many = Bell(*(np.repeat(part, 2000) for part in BELLS[0]))
    assert stats.kstest(WIDER.below(many, draws), "uniform").pvalue > 1e-3


def test_rows_at_an_end_are_spread_over_its_probability():
    """Their Normal scores then are a Normal's, if as many are there as predicted."""
    bell = Bell(*(np.repeat(part, 1000) for part in BELLS[0]))
    at_end = np.full(1000, -0.7)
    below = ZEROS.below(bell, at_end)
    first, last = (PLAIN.below(BELLS[0], np.array([edge]))[0] for edge in (EDGES[0], EDGES[1] - 1e-9))
    np.testing.assert_allclose(np.sort(below), first + (last - first) * (np.arange(1000) + 0.5) / 1000, atol=2e-3)


def test_a_prediction_has_its_shape_in_all_that_is_said_of_an_observation():
    prediction = Prediction(np.array([3.0]), np.array([1.0]), 5.76, shape=ZEROS)
    bell = prediction.bell
    y = np.array([2.0])
    np.testing.assert_allclose(prediction.log_density(y), ZEROS.log_density(bell, y))
    assert [float(end[0]) for end in prediction.interval(0.9)] == [float(end[0]) for end in ZEROS.interval(bell, 0.9)]
    np.testing.assert_allclose(stats.norm.cdf(prediction.normal_scores(y)), ZEROS.below(bell, y))
    assert prediction.draws(50, np.random.default_rng(0)).min() == -0.7
    # Of the function itself it says nothing.
    plain = Prediction(np.array([3.0]), np.array([1.0]), 5.76)
    assert prediction.interval(0.9, noise=False) == plain.interval(0.9, noise=False)
    assert prediction.sd == plain.sd


def test_scores_of_impossible_outcomes_are_numbers():
    prediction = Prediction(np.array([3.0]), np.array([1e-4]), 1e-4, shape=ZEROS)
    assert np.isfinite(prediction.normal_scores(np.array([1e6]))).all()
    assert np.isfinite(prediction.normal_scores(np.array([-1e6]))).all()
    assert np.isfinite(prediction.log_density(np.array([5.0]))).all()

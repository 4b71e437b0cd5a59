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
NONE = (None,) * 7
PLAIN = OutcomeShape(EDGES, WEIGHTS, NONE)
WIDER = OutcomeShape(EDGES, WEIGHTS, NONE, 1.2)
ZEROS = OutcomeShape(EDGES[1:], WEIGHTS[1:], (-0.7, *NONE[2:]), length=1.6)
SCALE_ENDS = OutcomeShape(EDGES[1:], WEIGHTS[1:], (-0.7, *NONE[3:], 7.0), length=1.6)
RATING = OutcomeShape((1.5, 2.5, 3.5, 4.5), (0.3, 0.0, 0.8, -0.4, 0.1), (1.0, 2.0, 3.0, 4.0, 5.0), 1.1, 0.4)
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


@pytest.mark.parametrize("shape", [PLAIN, WIDER])
@pytest.mark.parametrize("bell", BELLS)
def test_the_density_is_one(shape, bell):
    assert integral(shape, bell, -80.0, 80.0) == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("bell", BELLS)
def test_a_single_outcome_is_spread_over_its_stretch(bell):
    """Its density times the length is its probability; with the rest of the density that is one."""
    zero = density(ZEROS, bell, -0.7) * 1.6
    assert zero == pytest.approx(ZEROS.chance_of(bell, 0)[0])
    assert zero + integral(ZEROS, bell, 0.1 + 1e-9, 80.0) == pytest.approx(1.0, abs=2e-5)
    every = sum(density(RATING, bell, float(point)) for point in RATING.points)  # each stretch is 1 long
    assert every == pytest.approx(1.0)


def test_an_outcome_that_there_is_not_has_no_higher_density_than_the_one_beside_it():
    for bell in BELLS:
        beyond, end = density(ZEROS, bell, -30.0), density(ZEROS, bell, -0.7)
        assert beyond <= end
        assert density(RATING, bell, 40.0) <= density(RATING, bell, 5.0)


@pytest.mark.parametrize("shape", [PLAIN, WIDER])
@pytest.mark.parametrize("bell", BELLS)
@pytest.mark.parametrize("y", [-2.0, 0.05, 1.0, 4.0, 5.7, 10.0])
def test_probabilities_below_are_integrals_and_quantiles_their_inverse(shape, bell, y):
    below, up_to = shape.below(bell, np.array([y]))
    assert below == up_to
    assert below[0] == pytest.approx(integral(shape, bell, -80.0, y), abs=2e-5)
    assert shape.quantile(bell, below[:, None])[0, 0] == pytest.approx(y, abs=1e-6)


@pytest.mark.parametrize("bell", BELLS)
def test_single_outcomes_have_all_of_their_stretch_below_them_or_not(bell):
    chances = np.array([RATING.chance_of(bell, i)[0] for i in range(5)])
    for i, point in enumerate(RATING.points):
        below, up_to = RATING.below(bell, np.array([point]))
        assert below[0] == pytest.approx(chances[:i].sum())
        assert up_to[0] == pytest.approx(chances[: i + 1].sum())


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
    one, more = (OutcomeShape(EDGES, tuple(w + by for w in weights), NONE) for by in (0.0, 1.7))
    y = np.array([mean + 0.3 * scale])
    np.testing.assert_allclose(one.log_density(bell, y), more.log_density(bell, y), atol=1e-9)
    levels = np.linspace(0.0, 1.0, 101)[None, :]
    assert (np.diff(one.quantile(bell, levels)[0, 1:-1]) >= -1e-9).all()


def test_equal_weights_are_the_bell_itself():
    bell = Bell(np.array([0.3, 2.0]), np.array([1.0, 2.0]), np.array([5.0, np.inf]))
    even = OutcomeShape(EDGES, (0.0,) * 7, NONE)
    np.testing.assert_allclose(even.log_density(bell, np.array([1.0, 1.0])), bell.log_density(np.array([1.0, 1.0])))
    low, high = even.interval(bell, 0.9)
    np.testing.assert_allclose(high[0] - low[0], 2.0 * stats.t(5.0).ppf(0.95), rtol=1e-6)
    np.testing.assert_allclose(high[1] - low[1], 4.0 * stats.norm.ppf(0.95), rtol=1e-6)
    np.testing.assert_allclose(0.5 * (low + high), bell.mean, atol=1e-6)


@pytest.mark.parametrize("bell", BELLS)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_an_interval_holds_its_level_and_that_of_nine_tenths_is_the_shortest(bell, level):
    (low,), (high,) = PLAIN.interval(bell, level)
    held = [PLAIN.below(bell, np.array([end]))[0][0] for end in (low, high)]
    assert held[1] - held[0] == pytest.approx(level, abs=1e-9)
    assert PLAIN.held(bell, level)[0] == pytest.approx(level, abs=1e-9)
    starts = np.linspace(1e-6, 0.1 - 1e-6, 400)[None, :]
    every = PLAIN.quantile(bell, starts + 0.9) - PLAIN.quantile(bell, starts)
    if level == 0.9:
        assert high - low <= 1.03 * every.min()  # it tries 33 of them


@given(st.lists(st.floats(-3.0, 3.0), min_size=7, max_size=7), st.floats(-5.0, 9.0), st.floats(0.2, 5.0), st.booleans())
def test_an_interval_lies_inside_that_of_nine_tenths_or_around_it(weights, mean, scale, zeros):
    shape = OutcomeShape(EDGES, tuple(weights), (-2.0, *NONE[1:]) if zeros else NONE)
    bell = Bell(np.array([mean]), np.array([scale]), np.array([5.0]))
    (half, ninety, most) = (shape.interval(bell, level) for level in (0.5, 0.9, 0.95))
    assert most[0] <= ninety[0] + 1e-9
    assert ninety[0] <= half[0] + 1e-9
    assert half[1] <= ninety[1] + 1e-9
    assert ninety[1] <= most[1] + 1e-9
    for level, (low, high) in ((0.5, half), (0.9, ninety), (0.95, most)):
        assert shape.below(bell, high)[1] - shape.below(bell, low)[0] >= level - 1e-6


@pytest.mark.parametrize("mean", [-3.0, 1.2, 2.6, 3.49, 4.9, 11.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_a_rating_end_with_its_values_and_hold_the_fewest(mean, level):
    bell = Bell(np.array([mean]), np.array([1.0]), np.array([np.inf]))
    (low,), (high,) = RATING.interval(bell, level)
    chances = np.array([RATING.chance_of(bell, i)[0] for i in range(5)])
    assert {low, high} <= set(RATING.points)
    first, last = int(low) - 1, int(high) - 1
    assert chances[first : last + 1].sum() >= level
    assert RATING.held(bell, level)[0] == pytest.approx(chances[first : last + 1].sum())
    if level == 0.9:
        runs = [(j - i, -chances[i : j + 1].sum(), i, j) for i in range(5) for j in range(i, 5)]
        shortest = min(run for run in runs if -run[1] >= level)
        assert (first, last) == shortest[2:]


def test_an_end_that_many_rows_have_ends_intervals_draws_and_means():
    bell = Bell(*(np.concatenate(parts) for parts in zip(*BELLS, strict=True)))
    low, high = SCALE_ENDS.interval(bell, 0.9)
    assert low[0] == low[1] == -0.7
    assert high[2] == 7.0  # of somebody who is predicted far above the scale
    draws = SCALE_ENDS.draws(bell, 4000, np.random.default_rng(0))
    assert draws.shape == (4000, 3)
    assert draws.min() == -0.7
    assert draws.max() == 7.0
    assert not ((draws > -0.7) & (draws <= 0.1)).any()  # in the stretch of zeros there is nothing else
    np.testing.assert_allclose(np.mean(draws == -0.7, axis=0), SCALE_ENDS.chance_of(bell, 0), atol=0.03)
    np.testing.assert_array_equal(SCALE_ENDS.within(np.array([-9.0, 1.0, 9.0])), [-0.7, 1.0, 7.0])
    np.testing.assert_array_equal(PLAIN.within(np.array([-9.0, 9.0])), [-9.0, 9.0])


def test_an_outcome_that_is_certain_is_not_scored_as_impossible():
    """Of somebody who is predicted far below zero: all the bell below it is zero."""
    for mean in (-5.0, -8.0, -20.0):
        prediction = Prediction(np.array([mean]), np.array([0.5]), 0.5).shaped(ZEROS)
        assert prediction.interval(0.9) == (np.array([-0.7]), np.array([-0.7]))
        assert prediction.log_density([-0.7])[0] == pytest.approx(-np.log(1.6), abs=1e-3)
        assert abs(prediction.normal_scores([-0.7])[0]) < 0.1
        assert prediction.mean[0] == -0.7


def test_draws_have_the_distribution():
    """A test of 2,000 draws by Kolmogorov and Smirnov; it would fail for one seed of a thousand."""
    draws = WIDER.draws(BELLS[0], 2000, np.random.default_rng(1))[:, 0]
    many = Bell(*(np.repeat(part, 2000) for part in BELLS[0]))
    assert stats.kstest(WIDER.below(many, draws)[0], "uniform").pvalue > 1e-3


def test_a_prediction_has_its_shape_in_all_that_is_said_of_an_observation():
    plain = Prediction(np.array([3.0]), np.array([1.0]), 5.76)
    prediction = plain.shaped(ZEROS)
    bell = prediction.bell
    y = np.array([2.0])
    np.testing.assert_allclose(prediction.log_density(y), ZEROS.log_density(bell, y))
    assert [float(end[0]) for end in prediction.interval(0.9)] == [float(end[0]) for end in ZEROS.interval(bell, 0.9)]
    np.testing.assert_allclose(stats.norm.cdf(prediction.normal_scores(y)), ZEROS.below(bell, y)[0])
    assert prediction.below(y) == ZEROS.below(bell, y)
    assert prediction.draws(50, np.random.default_rng(0)).min() == -0.7
    # Of the function itself it says nothing.
    assert prediction.interval(0.9, noise=False) == plain.interval(0.9, noise=False)
    assert prediction.sd == plain.sd
    assert plain.shaped(None) is plain


def test_a_mean_beyond_an_end_is_the_end_and_the_bell_stays_where_it_is():
    prediction = Prediction(np.array([9.0]), np.array([1.0]), 1.0).shaped(SCALE_ENDS)
    assert prediction.mean[0] == 7.0
    assert prediction.bell.mean[0] == 9.0
    again = prediction.shaped(RATING)
    assert (again.mean[0], again.bell.mean[0]) == (5.0, 9.0)


def test_without_a_shape_the_probability_below_is_the_bells():
    plain = Prediction(np.array([3.0]), np.array([1.0]), 1.0, freedom=np.array([5.0]))
    below, up_to = plain.below([2.0])
    assert below == up_to
    assert below[0] == pytest.approx(stats.t(5.0, 3.0, np.sqrt(2.0 * 3.0 / 5.0)).cdf(2.0))
    assert plain.held(0.8)[0] == 0.8


def test_scores_of_impossible_outcomes_are_numbers():
    prediction = Prediction(np.array([3.0]), np.array([1e-4]), 1e-4).shaped(ZEROS)
    assert np.isfinite(prediction.normal_scores(np.array([1e6]))).all()
    assert np.isfinite(prediction.normal_scores(np.array([-1e6]))).all()
    assert np.isfinite(prediction.log_density(np.array([5.0]))).all()

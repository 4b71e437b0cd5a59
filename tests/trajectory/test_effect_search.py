"""Effects and what is left of the rows fit together: they add up to the target."""

import numpy as np
import pytest
from scipy.special import ndtr

from kerneltrail.trajectory.effect_search import _picked
from trajectory.lines import after, lines, person


@pytest.mark.parametrize("mean", ["none", "population"])
def test_effects_in_the_kernels_and_the_rest_add_up_to_the_target(mean):
    """All kernels are sums of one covariate's products, so there is nothing else but a level."""
    one = person("ann", 0.8, seed=5)
    found = after(lines(mean), one).effects()
    assert found.rest.shape == (60,)
    explained = one.y - found.rest
    inside = np.ones(60, dtype=bool)
    for effect in found:
        column = one.X[:, one.column_index(effect.covariate)]
        explained = explained - np.interp(column, effect.x, effect.fitted)
        inside &= (column >= effect.x[0]) & (column <= effect.x[-1])
    assert inside.sum() > 50
    # Between the 31 points of a curve it is interpolated.
    assert np.ptp(explained[inside]) < 0.02 * np.ptp(one.y)


def test_what_users_differ_by_is_in_the_curve_and_its_line_in_predictions():
    """A user who falls with hour, which no kernel reads: the curve sees it, predictions at most by a slope."""
    one = person("ann", 0.8, seed=6)
    falling = one.with_y(one.y - 0.08 * one.X[:, 1])
    effect = after(lines("population"), falling).effects()["hour"]
    assert effect.read == 0.0
    assert np.ptp(effect.curve.mean) > 0.5
    slope = np.polyfit(effect.x, effect.fitted, 1)
    np.testing.assert_allclose(effect.fitted, np.polyval(slope, effect.x), atol=1e-6)
    assert after(lines("population"), one).effects()["x"].fitted == pytest.approx(
        after(lines("population"), one).effects()["x"].curve.mean
    )


def test_before_any_row_nothing_is_left_over():
    assert lines("population").new_user("ann").effects().rest is None


def covariance(places, length):
    x = np.linspace(0.0, 1.0, places)
    return np.exp(-0.5 * ((x[:, None] - x) / length) ** 2)


@pytest.mark.parametrize("z", [0.5, 1.0, 1.96, 2.5])
def test_two_places_of_which_nothing_else_could_be_picked_are_the_normals(z):
    """Method (77): of 1,000 draws a share of 0.6 is known to 0.05, at three standard errors (0.3 % false alarms)."""
    c = np.array([[1.0, 0.3], [0.3, 2.0]])
    mean = np.array([0.0, z * np.sqrt(c[0, 0] + c[1, 1] - 2 * c[0, 1])])
    assert _picked(mean, c, 0, 1, np.arange(2)) == pytest.approx(2.0 * ndtr(-z), abs=0.05)
    assert _picked(mean, c, 0, 1, np.empty(0, dtype=int)) == 0.0  # given, not picked


@pytest.mark.parametrize("z", [1.5, 2.2, 3.0])
def test_places_that_were_picked_are_compared_with_what_chance_picks(z):
    """Against plain loops over other draws; three standard errors of both."""
    c, among, rng = 4.0 * covariance(9, 0.2), np.array([1, 2, 3, 5, 6, 7]), np.random.default_rng(7)
    mean = np.zeros(9)
    mean[6] = z * np.sqrt(c[2, 2] + c[6, 6] - 2 * c[2, 6])
    hits = 0
    for _ in range(4000):
        g = rng.multivariate_normal(np.zeros(9), c, method="eigh")
        low, high = among[g[among].argmin()], among[g[among].argmax()]
        hits += (g[high] - g[low]) / np.sqrt(c[low, low] + c[high, high] - 2 * c[low, high]) >= z
    share = hits / 4000
    assert share > 2.0 * ndtr(-z)  # more than of two that were given
    assert _picked(mean, c, 2, 6, among) == pytest.approx(
        share, abs=3.0 * np.sqrt(share * (1 - share) * (1 / 1000 + 1 / 4000))
    )


def test_a_difference_that_chance_picks_is_not_clear():
    """Of 400 estimates of nothing with known errors at most 5 % may be clear; 8 % is three standard errors more."""
    c, rng, among = covariance(31, 0.12), np.random.default_rng(3), np.arange(31)
    clear = alone = 0
    for _ in range(400):
        mean = rng.multivariate_normal(np.zeros(31), c, method="eigh")
        low, high = int(mean.argmin()), int(mean.argmax())
        z = (mean[high] - mean[low]) / np.sqrt(c[low, low] + c[high, high] - 2 * c[low, high])
        clear += min(ndtr(z), 1.0 - 0.5 * _picked(mean, c, low, high, among)) >= 0.975
        alone += ndtr(z) >= 0.975
    assert alone > 160  # without it
    assert clear <= 0.08 * 400


def test_an_effect_is_no_surer_than_the_picking_of_its_places_allows():
    found = after(lines("none"), person("ann", 0.8, seed=5)).effects()
    for effect in found:
        assert (effect.picked > 0.0) <= (effect.shape in ("curve", "rhythm", "levels"))
        assert effect.sign <= 1.0 - 0.5 * effect.picked

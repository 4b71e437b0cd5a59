"""Two places of a curve that were picked: against plain loops, and over many estimates of what is known."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from kerneltrail.trajectory.picking import GIVEN, picking, stretch


def covariance(places, length):
    x = np.linspace(0.0, 1.0, places)
    return np.exp(-0.5 * ((x[:, None] - x) / length) ** 2)


@pytest.mark.parametrize("z", [0.5, 1.0, 1.96, 2.5])
def test_two_places_of_which_nothing_else_could_be_picked_are_the_normals(z):
    """Method (77): of 1,000 draws a share of 0.6 is known to 0.05, at three standard errors (0.3 % false alarms)."""
    c = np.array([[1.0, 0.3], [0.3, 2.0]])
    mean = np.array([0.0, z * np.sqrt(c[0, 0] + c[1, 1] - 2 * c[0, 1])])
    assert picking(mean, c, 0, 1, np.arange(2)).chance == pytest.approx(2.0 * ndtr(-z), abs=0.05)
    assert picking(mean, c, 0, 1, np.empty(0, dtype=int)) == GIVEN  # given, not picked


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
    assert picking(mean, c, 2, 6, among).chance == pytest.approx(
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
        clear += min(ndtr(z), 1.0 - 0.5 * picking(mean, c, low, high, among).chance) >= 0.975
        alone += ndtr(z) >= 0.975
    assert alone > 160  # without it
    assert clear <= 0.08 * 400


def held(height, places=31, length=0.12, estimates=600):
    """Shares of estimates of a bump whose interval holds what is true, widened and as for places that were given."""
    c, rng, among = covariance(places, length), np.random.default_rng(3), np.arange(places)
    true = height * np.exp(-0.5 * ((np.linspace(0.0, 1.0, places) - 0.5) / length) ** 2)
    inside = alone = 0
    for _ in range(estimates):
        mean = rng.multivariate_normal(true, c, method="eigh")
        low, high = int(mean.argmin()), int(mean.argmax())
        error = np.sqrt(c[low, low] + c[high, high] - 2 * c[low, high])
        off = abs(mean[high] - mean[low] - true[high] + true[low]) / (ndtri(0.95) * error)
        inside += off <= picking(mean, c, low, high, among).stretch
        alone += off <= 1.0
    return inside / estimates, alone / estimates


def test_intervals_hold_nothing_where_there_is_nothing():
    """By construction in 90 %, where they would in less than half; of 600 a share is known to .037, three errors."""
    inside, alone = held(0.0)
    assert inside == pytest.approx(0.9, abs=0.037)
    assert alone < 0.5


@pytest.mark.parametrize("height", [2.0, 4.0, 8.0])
def test_intervals_hold_a_bump_more_often_than_those_of_places_that_were_given(height):
    """They hold it in some 85 %: the least of many baseline places lies low. Less three standard errors of .014."""
    inside, alone = held(height)
    assert inside >= 0.85 - 0.043
    assert inside > alone + 0.02


def test_the_stretch_ends_where_chance_does():
    """Just where chance exceeds a difference in one of ten the interval touches 0; far out it widens no more."""
    for usual in (2.0, 2.8, 3.5):
        for z in (0.1, usual, 1.001 * usual):
            assert (z > stretch(z, usual) * ndtri(0.95)) == (z > usual)
        steps = [stretch(z, usual) for z in (usual, usual + 1.0, 10.0, 30.0, 300.0)]
        assert steps == sorted(steps, reverse=True)
        assert 1.0 <= steps[-1] < 1.001
    assert stretch(1.0, 1.2) == 1.0

"""Bumps of a population mean, and how users differ around it."""

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.gp.population import PopulationMean, bumps, effects_between

NAMES = ("x", "z")


def users(count=8, n=120, *, bump=2.0, slope=0.0, seed=0):
    """Users who share a bump in x; in z they share nothing, and their slopes differ by `slope`."""
    rng = np.random.default_rng(seed)
    everybody = []
    for i in range(count):
        X = rng.uniform(0, 1, (n, 2))
        y = bump * np.exp(-0.5 * ((X[:, 0] - 0.5) / 0.2) ** 2) + slope * rng.standard_normal() * X[:, 1]
        everybody.append(User(f"u{i}", NAMES, X, y + 0.3 * rng.standard_normal(n), (n,)))
    return everybody


def test_bumps_stand_side_by_side_by_covariate():
    X = np.array([[0.2, 0.9]])
    features = bumps(X, 3).reshape(2, 3)
    for j in range(2):
        for k, centre in enumerate((0.0, 0.5, 1.0)):
            assert features[j, k] == pytest.approx(np.exp(-0.5 * ((X[0, j] - centre) / 0.25) ** 2))


def test_the_spread_of_slopes_is_found():
    """30 users, slopes of sd 1: the relative error of their estimated variance is 0.26, so the limits are far."""
    everybody = users(30, bump=0.0, slope=1.0)
    mean = PopulationMean.train(everybody, None)
    between = effects_between([mean.centred(user) for user in everybody])
    assert between.shape == (2, 2)
    # The variance of the contrast from 0 to 1, by lines and bumps together.
    ends = np.array([0.0, 1.0])
    full = PopulationMean(mean.weights, NAMES, None, mean.penalty, between=between)

    def contrast(j):
        C = full.difference(j, ends, ends)
        return C[0, 0] + C[1, 1] - 2 * C[0, 1]

    assert 0.2 < contrast(1) < 2.5
    assert contrast(0) < 0.3 * contrast(1)

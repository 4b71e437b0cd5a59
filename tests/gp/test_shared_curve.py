"""Curves that all users share: each estimate against rows left out in earnest, and their average."""

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.gp import Reward
from kerneltrail.gp.mixed import Sums
from kerneltrail.gp.population import BUMPS, PENALTIES, PopulationMean, bumps, design, ridge
from kerneltrail.gp.shared_curve import Estimate, by_mixed_model, by_ridge, weighed, with_curves

NAMES = ("x", "z")


def users(count=8, n=60, *, bump=2.0, slope=0.0, seed=0, action=False):
    """Users who share a bump in x; in z they share nothing, and their slopes differ by `slope`."""
    rng = np.random.default_rng(seed)
    everybody = []
    for i in range(count):
        X = rng.uniform(0, 1, (n, 2))
        acted = rng.integers(0, 2, n).astype(float) if action else None
        y = bump * np.exp(-0.5 * ((X[:, 0] - 0.5) / 0.2) ** 2) + slope * rng.standard_normal() * X[:, 1]
        y = y + 0.3 * rng.standard_normal(n) + (0.0 if acted is None else 0.5 * acted)
        everybody.append(User(f"u{i}", NAMES, X, y, (n,), action=acted))
    return everybody


def features_of(user, reward=None):
    return np.hstack([design(user.X, NAMES, reward, user.assignment), bumps(user.X, BUMPS)])


def sums_of(everybody, reward=None):
    return Sums.of([(features_of(user, reward), user.y) for user in everybody])


def along(mean, j, x):
    gain = mean.along(j, x)
    return gain - gain.mean()


def shape(x):
    values = 2.0 * np.exp(-0.5 * ((x - 0.5) / 0.2) ** 2)
    return values - values.mean()


@pytest.mark.parametrize("action", [False, True])
def test_a_curve_that_everybody_shares_is_found(action):
    everybody = users(slope=1.0, action=action)
    lines = PopulationMean.train(everybody, Reward(()) if action else None)
    mean = with_curves(lines, everybody)
    assert mean.curves == BUMPS
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(along(mean, 0, x), shape(x), atol=0.2)
    assert mean.bends(0)
    # What varies along one covariate is the mean at rows that differ in it alone.
    rows = np.column_stack([x, np.full(9, 0.3)])
    acted = np.zeros(9) if action else None
    np.testing.assert_allclose(np.diff(mean.at(rows, acted)), np.diff(mean.along(0, x)), atol=1e-9)
    if action:
        assert mean.advantage(rows)[0] == pytest.approx(0.5, abs=0.15)


def test_users_who_share_lines_alone_have_hardly_a_curve():
    straight = users(bump=0.0, slope=1.0)
    mean = with_curves(PopulationMean.train(straight, None), straight)
    x = np.linspace(0, 1, 9)
    for j in range(2):  # noise may be taken for a curve, a small one
        line = np.polyval(np.polyfit(x, mean.along(j, x), 1), x)
        assert np.ptp(mean.along(j, x) - line) < 0.15


def test_curves_that_do_not_bend_leave_lines():
    """Without noise and without curves both estimates are the lines themselves."""
    rng = np.random.default_rng(4)
    everybody = []
    for i in range(6):
        X = rng.uniform(0, 1, (50, 2))
        everybody.append(User(f"u{i}", NAMES, X, 2.0 * X[:, 0] - X[:, 1] + 1e-3 * rng.standard_normal(50), (50,)))
    mean = with_curves(PopulationMean.train(everybody, None), everybody)
    assert mean.curves == 0
    assert len(mean.weights) == 3
    np.testing.assert_allclose(mean.at(np.array([[0.2, 0.7]]), None), 2.0 * 0.2 - 0.7, atol=0.02)


def test_one_user_has_no_curve():
    alone = users(1)
    lines = PopulationMean.train(alone, None)
    assert with_curves(lines, alone) is lines


def test_the_ridge_is_the_best_of_one_curve_after_the_other():
    """The search again, from rows and with each user left out in earnest."""
    everybody = users(5, 40, slope=0.5)
    penalty = PopulationMean.train(everybody, None).penalty
    estimate = by_ridge(sums_of(everybody), penalty, 2)

    def fitted(some, penalties):
        rows = np.concatenate([features_of(user) for user in some])
        y = np.concatenate([user.y for user in some])
        return ridge(rows.T @ rows, rows.T @ y, penalties)

    def error(penalties):
        total = 0.0
        for out in everybody:
            weights = fitted([user for user in everybody if user is not out], penalties)
            total += ((out.y - features_of(out) @ weights) ** 2).sum()
        return total

    none = 1e10
    penalties = np.r_[0.0, penalty, penalty, np.full(2 * BUMPS, none)]

    def bent(j):
        tried = []
        for curve in (none, *np.logspace(-1, 4, 6)):
            each = penalties.copy()
            each[3 + j * BUMPS : 3 + (j + 1) * BUMPS] = curve
            tried.append(each)
        return min(tried, key=error)

    for j in sorted(range(2), key=lambda j: error(bent(j))):
        penalties = bent(j)
    np.testing.assert_allclose(estimate.weights, fitted(everybody, penalties), atol=1e-5)
    for out, weights in zip(everybody, estimate.left_out, strict=True):
        others = [user for user in everybody if user is not out]
        np.testing.assert_allclose(weights, fitted(others, penalties), atol=1e-5)


def test_the_order_of_covariates_does_not_matter():
    everybody = users(6, 40, slope=0.7, seed=5)
    turned = [User(user.name, NAMES[::-1], user.X[:, ::-1], user.y, user.ends) for user in everybody]
    means = [with_curves(PopulationMean.train(some, None), some) for some in (everybody, turned)]
    rows = np.random.default_rng(6).uniform(0, 1, (20, 2))
    np.testing.assert_allclose(means[0].at(rows, None), means[1].at(rows[:, ::-1], None), atol=1e-4)


def test_the_mixed_model_leaves_to_users_what_only_they_have():
    """Slopes of standard deviation 1 in z: the shared one is shrunk, and the bump in x is everybody's."""
    everybody = users(12, slope=1.0, seed=2)
    estimate = by_mixed_model(sums_of(everybody), 2, 1.0)
    mean = PopulationMean(estimate.weights, NAMES, None, 1.0, BUMPS)
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(along(mean, 0, x), shape(x), atol=0.2)
    assert estimate.left_out.shape == (12, 3 + 2 * BUMPS)


def test_the_average_is_the_one_that_predicts_users_who_are_left_out_best():
    everybody = users(6, 30, slope=0.8, seed=3)
    sums = sums_of(everybody)
    rng = np.random.default_rng(0)
    q = sums.side.shape[1]
    truth = by_ridge(sums, PENALTIES[4], 2)
    first, second = (
        Estimate(truth.weights + 0.3 * rng.standard_normal(q), truth.left_out + 0.3 * rng.standard_normal((6, q)))
        for _ in range(2)
    )

    def error(share):
        mixed = share * first.left_out + (1.0 - share) * second.left_out
        return sum(((u.y - features_of(u) @ w) ** 2).sum() for u, w in zip(everybody, mixed, strict=True))

    best = min(np.linspace(0.0, 1.0, 1001), key=error)
    assert 0.0 < best < 1.0
    expected = best * first.weights + (1.0 - best) * second.weights
    np.testing.assert_allclose(weighed(sums, first, second), expected, atol=1e-3 * np.abs(expected).max())
    # A share beyond 1 would be best here, so the second does not count; two that are the same need no weight.
    exact = np.array([np.linalg.lstsq(features_of(u), u.y, rcond=None)[0] for u in everybody])
    step = rng.standard_normal((6, q))
    near, far = Estimate(first.weights, exact + step), Estimate(second.weights, exact + 2.0 * step)
    np.testing.assert_array_equal(weighed(sums, near, far), first.weights)
    np.testing.assert_array_equal(weighed(sums, far, near), first.weights)
    np.testing.assert_array_equal(weighed(sums, truth, truth), truth.weights)

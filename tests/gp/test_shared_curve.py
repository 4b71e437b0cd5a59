"""Curves that all users share: each estimate against rows left out in earnest, and their average."""

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Reward, shared_curve
from kerneltrail.gp.population import BUMPS, PLACES, PopulationMean, bumps, design, ridge
from kerneltrail.gp.shared_curve import FOLDS, Estimate, apart, by_ridge, by_two_levels, weighed, with_curves
from kerneltrail.gp.two_level import LevelRows, TwoLevelModel
from kerneltrail.gp.two_level_search import Units, learn_from_some, level_rows

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
    assert mean.curves.shape == (2, len(PLACES))
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
    assert mean.curves is None
    assert len(mean.weights) == 3
    np.testing.assert_allclose(mean.at(np.array([[0.2, 0.7]]), None), 2.0 * 0.2 - 0.7, atol=0.02)


def test_one_user_has_no_curve():
    alone = users(1)
    lines = PopulationMean.train(alone, None)
    assert with_curves(lines, alone) is lines


def best_ridge(everybody, penalty):
    """The search for curves again, from rows and with each user left out in earnest; weights of lines and bumps."""

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
    return fitted(everybody, penalties)


def test_the_ridge_is_the_best_of_one_curve_after_the_other():
    """Of all users, and again of the others for what it says of a user."""
    everybody = users(5, 40, slope=0.5)
    lines = PopulationMean.train(everybody, None)
    estimate = by_ridge(lines, everybody, np.arange(5))
    rows = np.random.default_rng(1).uniform(0, 1, (20, 2))
    expected = np.hstack([design(rows, NAMES, None, None), bumps(rows, BUMPS)]) @ best_ridge(everybody, lines.penalty)
    np.testing.assert_allclose(estimate.mean.at(rows, None), expected, atol=0.01)  # straight between places
    for out, said in zip(everybody, estimate.left_out, strict=True):
        others = [user for user in everybody if user is not out]
        np.testing.assert_allclose(said, features_of(out) @ best_ridge(others, lines.penalty), atol=1e-5)


def test_the_order_of_covariates_does_not_matter():
    everybody = users(6, 40, slope=0.7, seed=5)
    turned = [User(user.name, NAMES[::-1], user.X[:, ::-1], user.y, user.ends) for user in everybody]
    means = [with_curves(PopulationMean.train(some, None), some) for some in (everybody, turned)]
    rows = np.random.default_rng(6).uniform(0, 1, (20, 2))
    np.testing.assert_allclose(means[0].at(rows, None), means[1].at(rows[:, ::-1], None), atol=1e-4)


def dense_shared(everybody, kept, at, learnt, units):
    """What kept users' rows say of the shared function at rows `at`: one covariance of all their rows."""
    levels, d = learnt.levels, len(NAMES)
    some = [everybody[m] for m in kept]
    owner = np.repeat(kept, [user.rows for user in some])
    noise = levels.noise * np.exp(learnt.deviations[owner])
    z = (np.concatenate([user.X for user in some]) - units.centre) / units.scale
    y = (np.concatenate([user.y for user in some]) - units.target_centre) / units.target_scale
    there = (at - units.centre) / units.scale

    def kernel(a, b, variances):
        total = np.full((len(a), len(b)), variances[0])
        for j in range(d):
            apart = (a[:, None, j] - b[None, :, j]) / levels.lengthscale[j]
            total += variances[1 + j] * np.multiply.outer(a[:, j], b[:, j])
            total += variances[1 + d + j] * np.exp(-0.5 * apart**2)
        return total

    covariance = kernel(z, z, levels.population) + (owner[:, None] == owner) * kernel(z, z, levels.user)
    weights = np.linalg.solve(covariance + np.diag(noise), y)
    return units.target_centre + units.target_scale * kernel(there, z, levels.population) @ weights


def test_the_function_on_two_levels_is_that_of_a_dense_gaussian_process():
    """Of all users, and of those who are not left out together for what it says of a user."""
    everybody = users(6, 25, slope=1.0, seed=2)
    lines = PopulationMean.train(everybody, None)
    folds = np.arange(6) % 3
    estimate = by_two_levels(lines, everybody, folds)
    units = Units.of(everybody)
    rows = []
    for user in everybody:
        z = (user.X - units.centre) / units.scale
        rows.append(
            LevelRows(np.column_stack([np.ones(len(z)), z]), z, (user.y - units.target_centre) / units.target_scale)
        )
    learnt = learn_from_some(rows)
    at = np.random.default_rng(1).uniform(-0.4, 1.4, (20, 2))  # somewhat beyond the rows too
    expected = dense_shared(everybody, np.arange(6), at, learnt, units)
    np.testing.assert_allclose(estimate.mean.at(at, None), expected, atol=0.01)  # straight between places
    for user, fold, said in zip(everybody, folds, estimate.left_out, strict=True):
        expected = dense_shared(everybody, np.flatnonzero(folds != fold), user.X, learnt, units)
        np.testing.assert_allclose(said, expected, atol=1e-6)


def test_the_function_on_two_levels_has_the_action():
    everybody = users(10, slope=1.0, seed=2, action=True)
    lines = PopulationMean.train(everybody, Reward(()))
    mean = by_two_levels(lines, everybody, np.arange(10)).mean
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(along(mean, 0, x), shape(x), atol=0.2)
    assert mean.advantage(np.zeros((1, 2)))[0] == pytest.approx(0.5, abs=0.15)


def test_far_beyond_the_pilot_users_range_a_curve_stays_and_its_line_goes_on():
    everybody = users(slope=0.0)
    mean = with_curves(PopulationMean.train(everybody, None), everybody)
    far = np.array([1.5, 2.0, 2.5])
    np.testing.assert_allclose(mean.curve(0, far), mean.curve(0, far[:1])[0])
    np.testing.assert_allclose(np.diff(mean.along(0, far)), 0.5 * mean.weights[1])


def test_the_ridge_stays_as_it_is_beyond_the_range():
    everybody = users(slope=0.0)
    mean = by_ridge(PopulationMean.train(everybody, None), everybody, np.arange(len(everybody))).mean
    np.testing.assert_allclose(mean.curve(0, np.array([1.1, 1.4])), mean.curve(0, np.ones(1))[0])
    np.testing.assert_allclose(mean.curve(0, np.array([-0.4, -0.1])), mean.curve(0, np.zeros(1))[0])


def test_many_users_are_left_out_in_groups():
    everybody = users(FOLDS + 5, 12, slope=0.5, seed=7)
    mean = with_curves(PopulationMean.train(everybody, None), everybody)
    x = np.linspace(0, 1, 9)
    np.testing.assert_allclose(along(mean, 0, x), shape(x), atol=0.25)


def test_where_two_levels_cannot_be_learnt_the_ridge_is_used_and_it_is_said(monkeypatch):
    def fails(*_):
        raise NumericalError("no number")

    everybody = users(4, 30)
    lines = PopulationMean.train(everybody, None)
    ridge_alone = by_ridge(lines, everybody, np.arange(4)).mean
    monkeypatch.setattr(shared_curve, "by_two_levels", fails)
    with pytest.warns(UserWarning, match="on two levels: no number"):
        mean = with_curves(lines, everybody)
    np.testing.assert_array_equal(mean.curves[0], ridge_alone.curves[0])


def test_the_average_is_the_one_that_predicts_users_who_are_left_out_best():
    everybody = users(6, 30, slope=0.8, seed=3)
    rng = np.random.default_rng(0)
    truth = by_ridge(PopulationMean.train(everybody, None), everybody, np.arange(6))

    def blurred(size):
        return Estimate(truth.mean, tuple(said + size * rng.standard_normal(len(said)) for said in truth.left_out))

    first, second = blurred(0.3), blurred(0.4)

    def error(share):
        both = zip(everybody, first.left_out, second.left_out, strict=True)
        return sum(((user.y - share * one - (1.0 - share) * other) ** 2).sum() for user, one, other in both)

    best = min(np.linspace(0.0, 1.0, 1001), key=error)
    assert 0.0 < best < 1.0
    assert weighed(everybody, first, second) == pytest.approx(best, abs=1e-3)
    # A share beyond 1 would be best here, so the second does not count; two that are the same need no first.
    steps = [rng.standard_normal(user.rows) for user in everybody]
    near, far = (
        Estimate(each.mean, tuple(user.y + size * step for user, step in zip(everybody, steps, strict=True)))
        for each, size in ((first, 1.0), (second, 2.0))
    )
    assert weighed(everybody, near, far) == 1.0
    assert weighed(everybody, far, near) == 0.0
    assert weighed(everybody, truth, truth) == 0.0


def test_what_is_said_of_the_level_is_what_the_ridge_says_more():
    everybody = []
    for centre, user in zip(np.linspace(0.1, 0.9, 6), users(6, 30, seed=3, action=True), strict=True):
        X = np.column_stack(
            [user.X[:, 0], centre + 0.2 * (user.X[:, 1] - 0.5)]
        )  # who lies higher in z lies higher in y
        everybody.append(User(user.name, NAMES, X, user.y + 3.0 * centre, user.ends, action=user.action))
    lines, folds = PopulationMean.train(everybody, Reward(())), np.arange(6)
    ridge_alone, two = by_ridge(lines, everybody, folds), by_two_levels(lines, everybody, folds)
    mean = with_curves(lines, everybody)
    share = weighed(everybody, ridge_alone, two)
    assert share > 0.3
    rows, nobody = np.random.default_rng(1).uniform(0, 1, (20, 2)), np.zeros(20)
    expected = share * (ridge_alone.mean.at(rows, nobody) - two.mean.at(rows, nobody))
    np.testing.assert_allclose(mean.level_at(rows), expected, atol=1e-12)
    np.testing.assert_allclose(mean.at(rows, nobody), two.mean.at(rows, nobody), atol=0.02)  # hardly bent is straight
    assert apart(ridge_alone.mean, two.mean, 0.0) is None
    user = everybody[0]
    np.testing.assert_allclose(mean.levelled(user).y, mean.centred(user).y - mean.level_at(user.X).mean())


@pytest.mark.parametrize("action", [False, True])
def test_a_new_users_own_lines_are_as_the_process_of_two_levels_has_them(action):
    """Covariance of lines at rows, in the target's units, whatever the units inside."""
    everybody = users(slope=1.5, action=action)
    reward = Reward(()) if action else None
    two = by_two_levels(PopulationMean.train(everybody, reward), everybody, np.arange(len(everybody)))
    rows = [level_rows(user, NAMES, two.units, reward) for user in everybody]
    model = TwoLevelModel.train(rows, two.learnt.levels, two.learnt.deviations)
    straight = model.covariance[: model.lines, : model.lines]
    expected = two.units.target_scale**2 * rows[0].lines @ straight @ rows[0].lines.T
    features = design(everybody[0].X, NAMES, reward, everybody[0].assignment)
    np.testing.assert_allclose(features @ two.mean.own @ features.T, expected, atol=1e-9)
    # In a reward model the same, with its features in their order.
    block = two.mean.own_of(reward or Reward.constant(10.0)).block(
        everybody[0].X, NAMES, everybody[0].assignment if action else None
    )
    np.testing.assert_allclose(block.features @ block.covariance @ block.features.T, expected, atol=1e-9)
    assert block.covariance[-1, -1] == pytest.approx(1.5**2, rel=0.8)  # of eight users' slopes in z


def test_without_a_constant_of_ones_own_the_rest_is_the_same():
    everybody = users(slope=1.5, action=True)
    mean = with_curves(PopulationMean.train(everybody, Reward(())), everybody)
    without = mean.own_of(Reward((), constant_variance=0.0))
    assert without.names == ("action", "slope×x", "slope×z")
    np.testing.assert_array_equal(without.weight_covariance, mean.own_of(Reward(())).weight_covariance[1:, 1:])
    assert mean.own_of(Reward(("x",))) is None  # another advantage than the mean has
    assert PopulationMean.train(everybody, Reward(())).own_of(Reward(())) is None


def test_levels_differ_by_what_covariates_do_not_say_of_them():
    everybody = users(slope=0.5)
    levels = np.random.default_rng(6).standard_normal(len(everybody))
    apart_by = [user.with_y(user.y + level) for user, level in zip(everybody, levels, strict=True)]
    two = by_two_levels(PopulationMean.train(apart_by, None), apart_by, np.arange(len(apart_by)))
    middle = np.array([1.0, 0.5, 0.5])
    known = two.around(levels)
    assert middle @ two.mean.own @ middle > 0.4
    assert middle @ known.own @ middle < 0.2
    np.testing.assert_array_equal(known.own[1:], two.mean.own[1:])
    assert np.linalg.eigvalsh(known.own).min() > 0.0

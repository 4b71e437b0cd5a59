"""Learning what users share on two levels: the optimum, and learning from some users for all."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import two_level_search
from kerneltrail.gp.two_level import LevelRows, Levels, TwoLevelEvidence
from kerneltrail.gp.two_level_search import Units, factor_interval, learn, learn_from_some, level_variance, prior_of


def users(count=12, n=60, *, noises=None, seed=0):
    """Slopes in a that differ between users, a curve in b that all share, in about standard units."""
    rng = np.random.default_rng([3, seed])
    noises = np.full(count, 0.5) if noises is None else noises
    made = []
    for noise in noises:
        X = np.column_stack([rng.normal(size=n), rng.uniform(-1.7, 1.7, n)])
        y = rng.normal(0.3, 0.6) * X[:, 0] + 0.7 * np.sin(2.0 * X[:, 1]) + noise * rng.normal(size=n)
        made.append(LevelRows(np.column_stack([np.ones(n), X]), X, y))
    return made


def test_the_search_ends_where_the_gradient_vanishes():
    learnt = learn(users(), noise="shared")
    mean, sd = prior_of(3, 2)
    theta = learnt.levels.vector
    slopes = TwoLevelEvidence(users())(theta, learnt.deviations)
    assert slopes.log == pytest.approx(learnt.log_evidence, abs=1e-6)
    assert np.abs(sd * slopes.gradient - (theta - mean) / sd).max() < 0.3  # nats for a prior standard deviation


def test_levels_are_their_vector():
    levels = Levels.from_vector(np.linspace(-1.0, 1.0, 2 * 5 + 2 + 1), 3)
    np.testing.assert_allclose(levels.vector, np.linspace(-1.0, 1.0, 13))


def test_of_many_users_some_say_how_users_differ_and_all_have_a_noise(monkeypatch):
    noises = np.r_[np.full(10, 0.3), np.full(2, 1.2)]
    everybody = users(noises=noises)
    monkeypatch.setattr(two_level_search, "MOST_USERS", 6)
    some = learn_from_some(everybody)
    np.testing.assert_allclose(some.levels.vector, learn(everybody[::2], noise="user").levels.vector)
    assert some.deviations.shape == (12,)
    assert some.deviations[-2:].min() > some.deviations[:10].max() + 1.0


def test_two_users_have_one_noise():
    assert not learn_from_some(users(2)).deviations.any()


def apart(users, levels):
    return [replace(user, y=user.y + level) for user, level in zip(users, levels, strict=True)]


def test_the_variance_of_levels_is_that_of_the_search_and_falls_with_what_is_known_of_them():
    levels = 0.8 * np.random.default_rng(5).standard_normal(12)
    everybody = apart(users(), levels)
    learnt = learn(everybody, noise="shared")
    assert level_variance(everybody, learnt) == pytest.approx(learnt.levels.user[0], rel=0.1)
    assert level_variance(everybody, learnt) == pytest.approx(levels.var(), rel=0.4)
    assert level_variance(users(), learnt) < 0.05 * levels.var()


def test_a_variance_that_cannot_be_computed_is_not_the_best(monkeypatch):
    everybody = apart(users(), np.linspace(-1.0, 1.0, 12))
    learnt = learn(everybody, noise="shared")
    expected, plain = level_variance(everybody, learnt), TwoLevelEvidence.__call__

    def fails(evidence, theta, deviations):
        if theta[5] > np.log(2.0):  # the first variance between users, after five shared ones
            raise NumericalError("too large")
        return plain(evidence, theta, deviations)

    monkeypatch.setattr(TwoLevelEvidence, "__call__", fails)
    assert level_variance(everybody, learnt) == pytest.approx(expected, rel=0.2)


def test_of_many_users_some_say_how_levels_differ(monkeypatch):
    everybody = apart(users(), np.linspace(-1.0, 1.0, 12))
    learnt = learn(everybody, noise="user")
    monkeypatch.setattr(two_level_search, "MOST_USERS", 6)
    some = replace(learnt, deviations=learnt.deviations[::2])
    assert level_variance(everybody, learnt) == level_variance(everybody[::2], some)


def test_intervals_of_a_variance_hold_the_truth():
    """Of slopes that differ by 0.6; 40 intervals of 90 %: fewer than 75 % is a false alarm in about 300 runs."""
    inside = []
    for seed in range(40):
        everybody = users(n=30, seed=seed)
        learnt = learn(everybody, noise="shared")
        low, high = factor_interval(everybody, learnt, [1])
        assert low < 1.0 < high
        inside.append(low <= 0.36 / learnt.levels.user[1] <= high)
    assert np.mean(inside) >= 0.75


@pytest.mark.parametrize("level", [0.0, 0.1, 1.0 / 3.0, 1e6 / 3.0])
def test_a_covariate_that_does_not_vary_keeps_its_unit(level):
    """The standard deviation of equal numbers is their rounding error, as a rule not 0."""
    X = np.column_stack([np.linspace(0.0, 1.0, 30), np.full(30, level)])
    units = Units.of([User("ann", ("x", "z"), X, np.linspace(1.0, 2.0, 30), (30,))])
    assert units.scale[1] == 1.0
    assert units.scale[0] == pytest.approx(X[:, 0].std())

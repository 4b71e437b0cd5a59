"""The population's mean and spread, against plain formulas and the marginal likelihood."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean, bumps, spread

REWARD = Reward(("x",), advantage_variance=0.5, constant_variance=4.0)
TRUE = np.array([2.0, 0.5, 1.5])


def centred(number, rows=60, variances=TRUE, seed=0):
    """A user whose target is its own constant, and its own advantage, around zero."""
    rng = np.random.default_rng([seed, number])
    x, action = rng.uniform(0.0, 1.0, rows), rng.integers(0, 2, rows)
    features = np.column_stack([np.ones(rows), action, action * x])
    y = features @ (np.sqrt(variances) * rng.standard_normal(3)) + 0.7 * rng.standard_normal(rows)
    return User(f"user {number}", ("x",), x[:, None], y, (rows,), action=action)


def test_the_spread_is_near_the_truth_with_many_users():
    """Standard error of a variance from 150 users is a tenth of it; three of them, so a false alarm in about 400."""
    found = np.array(spread([centred(m, rows=200) for m in range(150)], REWARD).variances)
    assert (np.abs(found / TRUE - 1.0) < 0.35).all()


def test_users_who_are_all_alike_have_little_spread_and_never_none():
    found = spread([centred(m, variances=np.zeros(3)) for m in range(20)], REWARD).variances
    assert min(found) > 0.0
    assert max(found) < 0.3


def test_the_spread_needs_rows_and_actions():
    user = centred(0)
    with pytest.raises(DataError, match="at least one training row"):
        spread([], REWARD)
    with pytest.raises(DataError, match="'user 0' has no actions"):
        spread([User("user 0", ("x",), user.X, user.y, user.ends)], REWARD)


def test_a_population_mean_is_subtracted_and_knows_the_actions_part():
    user = centred(3)
    mean = PopulationMean(np.array([1.0, 2.0, 0.5, -0.25]), ("x",), REWARD, 1.0)
    rest = mean.centred(user)
    x, a = user.X[:, 0], user.action
    np.testing.assert_allclose(user.y - rest.y, 1.0 + 2.0 * x + a * (0.5 - 0.25 * x))
    np.testing.assert_allclose(mean.advantage(user.X), 0.5 - 0.25 * x)
    np.testing.assert_array_equal(PopulationMean(np.array([1.0, 2.0]), ("x",), None, 1.0).advantage(user.X), 0.0)


@pytest.mark.parametrize("variances", [(1.0, 1.0), (1.0, 1.0, 0.0), (1.0, -1.0, 1.0)])
def test_learnt_variances_are_as_many_as_features_and_positive(variances):
    with pytest.raises(DataError, match="as many variances above 0"):
        Reward(("x",), variances=variances)


def test_no_rows_have_no_bumps():
    assert bumps(np.zeros((0, 2)), 7).shape == (0, 14)

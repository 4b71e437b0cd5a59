"""The linear block of a reward model."""

import numpy as np
import pytest

from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import LinearBlock, Reward

X = np.array([[0.1, 5.0], [0.2, 6.0], [0.3, 7.0]])
NAMES = ("hour", "temp")
ACTION = np.array([1.0, 0.0, 1.0])


def test_the_reward_models_block_is_constant_action_and_action_times_features():
    reward = Reward(("temp",), advantage_variance=2.0, constant_variance=7.0)
    block = reward.block(X, NAMES, ACTION)
    assert block.names == reward.names == ("constant", "action", "action×temp")
    np.testing.assert_array_equal(block.features, [[1, 1, 5], [1, 0, 0], [1, 1, 7]])
    np.testing.assert_array_equal(block.covariance, np.diag([7.0, 2.0, 2.0]))
    np.testing.assert_array_equal(block.features[:, reward.advantage], ACTION[:, None] * reward.contexts(X, NAMES))


def test_constant_and_intercept_may_be_left_out():
    reward = Reward(("temp", "hour"), constant_variance=0.0, intercept=False)
    assert reward.names == ("action×temp", "action×hour")
    np.testing.assert_array_equal(reward.block(X, NAMES, ACTION).features, [[5, 0.1], [0, 0], [7, 0.3]])


def test_weighted_features_have_the_blocks_covariance_even_if_singular():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((3, 2))
    block = LinearBlock(rng.standard_normal((5, 3)), factor @ factor.T, ("a", "b", "c"))
    expected = block.features @ block.covariance @ block.features.T
    np.testing.assert_allclose(block.weighted @ block.weighted.T, expected, atol=1e-12)
    np.testing.assert_array_equal(block.rows(2).features, block.features[:2])
    np.testing.assert_array_equal(block.at(np.ones((1, 3))).features, np.ones((1, 3)))


def test_a_block_is_a_value():
    features = np.ones((2, 1))
    block = LinearBlock(features, np.eye(1), ("one",))
    features[:] = 5.0
    assert block.features[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        block.features[0, 0] = 2.0


@pytest.mark.parametrize(
    ("features", "covariance", "problem"),
    [
        (np.ones((3, 2)), np.eye(3), "needs features"),
        (np.ones((3, 3)), np.eye(2), "needs features"),
        (np.full((3, 2), np.nan), np.eye(2), "not finite"),
        (np.ones((3, 2)), np.full((2, 2), np.inf), "not finite"),
        (np.ones((3, 2)), np.array([[1.0, 0.9], [0.0, 1.0]]), "not symmetric"),
    ],
)
def test_wrong_blocks_are_refused_by_name(features, covariance, problem):
    with pytest.raises(DataError, match=f"(a, b).*{problem}|{problem}.*(a, b)"):
        LinearBlock(features, covariance, ("a", "b"))


def test_an_indefinite_prior_is_refused_by_name():
    with pytest.raises(NumericalError, match=r"the linear block \(a, b\).*negative eigenvalue"):
        _ = LinearBlock(np.ones((3, 2)), np.array([[1.0, 2.0], [2.0, 1.0]]), ("a", "b")).weighted


def test_wrong_reward_models_are_refused():
    with pytest.raises(DataError, match="not among the covariates hour, temp"):
        Reward(("steps",)).block(X, NAMES, ACTION)
    with pytest.raises(DataError, match="one action"):
        Reward().block(X, NAMES, ACTION[:2])
    with pytest.raises(DataError, match="at least one feature"):
        Reward((), constant_variance=0.0, intercept=False)
    with pytest.raises(DataError, match="advantage_variance"):
        Reward(advantage_variance=0.0)


def test_a_constant_alone_has_no_use_for_the_action():
    reward = Reward.constant(4.0)
    assert not reward.acts
    assert Reward().acts
    assert Reward(("temp",), intercept=False).acts
    for action in (None, ACTION):
        block = reward.block(X, NAMES, action)
        np.testing.assert_array_equal(block.features @ block.covariance @ block.features.T, np.full((len(X),) * 2, 4.0))
    assert reward.names == ("constant",)
    assert reward.contexts(X, NAMES).shape == (len(X), 0)

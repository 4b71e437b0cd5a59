"""The action's advantage of a posterior, against Bayesian linear algebra."""

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.gp import Posterior, Reward, prior_only
from kerneltrail.kernels import Hyperparameters, parse

from . import problems as gp


def reward_problem(seed, **options):
    rng = np.random.default_rng(seed)
    X, action = gp.rows(rng, 25), rng.integers(0, 2, 25).astype(float)
    reward = Reward(**options)
    block = reward.block(X, gp.COVARIATES, action)
    h = Hyperparameters.from_values(parse("LIN[x] + SE[z]"), [1.0, 0.3, 2.0, 0.5, 0.4])
    user = User("u", gp.COVARIATES, X, rng.normal(size=25), (25,), action=action)
    return user, h, reward, block, gp.rows(rng, 6)


@pytest.mark.parametrize(
    "options",
    [
        {"features": ("z",)},
        {"features": ("x", "z"), "intercept": False},
        {"features": (), "advantage_variance": 0.3},
        {"features": ("z", "x"), "constant_variance": 0.0},
    ],
)
def test_advantage_is_bayesian_linear_algebra(options):
    user, h, reward, block, new = reward_problem(1, **options)
    posterior = Posterior.fit(user, h, block=block)
    mean, variance = posterior.advantage(new, reward)
    # The joint Gaussian of (y, w) written out, conditioned on y.
    q = len(reward.names)
    prior = np.diag(
        [(reward.constant_variance if name == "constant" else reward.advantage_variance) for name in reward.names]
    )
    K = sum(gp.product_covariance(h, p, user.X, user.X) for p in range(2))
    joint = np.block(
        [[K + block.features @ prior @ block.features.T + h["noise"] * np.eye(25), block.features @ prior],
         [prior @ block.features.T, prior]]
    )  # fmt: skip
    inverse = np.linalg.inv(joint[:25, :25])
    w_mean, w_cov = joint[25:, :25] @ inverse @ user.y, joint[25:, 25:] - joint[25:, :25] @ inverse @ joint[:25, 25:]
    # Weights of the advantage: each row's [0, 1, φ(s)], without the constant.
    for i, row in enumerate(new):
        phi = [1.0] if reward.intercept else []
        phi += [row[gp.COVARIATES.index(name)] for name in reward.features]
        full = np.concatenate([np.zeros(q - len(phi)), phi])
        assert mean[i] == pytest.approx(full @ w_mean, abs=1e-9)
        assert variance[i] == pytest.approx(full @ w_cov @ full, abs=1e-9)
    found_mean, found_cov = posterior.weights()
    np.testing.assert_allclose(found_mean, w_mean, atol=1e-9)
    np.testing.assert_allclose(found_cov, w_cov, atol=1e-9)


def test_advantage_is_the_difference_of_two_predictions():
    user, h, reward, block, new = reward_problem(2, features=("x", "z"))
    posterior = Posterior.fit(user, h, block=block)
    on, off = (reward.design(new, gp.COVARIATES, np.full(len(new), a)) for a in (1.0, 0.0))
    mean, variance = posterior.advantage(new, reward)
    difference = posterior.predict(new, linear=on).mean - posterior.predict(new, linear=off).mean
    np.testing.assert_allclose(mean, difference, atol=1e-10)
    # The variance of the difference, from the joint covariance of r(s,1) and r(s,0).
    both = posterior.covariance(np.vstack([new, new]), linear=np.vstack([on, off]))
    m = len(new)
    expected = np.diagonal(both)[:m] + np.diagonal(both)[m:] - 2.0 * np.diagonal(both[:m, m:])
    np.testing.assert_allclose(variance, expected, atol=1e-9)


def test_advantage_before_any_row_is_the_priors():
    _, h, reward, block, new = reward_problem(3, features=("z",), advantage_variance=0.7)
    mean, variance = prior_only(h, gp.COVARIATES, block=block).advantage(new, reward)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(variance, 0.7 * (1.0 + new[:, 1] ** 2))


def test_advantage_of_another_reward_model_is_refused():
    user, h, reward, block, new = reward_problem(4, features=("x",))
    posterior = Posterior.fit(user, h, block=block)
    with pytest.raises(DataError, match="action×x, the reward model constant, action, action×z"):
        posterior.advantage(new, Reward(features=("z",)))
    with pytest.raises(DataError, match=r"action×x, the reward model constant, action$"):
        posterior.advantage(new, Reward())
    with pytest.raises(DataError, match="not among the covariates"):
        posterior.advantage(new, Reward(features=("hour",)))
    with pytest.raises(DataError, match="no linear block"):
        Posterior.fit(user, h).advantage(new, reward)
    with pytest.raises(DataError, match="rows need 2 columns"):
        posterior.advantage([1.0, 2.0, 3.0], reward)

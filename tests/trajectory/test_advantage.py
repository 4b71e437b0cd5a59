"""The advantage of a followed user, against the joint Gaussian written out."""

import numpy as np
import pytest
from scipy import stats

from gp import oracle as gp_oracle
from kerneltrail.errors import DataError
from kerneltrail.trajectory.advantage import Advantage

from .small import COVARIATES, X_NEXT, follow, mean_model, rewarded_model, rows, small_model


def dense(model, user, person, X):
    """Mean and variance of every node's advantage from (y, w)'s joint Gaussian, averaged by their probabilities."""
    here = model.scaler.apply(person)
    y = here.y if model.mean is None else here.y - model.mean.at(here.X, here.action)
    z = model.scaler.transform(np.asarray(X, dtype=float))
    contexts = np.column_stack([np.ones(len(z)), z[:, COVARIATES.index("hour")]])
    a = here.action[:, None]
    B = np.hstack([np.ones_like(a), a, a * here.X[:, [COVARIATES.index("hour")]]])
    prior = np.diag(model.reward.weight_variances)
    parts = []
    for node in model.nodes:
        h = user.node_posterior(node.composition).fit.hyperparameters
        K = gp_oracle.covariance(here, node.composition, h.unconstrained)  # noise included
        cross = prior @ B.T @ np.linalg.inv(K + B @ prior @ B.T)
        w, C = cross @ y, prior - cross @ B @ prior
        parts.append((contexts @ w[1:], np.diagonal(contexts @ C[1:, 1:] @ contexts.T)))
    share = np.array([user.probabilities[node.composition] for node in model.nodes])
    share = share @ model.transitions[1:]  # at the next batch
    mean = share @ np.array([m for m, _ in parts])
    second = share @ np.array([v + m**2 for m, v in parts])
    variance = second - mean**2
    if model.mean is not None:
        mean = mean + contexts @ model.mean.weights[1 + len(COVARIATES) :]
    scale = model.scaler.scale
    return scale * mean, scale**2 * variance


@pytest.mark.parametrize("make", [rewarded_model, mean_model])
def test_the_advantage_is_that_of_the_joint_gaussian(make):
    model, person = make(), rows("new", 12, seed=21)
    user = model.new_user()
    follow(user, person)
    said = user.advantage(X_NEXT)
    mean, variance = dense(model, user, person, X_NEXT)
    np.testing.assert_allclose(said.mean, mean, atol=1e-3)
    np.testing.assert_allclose(said.variance, variance, rtol=1e-3)


@pytest.mark.parametrize("make", [rewarded_model, mean_model])
def test_the_advantage_is_what_the_action_changes_in_a_prediction(make):
    user = make().new_user()
    for _ in range(2):
        on, off = (user.predict(X_NEXT, action=np.full(3, a)) for a in (1, 0))
        np.testing.assert_allclose(user.advantage(X_NEXT).mean, on.mean - off.mean, atol=1e-9)
        follow(user, rows("new", 12, seed=22))


def test_kept_rows_and_their_sums_agree_on_the_advantage():
    model, person = rewarded_model(), rows("new", 24, seed=23, size=12)
    frozen = model.new_user(refine=12)
    follow(frozen, person)
    assert frozen.state.kept is None
    mean, variance = dense(model, frozen, person, X_NEXT)
    said = frozen.advantage(X_NEXT)
    np.testing.assert_allclose(said.mean, mean, atol=1e-2)
    np.testing.assert_allclose(said.variance, variance, rtol=1e-2)


def test_intervals_and_the_probability_of_helping_are_the_normals():
    said = Advantage([1.0], [[0.5, -1.0, 2.0, 0.0]], [[0.25, 4.0, 0.0, 0.0]])
    low, high = said.interval(0.8)
    np.testing.assert_allclose(low[:2], stats.norm(said.mean[:2], said.sd[:2]).ppf(0.1))
    np.testing.assert_allclose(high[:2], stats.norm(said.mean[:2], said.sd[:2]).ppf(0.9))
    np.testing.assert_allclose(said.positive, [stats.norm.cdf(1.0), stats.norm.cdf(-0.5), 1.0, 0.5])
    with pytest.raises(DataError, match="between 0 and 1"):
        said.interval(90)


def test_without_a_reward_model_there_is_no_advantage():
    with pytest.raises(DataError, match="no reward model"):
        small_model().new_user().advantage(X_NEXT)

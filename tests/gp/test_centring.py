"""The centred coding of the action (method (41)): a wrong baseline does not leak into the advantage."""

import numpy as np
import pytest

from kerneltrail.data.assignment import Assignment
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.gp import Posterior, Reward
from kerneltrail.gp.population import PopulationMean, centred_where_logged
from kerneltrail.kernels import Hyperparameters, parse

TRUTH = 0.3


def estimate(reward, seed, n=200):
    """The advantage of somebody whose baseline is not in the model, and who is prompted when the baseline is high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    probability = 1.0 / (1.0 + np.exp(-3.0 * X[:, 0]))
    action = (rng.random(n) < probability).astype(float)
    y = 2.0 * X[:, 0] + TRUTH * action + rng.standard_normal(n)
    user = User("ann", ("x",), X, y, (n,), action=action, probability=probability)
    flat = Hyperparameters.from_values(parse("SE[x]"), [0.01, 50.0, 1.0])  # as good as no baseline
    posterior = Posterior.fit(user, flat, block=reward.block(user.X, ("x",), user.assignment))
    mean, variance = posterior.advantage(np.zeros((1, 1)), reward)
    return float(mean[0]), float(variance[0])


def test_plain_coding_is_biased_where_centred_is_not():
    """200 runs: the centred mean's standard error is 0.012 (limits at four of them), the plain bias is far beyond."""
    plain = np.array([estimate(Reward((), coding="plain"), seed) for seed in range(200)])
    centred = np.array([estimate(Reward((), typical=0.5), seed) for seed in range(200)])
    assert plain[:, 0].mean() - TRUTH > 0.5
    assert abs(centred[:, 0].mean() - TRUTH) < 0.06
    inside = lambda found: np.mean(np.abs(found[:, 0] - TRUTH) < 1.96 * np.sqrt(found[:, 1]))  # noqa: E731
    assert inside(plain) < 0.05
    assert 0.9 <= inside(centred) <= 1.0


def test_the_contrast_has_the_same_weights_in_both_codings():
    X, names = np.array([[0.2], [0.7]]), ("x",)
    for reward in (Reward(("x",)), Reward(("x",), typical=0.4)):
        on, off = (reward.design(X, names, Assignment(np.full(2, a), np.array([0.3, 0.6]))) for a in (1.0, 0.0))
        contrast = (on - off)[:, reward.advantage]
        np.testing.assert_allclose(contrast, reward.contexts(X, names))
        np.testing.assert_allclose(np.delete(on - off, np.r_[reward.advantage], axis=1), 0.0)
        assert len(reward.names) == on.shape[1] == len(reward.weight_variances)


def test_rows_at_which_nobody_could_act_speak_of_the_baseline_alone():
    reward, X = Reward(("x",), typical=0.4), np.array([[0.2], [0.7]])
    assignment = Assignment(np.array([1.0, 0.0]), np.array([0.3, 0.6]), np.array([1.0, 0.0]))
    design = reward.design(X, ("x",), assignment)
    np.testing.assert_array_equal(design[1], [1, 0, 0, 0, 0])
    np.testing.assert_allclose(design[0], [1, 0.7, 0.7 * 0.2, 0.3, 0.3 * 0.2])


def test_a_probability_that_was_not_logged_is_the_typical_one():
    reward, X = Reward((), typical=0.25), np.zeros((1, 1))
    np.testing.assert_allclose(reward.design(X, ("x",), [1.0]), [[1.0, 0.75, 0.25]])


def test_the_coding_is_centred_where_everybody_logged_the_probability():
    def user(name, probability):
        return User(
            name, ("x",), [[0.0], [1.0]], [1.0, 2.0], (2,), action=[0, 1], probability=probability, availability=[1, 0]
        )

    logged = [user("a", [0.2, 0.9]), user("b", [0.4, 0.9])]
    assert centred_where_logged(Reward(), logged).typical == pytest.approx(0.3)  # where somebody could act
    assert centred_where_logged(Reward(coding="plain"), logged).typical is None
    assert centred_where_logged(Reward(), [*logged, user("c", None)]).typical is None
    with pytest.raises(DataError, match="'centred' or 'plain'"):
        Reward(coding="both")
    with pytest.raises(DataError, match="in \\[0, 1\\]"):
        Reward(typical=1.5)


def test_the_population_has_the_same_advantage_in_both_codings():
    """Probabilities that say nothing: both regressions are of the same model, so they agree to within their noise."""
    rng = np.random.default_rng(0)
    users = []
    for name in "abcd":
        X, action = rng.uniform(0, 1, (150, 1)), rng.integers(0, 2, 150).astype(float)
        y = X[:, 0] + 0.8 * action + 0.1 * rng.standard_normal(150)
        users.append(User(name, ("x",), X, y, (150,), action=action, probability=np.full(150, 0.5)))
    for reward in (Reward(coding="plain"), Reward(typical=0.5)):
        mean = PopulationMean.train(users, reward)
        assert mean.advantage(np.zeros((1, 1)))[0] == pytest.approx(0.8, abs=0.05)
        on, off = (mean.at(np.zeros((1, 1)), Assignment(np.full(1, a), np.full(1, 0.5))) for a in (1.0, 0.0))
        assert (on - off)[0] == pytest.approx(mean.advantage(np.zeros((1, 1)))[0])

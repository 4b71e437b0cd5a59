"""The two methods to beat, with the shape of the training users' outcomes."""

from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Prediction, Reward
from kerneltrail.methods import RefittingMethod, build
from kerneltrail.methods.shaped import _predicted


def cohort(count=12, seed=0, rows=30):
    """Straight lines with noise, of which what is below 2 was nothing at all; the action adds 1."""
    rng = np.random.default_rng(seed)
    users = []
    for m in range(count):
        x, action = rng.uniform(0.0, 1.0, rows), rng.integers(0, 2, rows).astype(float)
        y = 2.5 + 0.5 * rng.standard_normal() + x + action + 2.0 * rng.standard_normal(rows)
        y = np.where(y < 2.0, -0.7, y)
        users.append(User(f"user {m}", ("x",), x[:, None], y, (10, 20, 30), action=action))
    return Cohort.from_users(users, target="y", scaling="group", target_scaling="standard")


@pytest.mark.parametrize("name", ["lmm", "hgp"])
@pytest.mark.parametrize("reward", [None, Reward(())])
def test_means_are_those_of_the_method_and_densities_know_of_zeros(name, reward):
    plain, shaped = (build(each, cohort(), {"reward": reward}) for each in (name, f"{name}-shaped"))
    gains = []
    for user in cohort(seed=1).raw:
        one, other = plain(user.name), shaped(user.name)
        for t in range(1, user.batches + 1):
            batch = user.batch(t)
            action = None if reward is None else batch.action
            first, second = (each.predict(batch.X, action=action) for each in (one, other))
            np.testing.assert_allclose(first.mean, second.mean)
            assert second.interval(0.9)[0].min() >= -0.7
            gains.append(second.log_density(batch.y) - first.log_density(batch.y))
            for each in (one, other):
                each.update(batch.X, batch.y, action=action)
    assert np.mean(gains) > 0.3


def test_a_user_is_kept_with_the_shape():
    method = build("lmm-shaped", cohort())
    user = method("ann")
    batch = cohort(seed=1).raw[0].batch(1)
    user.update(batch.X, batch.y)
    again = method.load(method.save(user))
    assert again.predict(batch.X).shape == user.predict(batch.X).shape is not None


@pytest.mark.parametrize(
    ("broken", "predicted", "fits"), [(None, 30, [0, 10, 20]), (20, 20, [0, 10, 20]), (10, 10, [0, 10])]
)
def test_a_batch_that_was_predicted_counts_and_the_last_one_is_not_fitted(broken, predicted, fits):
    asked = []

    class Learner:
        covariates, takes_action, in_pieces = ("x",), False, True

        def fit(self, rows, before):
            asked.append(rows.rows)
            if rows.rows == broken:
                raise NumericalError("no")
            return SimpleNamespace(predict=lambda X, action: Prediction(np.zeros(len(X)), np.ones(len(X)), 1.0))

    user = User("ann", ("x",), np.zeros((30, 1)), np.arange(30.0), (10, 20, 30))
    assert len(_predicted(RefittingMethod("m", Learner()), user).y) == predicted
    assert asked == fits

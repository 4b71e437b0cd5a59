import numpy as np
import pytest
from scipy import stats

from kerneltrail.data import simulate
from kerneltrail.data.simulate.truth import covariance
from kerneltrail.errors import DataError


def test_a_trial_with_its_truth() -> None:
    trial = simulate.mhealth(train=4, test=2, seed=1, days=20, batch_size=40)
    assert (trial.train.names, trial.test.names) == (
        ("train-01", "train-02", "train-03", "train-04"),
        ("test-01", "test-02"),
    )
    assert trial.train.covariates == ("hour", "log_steps30pre", "temperature")
    assert {str(kernel) for kernel in trial.truth.values()} == {
        "LIN[log_steps30pre] + SE[hour]",
        "LIN[log_steps30pre] + SE[temperature]",
    }
    assert trial.train.scaler == trial.test.scaler
    assert np.concatenate([user.X for user in trial.train]).min() == 0.0
    assert np.concatenate([user.X for user in trial.train]).max() == 1.0
    for user in (*trial.train, *trial.test):
        assert user.ends == (40, 80, 100)
        assert user.order is not None
        assert np.all(np.diff(user.order) > np.timedelta64(0))
        assert user.availability is not None
        assert user.action is not None
        assert user.probability is not None
        assert np.all(user.action[user.availability == 0] == 0)
        assert set(user.probability.tolist()) == {0.0, 0.6}


def test_the_target_is_mean_baseline_and_advantage() -> None:
    """Whitened residuals of all users are standard normal: χ² two-sided at 1e-6."""
    trial = simulate.mhealth(train=6, test=6, seed=2)
    total, rows = 0.0, 0
    for user in (*trial.train.raw, *trial.test.raw):
        h, advantage = trial.hyperparameters[user.name], trial.advantage[user.name]
        assert user.action is not None
        effect = advantage["1"] + advantage["log_steps30pre"] * user.columns(["log_steps30pre"])[:, 0]
        residual = user.y - trial.mean - user.action * effect
        K = covariance(h, user.X, user.covariates) + h["noise"] * np.eye(user.rows)
        total += residual @ np.linalg.solve(K, residual)
        rows += user.rows
    tail = stats.chi2.cdf(total, df=rows)
    assert min(tail, 1.0 - tail) > 5e-7


def test_seeds_reproduce() -> None:
    assert simulate.mhealth(2, 1, seed=3, days=3) == simulate.mhealth(2, 1, seed=np.random.default_rng(3), days=3)
    assert simulate.mhealth(2, 1, seed=3, days=3) != simulate.mhealth(2, 1, seed=4, days=3)
    with pytest.raises(DataError, match="at least one user"):
        simulate.mhealth(train=0)

"""Users with random intercepts and slopes: the truth is what they are drawn from."""

import numpy as np
import pytest
from scipy import stats

from kerneltrail.data.simulate import MixedTruth, mixed
from kerneltrail.errors import DataError

TRUTH = MixedTruth((3.0, 1.0, -2.0), (0.5, 0.0, 2.0), 1.5, df=5.0)


def drawn(**options):
    return mixed(400, 1, 0, truth=TRUTH, batches=(10,), **options)


def test_users_weights_have_the_stated_mean_and_variance():
    simulation = drawn()
    weights = np.array(list(simulation.weights.values()))
    n = len(weights)
    assert (weights[:, 1] == 1.0).all()  # nobody differs there
    for j in (0, 2):
        # Each of the four fails with probability 1e-6 if the simulator is right.
        z = (weights[:, j].mean() - TRUTH.weights[j]) / np.sqrt(TRUTH.between[j] / n)
        assert abs(z) < stats.norm.ppf(1 - 5e-7)
        low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n - 1)
        assert low < (n - 1) * weights[:, j].var(ddof=1) / TRUTH.between[j] < high


def test_rows_are_the_weights_and_noise_of_student():
    simulation = drawn()
    residual = np.concatenate(
        [u.y - simulation.weights[u.name][0] - u.X @ simulation.weights[u.name][1:] for u in simulation.train.raw]
    )
    scale = np.sqrt(TRUTH.noise * (TRUTH.df - 2.0) / TRUTH.df)
    assert stats.kstest(residual / scale, stats.t(TRUTH.df).cdf).pvalue > 1e-6
    assert stats.kstest(residual / np.sqrt(TRUTH.noise), stats.norm.cdf).pvalue < 1e-6  # 4000 rows tell them apart


def test_a_seed_gives_the_same_users_and_groups_are_apart():
    one, again, other = mixed(3, 2, 7), mixed(3, 2, 7), mixed(3, 2, 8)
    assert one.train.fingerprint == again.train.fingerprint != other.train.fingerprint
    assert set(one.train.names) == {"train-01", "train-02", "train-03"}
    assert set(one.test.names) == {"test-01", "test-02"}
    assert one.train.schema.target_scaling == "standard"
    assert one.test.raw[0].ends == (20, 40, 60, 80)


def test_what_is_no_mixed_model_is_refused():
    for truth in ({"weights": (1.0,), "between": (1.0,)}, {"between": (1.0,)}, {"noise": 0.0}, {"df": 2.0}):
        with pytest.raises(DataError):
            MixedTruth(**truth)
    with pytest.raises(DataError):
        mixed(0, 1)


def test_noises_differ_between_users_where_they_should():
    """400 users' log noises; their standard deviation is off by 15 % once in 30,000."""
    made = mixed(399, 1, 0, truth=MixedTruth(noise_spread=0.4), batches=(2,))
    logs = np.log(list(made.noises.values()))
    assert np.std(logs) == pytest.approx(0.4, rel=0.15)
    alike = mixed(3, 1, 0, batches=(2,))
    assert set(alike.noises.values()) == {alike.truth.noise}
    with pytest.raises(DataError):
        MixedTruth(noise_spread=-1.0)

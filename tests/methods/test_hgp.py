"""The population-plus-individual GP as a method: what it learns, units, and the action."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

from kerneltrail.data import Cohort, User, simulate
from kerneltrail.data.simulate import MixedTruth
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Reward
from kerneltrail.methods import build
from kerneltrail.methods.hgp import HierarchicalGP

COVARIATES = ("a", "b")


def pilots(users=12, n=60, *, between=1.0, spread=0.0, effect=0.0, seed=0, unit=1.0):
    """Slopes in a that differ between users, a curve in b that all share, noise that differs by `spread`, an action."""
    rng = np.random.default_rng([3, seed])
    made = []
    for m in range(users):
        X = np.column_stack([rng.normal(size=n), rng.uniform(-2.0, 2.0, n)])
        action = rng.integers(0, 2, n).astype(float)
        f = (1.0 + between * rng.normal()) * X[:, 0] + np.sin(2.0 * X[:, 1]) + effect * rng.normal(1.0, 0.3) * action
        y = 10.0 + f + 0.5 * np.exp(0.5 * spread * rng.normal()) * rng.normal(size=n)
        made.append(User(f"user {m}", COVARIATES, X, unit * y, (n // 2, n), action=action))
    return made


def cohort(**options):
    return Cohort.from_users(pilots(**options), target_scaling="standard")


def test_variances_are_learnt_where_users_differ():
    differ = HierarchicalGP.train(cohort(between=1.0)).model.levels
    alike = HierarchicalGP.train(cohort(between=0.0)).model.levels
    line_a, line_b = 1, 2
    assert differ.user[line_a] > 10.0 * alike.user[line_a]
    assert differ.user[line_a] > 10.0 * differ.user[line_b]


def test_spread_of_noise_is_learnt():
    assert HierarchicalGP.train(cohort(spread=1.0, users=20)).spread > 0.45
    assert HierarchicalGP.train(cohort(spread=0.0, users=20)).spread < 0.25
    assert HierarchicalGP.train(cohort(), noise="shared").spread == 0.0


@pytest.mark.parametrize(("df", "most"), [(30.0, 1.0), (3.0, 0.6)])
def test_with_heavy_tails_a_row_says_less_of_the_noise(df, most):
    simulation = simulate.mixed(20, 1, 0, truth=MixedTruth(df=df), batches=(80,))
    learnt = HierarchicalGP.train(simulation.train)
    assert 0.05 < learnt.worth <= most
    assert learnt.spread < 0.3  # users do not differ in noise, whatever its tails


def test_units_of_the_target_do_not_matter():
    X = np.array([[0.5, 0.1], [-1.0, 1.0]])
    one, other = (build("hgp", cohort(unit=unit))("ann") for unit in (1.0, 1e4))
    y = np.array([11.0, 9.0])
    one.update(X, y)
    other.update(X, 1e4 * y)
    np.testing.assert_allclose(other.predict(X).mean, 1e4 * one.predict(X).mean, rtol=1e-6)
    np.testing.assert_allclose(other.predict(X).total, 1e8 * one.predict(X).total, rtol=1e-6)


def test_the_action_has_a_shared_part_and_one_of_the_user():
    method = build("hgp", cohort(effect=2.0), {"reward": Reward(())})
    user = method("ann")
    X = np.zeros((1, 2))

    def advantage():
        return (user.predict(X, action=[1.0]).mean - user.predict(X, action=[0.0]).mean)[0]

    assert advantage() == pytest.approx(2.0, abs=0.6)  # known before any row
    rng = np.random.default_rng(0)
    rows, action = rng.normal(size=(200, 2)), rng.integers(0, 2, 200).astype(float)
    user.update(rows, 10.0 + 5.0 * action + 0.1 * rng.normal(size=200), action=action)
    assert advantage() > 4.0


def test_a_new_user_is_between_the_population_and_the_rows():
    user = build("hgp", cohort(between=0.3))("ann")
    X = np.array([[2.0, 0.0]])
    before = user.predict(X)
    assert before.mean[0] == pytest.approx(12.0, abs=0.5)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 2))
    user.update(rows, 10.0 + 2.0 * rows[:, 0] + np.sin(2.0 * rows[:, 1]) + 0.1 * rng.normal(size=60))
    after = user.predict(X)
    assert after.mean[0] == pytest.approx(14.0, abs=0.5)
    assert after.variance[0] < before.variance[0]
    assert after.noise < before.noise


def test_constant_targets_of_pilot_users_are_legal():
    users = [User(u.name, COVARIATES, u.X, np.full(u.rows, 3.0), u.ends) for u in pilots(users=3, n=10)]
    user = build("hgp", Cohort.from_users(users, target_scaling="standard"))("ann")
    np.testing.assert_allclose(user.predict(users[0].X).mean, 3.0, atol=1e-6)


def test_far_rows_keep_a_variance_and_targets_past_all_numbers_are_refused():
    user = build("hgp", cohort())("ann")
    user.update([[1e8, 0.1], [0.2, 0.3]], [1.0, 2.0])
    assert 0.05 < user.predict([[1e8, 0.2]]).variance[0] < 2.0  # the noise of one row, and the curve in b
    with pytest.raises(NumericalError, match="user 'ann': a target"):
        user.update([[0.1, 0.1]], [1e200])
    assert user.rows == 2


def test_what_cannot_be_is_refused():
    with pytest.raises(DataError, match="noise of hgp"):
        HierarchicalGP.train(cohort(), noise="mine")
    users = [User(u.name, COVARIATES, u.X, u.y, u.ends) for u in pilots(users=3, n=10)]
    with pytest.raises(DataError, match="no actions"):
        HierarchicalGP.train(Cohort.from_users(users), reward=Reward(()))


def test_what_is_not_known_of_the_noise_makes_an_observation_a_student_t():
    """method (53): more of it before the first row than after many, and none where all users have one noise."""
    learnt = build("hgp", cohort(spread=1.0, users=20))
    user = learnt("ann")
    X = np.array([[0.0, 0.0]])
    before = user.predict(X)
    assert before.freedom is not None
    rows = np.random.default_rng(1).normal(size=(60, 2))
    user.update(rows, 10.0 + rows[:, 0] + np.random.default_rng(2).normal(0.0, 0.5, 60))
    after = user.predict(X)
    assert before.freedom[0] < after.freedom[0]
    share = after.noise / after.total[0]
    uncertainty = user.fit.posterior.noise_uncertainty
    weights, logs = user.fit.posterior.weights, np.log(user.fit.posterior.noises)
    assert uncertainty == pytest.approx(np.cov(logs, aweights=weights, ddof=0))
    assert scipy.special.polygamma(1, after.freedom[0] / 2.0) == pytest.approx(share**2 * uncertainty, rel=1e-6)
    assert build("hgp", cohort(), {"noise": "shared"})("ann").predict(X).freedom is None


def test_users_who_differ_in_noise_are_predicted_better_so():
    """The truth: log noise variances with a standard deviation of 1. False-alarm rate: none, the seed is fixed."""
    learnt, gains = build("hgp", cohort(spread=1.0, users=20)), []
    for person in pilots(30, 20, spread=1.0, seed=9):
        user = learnt(person.name)
        user.update(person.X[:5], person.y[:5])
        ahead = user.predict(person.X[5:])
        gains.append(ahead.log_density(person.y[5:]) - replace(ahead, freedom=None).log_density(person.y[5:]))
    assert np.mean(gains) > 0.005

"""A constant mean of everybody's own, without an action: the same in fit, selection and prediction, against loops."""

import math

import numpy as np
import pytest

from gp import oracle as gp
from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean, spread
from kerneltrail.kernels import Priors
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.new_user import NewUser
from support.identical import difference

from . import oracle, tiny

VARIANCE = 9.0


def lifted(count=3, ends=(3, 7), seed=0):
    """The tiny pilots, each on a level of its own."""
    return [user.with_y(user.y + 4.0 * (-1.0) ** m) for m, user in enumerate(tiny.pilots(count, ends, seed))]


def cohort(count=3, ends=(3, 7), seed=0):
    return Cohort.from_users(lifted(count, ends, seed), target="y", scaling="none")


def learn(cohort, **changes):
    given = {"constant": VARIANCE, "sweeps": 16, **changes}
    return fit(cohort, pool=tiny.POOL, settings=tiny.settings(**given), workers=1)


def covariance(user, composition, theta, variance):
    """K_θ + σ²I, and a constant's variance in every entry."""
    return gp.covariance(user, composition, theta) + variance


def new_rows(rows, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4.0, 4.0, rows)
    return User("new", ("x",), x[:, None], 1.2 * x - 3.0 + 0.3 * rng.standard_normal(rows), (rows,))


@pytest.mark.parametrize("mean", ["none", "population"])
def test_the_fits_have_the_constant_in_every_entry_of_the_covariance(mean):
    """So its paths' log joint is that of the specification, with these evidences."""
    group = cohort(4)
    model = learn(group, mean=mean)
    users, variance = group.users, VARIANCE
    if mean == "population":
        level = PopulationMean.train(users, None)
        np.testing.assert_array_equal(model.mean.weights, level.weights)
        users = [user.with_y(user.y - level.at(user.X, None)) for user in users]
        (variance,) = spread(users, Reward.constant(VARIANCE)).variances
        assert variance != VARIANCE
    assert model.reward.names == ("constant",)
    assert float(model.reward.weight_variances[0]) == variance
    fits = MapTable(users, tiny.POOL, Priors.synthetic(), tiny.QUICK, model.reward)

    class Laplace:
        def log_evidence(self, user, mask):
            return fits.get(user, mask).log_laplace

    for node in model.nodes:
        for m in range(len(users)):
            own = fits.get(m, node.mask)
            for t, n in enumerate(users[m].ends):
                K = covariance(users[m].upto(t + 1), node.composition, own.theta[t], variance)
                assert own.log_likelihood[t] == pytest.approx(gp.gaussian(users[m].y[:n], K), abs=1e-4)
    order = [m for m, path in enumerate(model.paths) for _ in path]
    wanted = oracle.log_joint(model.urn, Laplace(), model.paths, order)
    assert model.structures[0].log_joint == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("mean", ["none", "population"])
@pytest.mark.parametrize("refine", [400, 5], ids=["refined", "kept"])
def test_a_new_user_is_judged_and_predicted_with_the_constant(mean, refine):
    """By Laplace's formula around the node's own optimum, and by conditioning a joint normal."""
    model = learn(cohort(4), mean=mean, refine=refine)
    variance = float(model.reward.weight_variances[0])
    seen, at = new_rows(9), np.array([[0.5], [-3.0], [6.0]])
    user = model.new_user()
    user.update(seen.X[:4], seen.y[:4])
    step = user.update(seen.X[4:], seen.y[4:])
    level, level_at = (
        (np.zeros(9), np.zeros(3)) if model.mean is None else [model.mean.at(x, None) for x in (seen.X, at)]
    )
    rest = seen.y - level
    means, variances = [], []
    for node in model.nodes:
        judge = user.node_posterior(node.composition).fit
        K = covariance(seen, node.composition, judge.theta, variance)
        if refine == 400:
            group, k = node.group, len(judge.theta)
            prior = -0.5 * float((((judge.theta - group.mean) ** 2) / group.variance + np.log(group.variance)).sum())
            prior -= 0.5 * k * math.log(2.0 * math.pi)
            laplace = 0.5 * k * math.log(2.0 * math.pi) - 0.5 * np.linalg.slogdet(judge.precision)[1]
            wanted = gp.gaussian(rest, K) + prior + laplace
            assert step.log_evidence[node.composition] == pytest.approx(wanted, abs=1e-3)
        else:
            assert judge.online.log_evidence == pytest.approx(gp.gaussian(rest, K), abs=1e-4)
        both = User("both", ("x",), np.vstack([seen.X, at]), np.zeros(12), (12,))
        noise = judge.hyperparameters.values_array[-1]
        full = covariance(both, node.composition, judge.theta, variance) - noise * np.eye(12)
        gain = np.linalg.solve(K, full[:9, 9:])
        means.append(level_at + gain.T @ rest)
        variances.append(np.diag(full)[9:] - np.einsum("ij,ij->j", full[:9, 9:], gain))
    said = user.predict(at)
    weights = np.array([step.probabilities[node.composition] for node in model.nodes]) @ model.transitions[1:]
    wanted = weights @ np.array(means) / weights.sum()
    np.testing.assert_allclose(said.mean, wanted, rtol=1e-3, atol=1e-3)
    spread_of = weights @ (np.array(variances) + (np.array(means) - wanted) ** 2) / weights.sum()
    np.testing.assert_allclose(said.variance, spread_of, rtol=2e-3)


def test_before_any_row_a_prediction_is_as_wide_as_users_differ():
    with_, without = learn(cohort()), learn(cohort(), constant=0.0)
    assert without.reward is None
    for model, variance in ((with_, VARIANCE), (without, 0.0)):
        weights = model.transitions[0]
        own = [
            gp.covariance(User("at", ("x",), [[1.5]], [0.0], (1,)), node.composition, node.group.mean)[0, 0]
            for node in model.nodes
        ]
        assert model.new_user().predict([[1.5]]).total[0] == pytest.approx(weights @ own + variance, rel=1e-3)


def test_there_is_no_action_in_it():
    model = learn(cohort())
    assert not model.takes_action
    with pytest.raises(DataError, match="no reward model"):
        model.new_user().advantage([[0.0]])
    with pytest.raises(DataError, match="say constant="):
        fit(cohort(), pool=tiny.POOL, settings=tiny.settings(), reward=Reward.constant(1.0), workers=1)


def test_a_reward_model_has_its_own_constant():
    group = tiny.cohort(action=True)
    with_ = fit(group, pool=tiny.POOL, settings=tiny.settings(constant=VARIANCE), reward=Reward(("x",)), workers=1)
    without = fit(group, pool=tiny.POOL, settings=tiny.settings(), reward=Reward(("x",)), workers=1)
    assert with_.reward == without.reward == Reward(("x",))
    assert with_.structures == without.structures


def test_it_is_kept_in_files_and_when_a_model_is_extended():
    model = learn(cohort(), mean="population")
    again = from_bytes(to_bytes(model))
    assert difference(model, again) is None
    user = model.new_user()
    seen = new_rows(4)
    user.update(seen.X, seen.y)
    kept = NewUser.from_bytes(user.to_bytes(), again)
    np.testing.assert_array_equal(kept.predict([[1.0]]).mean, user.predict([[1.0]]).mean)
    wider = fit(cohort(5), extend=model, workers=1)
    assert wider.reward.names == ("constant",)
    assert wider.reward.variances != model.reward.variances
    assert fit(cohort(5), extend=model, workers=1, constant=0.0).reward is None

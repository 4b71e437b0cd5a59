"""The pooled GP: the sum of evidences, its gradient, and predictions by hand."""

import numpy as np
import pytest
from scipy import stats

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.gp import inputs_for, log_evidence
from kerneltrail.kernels import Priors, parse
from kerneltrail.methods.ard import se_ard
from kerneltrail.methods.pooled import PooledGP, additive, fit_together, summed
from kerneltrail.methods.preprocessing import Preprocessor

from .common import COVARIATES, REWARD, rows, training

KERNEL = parse("LIN[steps] + SE[hour]")
PRIORS = Priors.heartsteps()


def pooled(**options):
    return PooledGP.train(training(), **{"kernel": KERNEL, "priors": PRIORS, "starts": 1, "screen": 2, **options})


def sights(preprocessor):
    return [preprocessor.prepare(user) for user in training().raw]


def test_additive_kernel():
    assert additive(("a", "b")) == parse("LIN[a] + LIN[b] + SE[a] + SE[b]")


def test_the_objective_is_the_sum_of_evidences():
    learner = pooled()
    theta = learner.hyperparameters.vector
    each = [log_evidence(seen.whole, KERNEL, theta, block=seen.block)[0, 0] for seen in sights(learner.preprocessor)]
    np.testing.assert_allclose(learner.log_evidence, sum(each), rtol=1e-9)


def test_summed_gradient_by_differences():
    inputs = [inputs_for(seen.whole, KERNEL, block=seen.block) for seen in sights(pooled().preprocessor)]
    theta = PRIORS.moments(KERNEL)[0] + 0.1
    gradient = summed(inputs, theta[None])[1][0]
    h = 1e-5
    for j in range(len(theta)):
        step = h * np.eye(len(theta))[j]
        up, down = summed(inputs, (theta + step)[None])[0][0], summed(inputs, (theta - step)[None])[0][0]
        np.testing.assert_allclose(gradient[j], (up - down) / (2 * h), rtol=1e-5, atol=1e-6)


def test_the_optimum_is_one():
    preprocessor = pooled().preprocessor
    seen = sights(preprocessor)
    theta, log = fit_together(seen, KERNEL, PRIORS, np.random.default_rng(0), starts=2, screen=4)
    mean, variance = PRIORS.moments(KERNEL)
    inputs = [inputs_for(each.whole, KERNEL, block=each.block) for each in seen]

    def posterior(at):
        return summed(inputs, at[None])[0][0] - 0.5 * ((at - mean) ** 2 / variance).sum()

    assert log == pytest.approx(summed(inputs, theta[None])[0][0])
    for step in 0.05 * np.vstack([np.eye(len(theta)), -np.eye(len(theta))]):
        assert posterior(theta + step) < posterior(theta) + 1e-4


@pytest.mark.parametrize("population_mean", [False, True])
def test_prediction_by_hand(population_mean):
    learner = pooled(population_mean=population_mean)
    X, y, _ = rows(6, seed=2)
    user = User("ann", COVARIATES, X, y, (6,))
    new = rows(3, seed=3)[0]
    said = learner.fit(user, None).predict(new, None)
    scaler = learner.preprocessor.schema.scaler
    values = learner.hyperparameters

    def kernel(a, b):
        c, ell = values["LIN[steps].location"], values["SE[hour].lengthscale"]
        lin = values["LIN[steps].amplitude"] * np.outer(a[:, 1] - c, b[:, 1] - c)
        se = values["SE[hour].amplitude"] * np.exp(-((a[:, :1] - b[:, :1].T) ** 2) / (2 * ell**2))
        return lin + se + (0.0 if population_mean else 10.0)

    def mean(z):
        return np.column_stack([np.ones(len(z)), z]) @ learner.preprocessor.mean.weights

    z, z_new = scaler.transform(X), scaler.transform(new)
    rest = scaler.transform_target(y) - mean(z)
    inverse = np.linalg.inv(kernel(z, z) + values["noise"] * np.eye(6))
    expected = mean(z_new) + kernel(z_new, z) @ inverse @ rest
    variance = np.diag(kernel(z_new, z_new) - kernel(z_new, z) @ inverse @ kernel(z, z_new))
    np.testing.assert_allclose(said.mean, scaler.shift + scaler.scale * expected, rtol=1e-8)
    np.testing.assert_allclose(said.variance, scaler.scale**2 * variance, rtol=1e-6)
    np.testing.assert_allclose(
        said.log_density(y[:3]), stats.norm.logpdf(y[:3], said.mean, np.sqrt(said.variance + said.noise))
    )


def test_somebody_without_rows_is_predicted_by_the_population_mean():
    learner = pooled(population_mean=True)
    X = rows(4, seed=3)[0]
    nobody = User("ann", COVARIATES, np.empty((0, 2)), [], ())
    said = learner.fit(nobody, None).predict(X, None)
    z = learner.preprocessor.schema.scaler.transform(X)
    expected = learner.preprocessor.schema.scaler.inverse_target(learner.preprocessor.mean.at(z, None))
    np.testing.assert_allclose(said.mean, expected)
    assert np.ptp(said.mean) > 0.1


def test_without_a_population_mean_by_the_mean_of_all_training_rows():
    X = rows(4, seed=3)[0]
    nobody = User("ann", COVARIATES, np.empty((0, 2)), [], ())
    said = pooled().fit(nobody, None).predict(X, None)
    np.testing.assert_allclose(said.mean, np.concatenate([user.y for user in training().raw]).mean())


def test_population_mean_has_the_action_in_it():
    learner = pooled(population_mean=True, reward=REWARD)
    X = rows(4, seed=3)[0]
    nobody = User("ann", COVARIATES, np.empty((0, 2)), [], ())
    fit = learner.fit(nobody, None)
    assert not np.allclose(fit.predict(X, np.ones(4)).mean, fit.predict(X, np.zeros(4)).mean)


def test_needs_rows():
    with pytest.raises(DataError, match="row"):
        fit_together([], KERNEL, PRIORS, np.random.default_rng(0), starts=1, screen=2)


def test_se_ard_has_a_lengthscale_for_each_covariate():
    learner = se_ard(Preprocessor.of(training()), PRIORS, starts=1, screen=4)
    X, y, _ = rows(8, seed=2)
    fit = learner.fit(User("ann", COVARIATES, X, y, (8,)), None)
    names = set(fit.members[0])
    assert {name for name in names if name.endswith("lengthscale")} == {
        "SE[hour]*SE[steps]: SE[hour].lengthscale",
        "SE[hour]*SE[steps]: SE[steps].lengthscale",
    }
    assert len(names) == 4

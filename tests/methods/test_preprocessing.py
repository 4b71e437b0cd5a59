"""Scaling, constants, saved users and the registry."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort, User, default_priors
from kerneltrail.errors import DataError, ModelFileError
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.methods import METHODS, Preprocessor, RefittingMethod, build, methods

from .common import COVARIATES, method, rows, training


def somebody(n=5):
    X, y, action = rows(n, seed=1)
    return User("ann", COVARIATES, X, y, (n,), action=action)


def test_users_are_scaled_on_their_own_rows():
    preprocessor = Preprocessor.of(training())
    seen = preprocessor.prepare(somebody())
    np.testing.assert_allclose(seen.rows.X.min(axis=0), 0.0)
    np.testing.assert_allclose(seen.rows.X.max(axis=0), 1.0)
    np.testing.assert_allclose([seen.rows.y.mean(), seen.rows.y.std()], [0.0, 1.0], atol=1e-12)


def test_before_the_first_row_as_the_group():
    preprocessor, group = Preprocessor.of(training()), Preprocessor.of(training(), scaling="group")
    nobody = somebody().upto(0)
    assert preprocessor.prepare(nobody).scaler == group.prepare(nobody).scaler == training().scaler


def test_not_scaled_where_the_cohort_is_not():
    preprocessor = Preprocessor.of(training().rescaled("none", "none"))
    np.testing.assert_array_equal(preprocessor.prepare(somebody()).rows.X, somebody().X)
    assert default_priors(preprocessor.schema) == Priors.synthetic()
    assert default_priors(training().schema) == Priors.standardised()
    assert default_priors(training().rescaled("group", "none").schema) == Priors.heartsteps()


def test_a_constant_is_a_constant_covariance():
    preprocessor = Preprocessor.of(training(), scaling="none", target_scaling="none", constant=4.0)
    theta = Hyperparameters.from_values(parse(""), [0.5])
    seen = preprocessor.prepare(somebody())
    total = 4.0 + 0.5 * np.eye(5)
    expected = (4.0 * np.ones(5)) @ np.linalg.solve(total, somebody().y)
    scaled, linear = seen.inputs_at(somebody().X, None)
    said = seen.posterior(theta).predict(scaled, linear=linear)
    np.testing.assert_allclose(said.mean, expected, rtol=1e-9)
    with pytest.raises(DataError, match="constant"):
        Preprocessor.of(training(), constant=-1.0)


def test_a_stored_user_is_refused_elsewhere():
    mean, ard = method("mean"), method("se-ard")
    user = mean("ann")
    user.update(*rows(4)[:2])
    data = mean.save(user)
    with pytest.raises(ModelFileError, match="se-ard"):
        ard.load(data)
    with pytest.raises(ModelFileError, match="not followed"):
        ard.save(user)
    with pytest.raises(ModelFileError, match="hour"):
        method("mean", order=(1, 0)).load(data)
    content = json.loads(data)
    with pytest.raises(ModelFileError, match="schema"):
        mean.load(json.dumps({**content, "schema": 99}).encode())
    with pytest.raises(ModelFileError, match="damaged"):
        mean.load(json.dumps({**content, "y": content["y"][:-1]}).encode())
    del content["fit"]
    with pytest.raises(ModelFileError, match="damaged"):
        mean.load(json.dumps(content).encode())
    with pytest.raises(ModelFileError):
        method("trajectory").save(user)


def test_registry_refuses_by_name():
    with pytest.raises(DataError, match="did you mean 'mean'"):
        build("median", training())
    with pytest.raises(DataError, match="there are trajectory, union, flat, mean"):
        build("xyz", training())
    with pytest.raises(DataError, match="no setting 'screens'; did you mean 'screen'"):
        build("se-ard", training(), {"screens": 3})
    with pytest.raises(DataError, match="is registered already"):
        METHODS.add("mean", lambda cohort, seed: None)
    assert isinstance(build("mean", training(), {"pool": None, "reward": None}), RefittingMethod)


def test_registry_can_grow():
    with METHODS.temporarily("floor", lambda cohort, *, seed: build("mean", cohort, seed=seed)):
        assert "floor" in methods()
        user = build("floor", training())("ann")
        assert user.predict([[8.0, 1.0]]).mean.shape == (1,)
    assert "floor" not in methods()


def test_final_and_trajectory_of_a_given_model():
    model = method("trajectory").model
    assert build("trajectory", training(), {"model": model}).model is model
    user = build("final", training(), {"model": model})("ann")
    user.update(*rows(4)[:2])
    assert user.composition in [node.composition for node in model.nodes]


def test_final_of_a_model_around_a_population_mean_is_around_it_too():
    model = method("trajectory").model
    weights = np.array([0.7, -1.5, 2.0])
    around = replace(model, mean=PopulationMean(weights, COVARIATES, None, 1.0))
    X = rows(3)[0]
    said = build("final", training(), {"model": around})("ann").predict(X).mean
    scaler = model.scaler
    wanted = scaler.inverse_target(np.column_stack([np.ones(3), scaler.transform(X)]) @ weights)
    np.testing.assert_allclose(said, wanted)


def test_a_cohort_scaled_by_user_serves_too():
    cohort = Cohort.from_users(training().raw, scaling="user", target_scaling="standard")
    for name in ("linear", "se-ard", "pooled-mean", "mean"):
        user = build(name, cohort)("ann")
        user.update(*rows(4)[:2])
        assert np.isfinite(user.predict(rows(3)[0]).mean).all()

"""The wider search for shrinkage's bound, and the mixture of its optima, against the obvious."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Posterior
from kerneltrail.kernels import Hyperparameters, Pool, Priors
from kerneltrail.methods.preprocessing import own_preprocessor
from kerneltrail.methods.shrinkage import Factors, Shrinkage
from kerneltrail.methods.shrinkage.optima import Optimum, distinct_optima, log_volume, maximise, perturbed, weigh_optima

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]", "SE[x]*PER[x]")


def series(rows=24):
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0.0, 1.0, rows))
    y = 2.0 * x + np.sin(2 * np.pi * x / 0.2) + 0.2 * rng.standard_normal(rows)
    return User("ann", ("x",), x[:, None], y, (rows,))


def learner(**options):
    return Shrinkage(own_preprocessor(("x",)), POOL, Priors.heartsteps(), **{"pairs": 2, "iterations": 60, **options})


def optimum(theta, bound):
    return Optimum(Factors(np.zeros(2), np.ones(2), np.array([theta])), bound)


def test_more_search_never_gives_a_worse_bound():
    one = learner().fit(series(), None)
    three = learner(restarts=3).fit(series(), None)
    hopped = [learner(hops=hops).fit(series(), None).bound for hops in (2, 4)]
    assert one.bound <= three.bound
    assert one.bound <= hopped[0] <= hopped[1]
    assert hopped[1] > one.bound + 0.5  # 60 iterations from one round are not enough here
    again = learner(restarts=3).fit(series(), None)
    np.testing.assert_array_equal(three.factors.packed, again.factors.packed)


def test_warm_starts_stay_with_restarts():
    made = learner(restarts=2, hops=1, average=True)
    first = made.fit(series(), None)
    again = made.fit(series(), first)
    assert again.bound >= first.bound - 1e-8


def test_a_hop_begins_some_products_anew_and_leaves_the_others():
    made = learner()
    elbo = made.elbo(made.preprocessor.prepare(series()))
    slots = np.array([elbo.inputs.layout.slots[place].product for place in elbo.places])
    theta = elbo.mean + 0.1
    factors, alone = Factors(np.full(5, 3.0), np.full(5, 0.2), theta), elbo.mean + 7.0
    rng, counts = np.random.default_rng(0), set()
    for _ in range(60):
        moved = perturbed(elbo, factors, alone, rng)
        changed = {p for p in range(4) if moved.m[1 + p] != 3.0}
        counts.add(len(changed))
        assert moved.m[0] == 3.0
        for j, product in enumerate(slots):
            assert (moved.theta[j] == theta[j]) == (product not in changed)  # the noise belongs to none, and stays
        for p in changed:
            taken = moved.theta[slots == p] == alone[slots == p]
            assert taken.all() or not taken.any()
    assert counts == {1, 2}


def test_optima_without_a_valley_between_them_are_one():
    two_hills = SimpleNamespace(value=lambda factors: -50.0 * min((factors.theta[0] - c) ** 2 for c in (-1.0, 1.0)))
    hills = [optimum(-1.0, 0.0), optimum(1.0, -0.5), optimum(-0.98, -0.02), optimum(1.05, -0.7)]
    assert [each.factors.theta[0] for each in distinct_optima(two_hills, hills)] == [-1.0, 1.0]
    assert [each.bound for each in distinct_optima(two_hills, hills[::-1])] == [0.0, -0.5]


def test_what_cannot_be_evaluated_is_a_valley_and_is_not_weighed():
    def nowhere(factors):
        raise NumericalError("not positive definite")

    broken = SimpleNamespace(value=nowhere, evaluate=nowhere, variance=np.ones(1))
    hills = [optimum(1.0, -0.5), optimum(-1.0, 0.0)]
    assert [each.bound for each in distinct_optima(broken, hills)] == [0.0, -0.5]
    assert weigh_optima(broken, hills) == ((hills[1], 0.0),)


def test_the_volume_by_naive_second_differences():
    made = learner(iterations=300)
    elbo = made.elbo(made.preprocessor.prepare(series()))
    factors = made.fit(series(), None).factors
    k, h = len(factors.theta), 1e-3
    unit = h * np.diag(np.sqrt(elbo.variance))

    def at(step):
        return elbo.value(replace(factors, theta=factors.theta + step))

    hessian = np.array([[(at(a + b) - at(a - b) - at(b - a) + at(-a - b)) / (4 * h * h) for b in unit] for a in unit])
    whitened = np.linalg.eigvalsh(-hessian)
    assert whitened.min() > 0.05  # or else the floor would be all that is tested
    expected = 0.5 * k * np.log(2 * np.pi) - 0.5 * np.log(whitened).sum() + 0.5 * np.log(elbo.variance).sum()
    np.testing.assert_allclose(log_volume(elbo, factors), expected, atol=0.02)


def test_weights_are_those_with_the_highest_bound_of_the_mixture():
    made = learner()
    elbo = made.elbo(made.preprocessor.prepare(series()))
    rng = np.random.default_rng(1)
    starts = [perturbed(elbo, made.fit(series(), None).factors, elbo.mean, rng) for _ in range(5)]
    optima = [each for start in starts for each in maximise(elbo, [start], iterations=200, tolerance=1e-8)]
    found = weigh_optima(elbo, [*optima, optima[0]])
    assert len(found) >= 2
    log = np.array([weight for _, weight in found])
    bounds = np.array([each.bound + log_volume(elbo, each.factors) for each, _ in found])
    assert np.exp(log).sum() == pytest.approx(1.0)

    def bound(weights):
        return weights @ (bounds - np.log(weights))

    assert bound(np.exp(log)) == pytest.approx(np.log(np.exp(bounds - bounds.max()).sum()) + bounds.max())
    for _ in range(20):
        assert bound(rng.dirichlet(np.ones(len(log)))) <= bound(np.exp(log))


def test_an_averaged_prediction_is_the_obvious_sum():
    made = learner(hops=4, average=True)
    user = series()
    fit = made.fit(user, None)
    other = replace(fit.factors, theta=fit.factors.theta + 0.3)
    fit = replace(fit, parts=((fit.factors, np.log(0.7)), (other, np.log(0.3))))
    elbo, X = made.elbo(fit.prepared), np.linspace(0.0, 1.2, 5)[:, None]
    means, seconds = 0.0, 0.0
    for factors, log_weight in fit.parts:
        for scales in np.exp(elbo.log_scales(factors)):
            vector = elbo.vector(factors.theta, np.log(scales[0] * scales[1:]))
            said = Posterior.fit(fit.prepared.rows, Hyperparameters(made.whole, tuple(vector))).predict(
                fit.prepared.scaler.transform(X)
            )
            weight = np.exp(log_weight) / len(elbo.draws)
            means += weight * said.mean
            seconds += weight * (said.variance + said.mean**2)
    got = fit.predict(X, None)
    np.testing.assert_allclose(got.mean, fit.prepared.scaler.inverse_target(means), rtol=1e-8)
    np.testing.assert_allclose(got.variance, fit.prepared.scaler.inverse_variance(seconds - means**2), rtol=1e-6)


def test_a_mixture_is_kept_and_restored():
    made = learner(hops=3, average=True)
    fit = made.fit(series(), None)
    again = made.restore(series(), fit.to_json())
    X = np.linspace(0.0, 1.2, 4)[:, None]
    assert len(again.parts) == len(fit.parts)
    np.testing.assert_array_equal(again.predict(X, None).mean, fit.predict(X, None).mean)
    np.testing.assert_array_equal(again.predict(X, None).variance, fit.predict(X, None).variance)
    assert "parts" not in learner().fit(series(), None).to_json()


def test_settings_of_a_series_search_more_and_others_are_refused():
    made = Shrinkage.for_series(own_preprocessor(("x",)), POOL, Priors.heartsteps(), seed=3)
    assert made.seed == 3
    assert made.average
    assert made.restarts > 1
    assert made.hops > 0
    for wrong in ({"restarts": 0}, {"hops": -1}):
        with pytest.raises(DataError, match="restarts"):
            learner(**wrong)

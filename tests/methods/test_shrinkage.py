"""Shrinkage against Monte Carlo, quadrature and finite differences."""

import numpy as np
import pytest
from scipy import integrate, stats

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors, layout_of
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.shrinkage import Factors, Shrinkage
from kerneltrail.methods.shrinkage.optima import maximise
from kerneltrail.methods.shrinkage.scales import best_rates, bound, log_normal_entropy, slopes, standard_draws
from kerneltrail.methods.shrinkage.starting_points import start_of

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]*PER[x]")
M, V = np.array([0.3, -1.2, 0.5]), np.array([0.4, 1.5, 0.2])


def somebody(n=12, seed=0, *, covariates=("x",), action=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (n, len(covariates)))
    y = 1.4 * X[:, 0] + 0.4 * rng.standard_normal(n)
    return User("ann", covariates, X, y, (n,), action=rng.integers(0, 2, n) if action else None)


def learner(pool=POOL, **options):
    user = somebody(covariates=pool.covariates)
    preprocessor = options.pop("frame", None) or Preprocessor.of(Cohort.from_users([user], scaling="none"))
    return Shrinkage(preprocessor, pool, Priors.synthetic(), **options)


def elbo(pool=POOL, n=12, **options):
    made = learner(pool, **options)
    return made.elbo(made.preprocessor.prepare(somebody(n)))


def test_the_augmentation_is_a_half_cauchy():
    """∫ IG(x|½, 1/φ) IG(φ|½, 1) dφ is the density of x = τ² with τ half-Cauchy."""
    for x in (0.1, 1.0, 7.0):
        mixed, _ = integrate.quad(
            lambda phi, x=x: stats.invgamma.pdf(x, 0.5, scale=1.0 / phi) * stats.invgamma.pdf(phi, 0.5), 0.0, np.inf
        )
        np.testing.assert_allclose(mixed, stats.halfcauchy.pdf(np.sqrt(x)) / (2.0 * np.sqrt(x)), rtol=1e-6)


def test_entropy_has_half_the_log_of_the_variance():
    for m, v in zip(M, V, strict=True):
        expected = stats.lognorm(s=np.sqrt(v), scale=np.exp(m)).entropy()
        np.testing.assert_allclose(log_normal_entropy(m, v), expected, rtol=1e-12)


def test_bound_of_the_scales_by_monte_carlo():
    rng = np.random.default_rng(0)
    b = np.array([1.3, 4.0, 0.8])  # not at their optimum
    size = 400_000
    total, variance = 0.0, 0.0
    for m, v, rate in zip(M, V, b, strict=True):
        x = np.exp(m + np.sqrt(v) * rng.standard_normal(size))
        phi = stats.invgamma.rvs(1.0, scale=rate, size=size, random_state=rng)
        terms = (
            stats.invgamma.logpdf(x, 0.5, scale=1.0 / phi)
            + stats.invgamma.logpdf(phi, 0.5)
            - stats.lognorm.logpdf(x, np.sqrt(v), scale=np.exp(m))
            - stats.invgamma.logpdf(phi, 1.0, scale=rate)
        )
        total += terms.mean()
        variance += terms.var() / size
    assert abs(bound(M, V, b) - total) < 5.0 * np.sqrt(variance)


def test_coordinate_update_is_the_best_rate():
    best = bound(M, V, best_rates(M, V))
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert bound(M, V, factor * best_rates(M, V)) < best


def test_bound_is_below_the_exact_expectation_and_close():
    """With b at its optimum only Jensen's inequality stands between: E log(1+1/x) ≤ log(1+E 1/x)."""
    for m, v in zip(M, V, strict=True):
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        u = m + np.sqrt(v) * nodes
        log_prior = -np.log(np.pi) - 0.5 * u - np.log1p(np.exp(-u))  # of u = log τ²
        exact = weights @ log_prior / weights.sum() + 0.5 * np.log(2.0 * np.pi * np.e * v)
        ours = bound(np.array([m]), np.array([v]), best_rates(np.array([m]), np.array([v])))
        assert exact - 0.5 * v < ours < exact


def test_slopes_of_the_scales_by_differences():
    h = 1e-6

    def at(m, log_v):
        return bound(m, np.exp(log_v), best_rates(m, np.exp(log_v)))

    by_m, by_log_v = slopes(M, V, best_rates(M, V))
    for j in range(3):
        e = h * np.eye(3)[j]
        np.testing.assert_allclose(by_m[j], (at(M + e, np.log(V)) - at(M - e, np.log(V))) / (2 * h), rtol=1e-5)
        np.testing.assert_allclose(by_log_v[j], (at(M, np.log(V) + e) - at(M, np.log(V) - e)) / (2 * h), rtol=1e-5)


def test_draws_are_antithetic_and_standardised():
    draws = standard_draws(4, 5, 3)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose((draws**2).mean(axis=0), 1.0)
    np.testing.assert_array_equal(draws, standard_draws(4, 5, 3))


@pytest.mark.parametrize("reward", [None, Reward()])
def test_gradient_by_differences(reward):
    user = somebody(action=True)
    preprocessor = Preprocessor.of(Cohort.from_users([user], scaling="none"), reward=reward)
    made = learner(preprocessor=preprocessor, pairs=3)
    target = made.elbo(preprocessor.prepare(user))
    rng = np.random.default_rng(1)
    factors = start_of(target.mean + 0.2 * rng.standard_normal(len(target.mean)), 3, 2.0)
    value, gradient = target.evaluate(factors)
    np.testing.assert_allclose(value, target.value(factors), rtol=1e-12)
    point, h = factors.packed, 1e-5
    for j in range(len(point)):
        up, down = point.copy(), point.copy()
        up[j] += h
        down[j] -= h
        change = target.value(Factors.unpacked(up, 4)) - target.value(Factors.unpacked(down, 4))
        np.testing.assert_allclose(gradient[j], change / (2 * h), rtol=1e-5, atol=1e-6)


def test_bound_by_monte_carlo_on_a_tiny_problem():
    """Everything drawn from q, every density from scipy, kernels by loops."""
    target = elbo(Pool.of("LIN[x]", "SE[x]"), n=4, pairs=400)
    theta = target.mean + np.array([0.1, -0.2, 0.3])  # LIN's location, SE's lengthscale, noise
    factors = Factors(np.array([0.1, -0.5, 0.2]), np.array([0.3, 0.2, 0.4]), theta)
    x, y = target.inputs.X[:, 0], target.inputs.y
    c, ell, noise = theta[0], np.exp(theta[1]), np.exp(theta[2])
    lin = np.array([[(a - c) * (b - c) for b in x] for a in x])
    se = np.array([[np.exp(-((a - b) ** 2) / (2 * ell**2)) for b in x] for a in x])
    rng = np.random.default_rng(5)
    size = 4000
    rates = 1.0 + np.exp(-factors.m + factors.v / 2)
    scales = np.exp(factors.m + np.sqrt(factors.v) * rng.standard_normal((size, 3)))
    phi = stats.invgamma.rvs(1.0, scale=rates, size=(size, 3), random_state=rng)
    terms = (
        stats.invgamma.logpdf(scales, 0.5, scale=1.0 / phi)
        + stats.invgamma.logpdf(phi, 0.5)
        - stats.lognorm.logpdf(scales, np.sqrt(factors.v), scale=np.exp(factors.m))
        - stats.invgamma.logpdf(phi, 1.0, scale=rates)
    ).sum(axis=1)
    for s, (tau, first, second) in enumerate(scales):
        total = tau * (first * lin + second * se) + noise * np.eye(4)
        terms[s] += stats.multivariate_normal.logpdf(y, np.zeros(4), total)
    prior = stats.norm.logpdf(theta, target.mean, np.sqrt(target.variance)).sum()
    assert abs(target.value(factors) - (terms.mean() + prior)) < 5.0 * terms.std() / np.sqrt(size) + 0.02


def test_bound_is_below_the_log_evidence():
    """One kernel, two scales: p(y, θ) by quadrature over log w² = log τ² + log λ²."""
    made = learner(Pool.of("LIN[x]"), pairs=64)
    target = made.elbo(made.preprocessor.prepare(somebody(6)))
    found = maximise(target, [start_of(target.mean, 1, 1.0)], iterations=200, tolerance=1e-9)[0]
    grid = np.linspace(-40.0, 40.0, 1601)
    step = grid[1] - grid[0]
    one = np.exp(-np.log(np.pi) - 0.5 * grid - np.log1p(np.exp(-grid)))  # density of log τ²
    both = np.convolve(one, one)[800:2401] * step  # of the sum
    theta = found.factors.theta
    kernel, _ = target.kernels(theta, gradient=False)
    values, vectors = np.linalg.eigh(kernel[0])
    variances = np.exp(grid)[:, None] * np.maximum(values, 0.0) + np.exp(theta[-1])  # of y along each eigenvector
    likelihood = np.exp(stats.norm.logpdf(vectors.T @ target.inputs.y, 0.0, np.sqrt(variances)).sum(axis=1))
    log_evidence = np.log((both * likelihood).sum() * step)
    log_prior = stats.norm.logpdf(theta, target.mean, np.sqrt(target.variance)).sum()
    # A factorised q cannot follow the ridge where τ² and λ² trade off, so the gap is not nothing.
    assert log_evidence + log_prior - 3.0 < found.bound < log_evidence + log_prior


def test_search_climbs_and_is_deterministic():
    target = elbo()
    start = start_of(target.mean, 3, 1.0)
    found = maximise(target, [start], iterations=100, tolerance=1e-8)[0]
    assert found.bound > target.value(start)
    np.testing.assert_allclose(found.bound, target.value(found.factors), rtol=1e-10)
    again = maximise(target, [start], iterations=100, tolerance=1e-8)[0]
    np.testing.assert_array_equal(found.factors.packed, again.factors.packed)


def test_explained_by_naive_conditioning():
    target = elbo(pairs=2)
    factors = start_of(target.mean, 3, 1.5)
    kernels, _ = target.kernels(factors.theta, gradient=False)
    n = target.inputs.rows
    H = np.eye(n) - 1.0 / n
    for s, scales in enumerate(np.exp(target.log_scales(factors))):
        parts = [scales[0] * scales[1 + i] * kernels[i] for i in range(3)]
        inverse = np.linalg.inv(sum(parts) + np.exp(factors.theta[-1]) * np.eye(n))
        for i, part in enumerate(parts):
            mean = part @ inverse @ target.inputs.y
            covariance = part - part @ inverse @ part
            expected = np.var(mean) + np.trace(H @ covariance) / n
            np.testing.assert_allclose(target.explained(factors)[s, i], expected, rtol=1e-8)


def test_selects_what_is_there_and_says_how_large():
    user = somebody(60)
    fit = learner(pairs=4).fit(user, None)
    assert fit.composition.text == "LIN[x]"
    top = fit.weights[0]
    assert top.product.atoms[0].kind == "LIN"
    assert top.low < top.median < top.high
    assert 0.9 < top.share <= 1.0
    np.testing.assert_allclose(sum(w.share for w in fit.weights), 1.0)
    assert all(w.size <= w.share for w in fit.weights)


def test_a_wave_on_a_steep_line_is_selected():
    rng = np.random.default_rng(3)
    x = rng.uniform(-4, 4, 60)
    y = 8.0 * x + 1.2 * np.sin(2 * np.pi * x / 2.0) + 0.3 * rng.standard_normal(60)
    user = User("ann", ("x",), x[:, None], y, (60,))
    pool = Pool.of("LIN[x]", "PER[x]")
    assert learner(pool, pairs=4).fit(user, None).composition.text == "LIN[x] + PER[x]"
    by_share = learner(pool, pairs=4, clear=1.0).fit(user, None)
    assert by_share.composition.text == "LIN[x]"
    assert by_share.weights[1].share < 0.02
    assert by_share.weights[1].clear > 0.5


def test_noise_alone_selects_nothing():
    rng = np.random.default_rng(2)
    user = User("ann", ("x",), rng.uniform(-3, 3, (90, 1)), rng.standard_normal(90), (90,))
    assert not learner(pairs=4).fit(user, None).composition


def test_warm_start_is_no_worse():
    made = learner(pairs=3)
    first = made.fit(somebody(20), None)
    grown = somebody(20).extend(somebody(6, seed=9))
    cold, warm = made.fit(grown, None), made.fit(grown, first)
    assert warm.bound > cold.bound - 0.5


def test_weights_are_those_of_the_factors():
    fit = learner(pairs=3).fit(somebody(20), None)
    mean, variance = fit.factors.log_weights
    by_product = {weight.product: weight for weight in fit.weights}
    for product, m, v in zip(fit.learner.whole, mean, variance, strict=True):
        weight = by_product[product]
        np.testing.assert_allclose(np.log(weight.median**2), m)
        assert stats.norm.cdf(np.log(weight.high**2), m, np.sqrt(v)) == pytest.approx(0.95)


def test_refuses_what_makes_no_sense():
    with pytest.raises(DataError):
        learner(share=0.0)
    with pytest.raises(DataError):
        learner(pairs=0)
    made = learner()
    stored = made.fit(somebody(3), None).to_json()
    with pytest.raises(DataError, match="pool"):
        made.restore(somebody(3), {**stored, "m": [0.0]})
    assert layout_of(made.whole).size == len(stored["theta"]) + len(POOL)

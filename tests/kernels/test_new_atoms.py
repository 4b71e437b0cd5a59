"""Adding an atom touches one place: two kinds defined outside the package work everywhere, with no other change."""

import math

import numpy as np
import pytest

from kerneltrail.kernels import Hyperparameters, Pool, Priors, kinds, layout_of, log_normal, parse
from kerneltrail.kernels.atoms import _KINDS
from kerneltrail.report.description import describe

from .drawing import central_difference

pytestmark = pytest.mark.usefixtures("new_atoms")


def test_text():
    assert kinds()[-2:] == ("RQ", "MATERN52")
    composition = parse("MATERN52[x]*RQ[z] + RQ[x]")
    assert composition.text == "RQ[x] + MATERN52[x]*RQ[z]"
    assert parse(composition.text) == composition
    assert len(parse("RQ[x]*RQ[x]").products[0].atoms) == 2  # not idempotent unless it says so


def test_pool():
    pool = Pool.atoms(["x"], kinds=kinds())
    assert parse("RQ[x] + SE[x]") in pool
    assert pool.composition(pool.mask(parse("RQ[x] + SE[x]"))) == parse("RQ[x] + SE[x]")


def test_priors_by_kind_by_fallback_and_by_override():
    composition = parse("RQ[x]")
    mean, variance = Priors.heartsteps().moments(composition)
    np.testing.assert_array_equal(mean, [0.5, -1.0, 0.3, 1.0])  # the lengthscale's from the table, the mixture's own
    np.testing.assert_array_equal(variance, [0.75, 0.75, 0.2, 0.75])
    named = Priors.heartsteps().override("mixture", "x", log_normal(2.0, variance=0.1))
    assert named.moments(composition)[0][2] == 2.0


def test_layout_and_hyperparameters():
    fitted = Hyperparameters.from_values(parse("RQ[x]"), [1.0, 2.0, 0.7, 0.1])
    assert list(fitted) == ["RQ[x].amplitude", "RQ[x].lengthscale", "RQ[x].mixture", "noise"]
    assert fitted["RQ[x].mixture"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("RQ", lambda d, ell, alpha: (1.0 + d * d / (2.0 * alpha * ell * ell)) ** -alpha),
        (
            "MATERN52",
            lambda d, ell: (
                (1.0 + math.sqrt(5) * abs(d) / ell + 5.0 * d * d / (3.0 * ell * ell))
                * math.exp(-math.sqrt(5) * abs(d) / ell)
            ),
        ),
    ],
)
def test_covariance_and_gradient(name, oracle):
    kind = _KINDS[name]
    x = np.random.default_rng(0).normal(size=6)
    u = np.array([0.2, -0.3])[: len(kind.hyperparameters)]
    matrix = kind.covariance(x, x, np.exp(u))
    np.testing.assert_allclose(matrix, [[oracle(a - b, *np.exp(u)) for b in x] for a in x], rtol=1e-12)
    found = kind.gradient(x, np.exp(u), matrix)
    numeric = list(central_difference(lambda v: kind.covariance(x, x, np.exp(v)), u))
    np.testing.assert_allclose(found, numeric, atol=1e-8)
    assert kind.series(np.exp(u)[None], 1.0, np.array([1e-8])) is None


def test_words():
    composition = parse("RQ[hour] + MATERN52[hour]*PER[hour]*SE[t] + RQ[t]*RQ[t]")
    size = layout_of(composition).size
    found = describe(Hyperparameters(composition, (0.0,) * size), target="y", units={"hour": "hours"})
    assert [str(sentence) for sentence in found] == [
        "y will resemble, on many scales, what was observed at a similar hour, within about 1 hour. "
        "This part is typically ±1.",
        "y will also resemble, on many scales, what was observed at a similar t, within about 1, as long as t stays "
        "similar (within about 1). This part is typically ±1.",
        "y will also follow a smooth pattern in hour that repeats every hour, as long as hour stays similar (within "
        "about 1 hour), and as long as t stays similar (within about 1). This part is typically ±1.",
        "What remains unexplained varies by about ±1 from row to row.",
    ]

"""The spectral method against the dense one and against more digits, over everything that can be drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Reward, evidence, evidence_of, inputs_for, slope_of
from kerneltrail.kernels import Priors, layout_of, parse

from . import oracle
from .strategies import COVARIATES, Problem, drawn_from_the_model, problems

STATED = st.sampled_from(
    ["PER[hour]*PER[hour]", "LIN[hour]*LIN[hour]", "LIN[hour]*PER[hour]", "SE[hour]*SE[steps]", "PER[hour]*SE[steps]",
     "LIN[hour] + PER[hour]", "LIN[hour]*SE[hour] + SE[steps]", "PER[hour]*PER[steps]",
     "LIN[hour]*LIN[steps]*PER[hour]",
     "LIN[steps]*PER[hour]*SE[steps]", "SE[hour]*SE[steps]*SE[temp]", "LIN[hour]*LIN[steps]*LIN[temp] + SE[temp]"]
).map(parse)  # fmt: skip


def check(problem):
    spectral = evidence_of(problem.inputs, problem.thetas, method="spectral")
    dense = evidence_of(problem.inputs, problem.thetas, method="dense")
    np.testing.assert_allclose(spectral.log, dense.log, rtol=0, atol=problem.allowed(dense.log))
    assert spectral.method == ("spectral",) * len(problem.thetas)


@settings(max_examples=150)
@given(problem=problems(rows=(1, 400), rank=400, where=["unit", "paper", "duplicates", "ordered"]))
def test_spectral_is_dense_to_1e_8(problem):
    check(problem)


@settings(max_examples=80)
@given(problem=problems(rows=(1, 150), rank=400, where=["unit", "paper"], of=STATED))
def test_spectral_is_dense_for_every_kind_of_product(problem):
    check(problem)


@settings(max_examples=80)
@given(problem=problems(rows=(1, 150), rank=400, samples=1, where=["wide", "offset"]))
def test_spectral_is_the_precise_one_outside_the_scaling_range(problem):
    """There double precision is what limits *dense*; so more digits judge, and rounding is allowed for."""
    if problem.signal_to_noise > 1e12:
        return
    found = evidence_of(problem.inputs, problem.thetas, method="spectral")
    expected = oracle.precise(problem.user, problem.composition, problem.thetas[0], problem.block).astype(float)
    np.testing.assert_allclose(found.log[0], expected, rtol=0, atol=1e-8 + problem.rounding)


@settings(max_examples=60)
@given(problem=problems(rows=(1, 40), samples=1, rank=250, where=["unit", "paper", "duplicates"]))
def test_gradient_is_a_finite_difference(problem):
    found = slope_of(problem.inputs, problem.thetas, method="spectral")
    assert found.rank[0] > 0
    expected = oracle.precise_gradient(problem.user, problem.composition, problem.thetas[0], problem.block)
    np.testing.assert_array_less(np.abs(found.gradient[0] - expected) / np.maximum(1.0, np.abs(expected)), 1e-5)
    value = oracle.precise(problem.user, problem.composition, problem.thetas[0], problem.block)[-1]
    assert found.log[0] == pytest.approx(float(value), abs=1e-8)


@settings(max_examples=60)
@given(problem=problems(rows=(1, 40), samples=1, rank=250, where=["unit", "paper"], of=STATED))
def test_gradient_of_every_kind_of_product(problem):
    spectral, dense = (slope_of(problem.inputs, problem.thetas, method=m).gradient[0] for m in ("spectral", "dense"))
    np.testing.assert_array_less(np.abs(spectral - dense) / np.maximum(1.0, np.abs(dense)), 1e-6)


@pytest.mark.parametrize(
    "text", ["SE[hour]*SE[steps]", "LIN[temp]*PER[hour]*SE[steps]", "PER[hour]*PER[hour]*PER[steps]"]
)
@pytest.mark.parametrize("n", [1, 5, 60, 300])
def test_tensor_products_with_long_lengthscales(text, n):
    composition = parse(text)
    rng = np.random.default_rng(n)
    layout = layout_of(composition)
    theta = np.array([1.5 if slot.spec.name == "lengthscale" else 0.2 for slot in layout.slots])
    X = rng.uniform(-1, 1, (n, 3))
    user = User("ann", COVARIATES, X, np.zeros(n), tuple(sorted({1, (n + 1) // 2, n})))
    block = Reward(("hour",)).block(X, COVARIATES, rng.integers(0, 2, n))
    problem = Problem(user, composition, theta[None], block)
    problem = Problem(drawn_from_the_model(rng, problem), composition, theta[None], block)
    assert 20 < problem.rank() < 1500
    check(problem)
    spectral, dense = (slope_of(problem.inputs, theta, method=m).gradient for m in ("spectral", "dense"))
    np.testing.assert_allclose(spectral, dense, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "text", ["SE[x]", "PER[x]", "LIN[x] + PER[x]", "LIN[x]*SE[x]", "SE[x] + PER[z]", "PER[x]*SE[x]"]
)
def test_the_promised_tolerance_is_kept_and_paid_for(text):
    """The error is at most some ten times `tol`, for targets that the model could have made."""
    composition = parse(text)
    rng = np.random.default_rng(0)
    n = 120
    worst = {}
    thetas = Priors.synthetic().sample(composition, 4, rng)
    thetas[:, [slot.spec.name == "lengthscale" for slot in layout_of(composition).slots]] += 0.5
    user = User("ann", ("x", "z"), rng.uniform(-2, 2, (n, 2)), np.zeros(n), (10, 60, n))
    for s in range(len(thetas)):
        one = Problem(user, composition, thetas[s : s + 1], None)
        one = Problem(drawn_from_the_model(rng, one), composition, thetas[s : s + 1], None)
        expected = oracle.precise(one.user, composition, thetas[s]).astype(float)
        for tol in (1e-4, 1e-6, 1e-8, 1e-10):
            found = evidence_of(one.inputs, one.thetas, method="spectral", tol=tol)
            worst[tol] = max(worst.get(tol, 0.0), float(np.abs(found.log[0] - expected).max()))
    for tol, error in worst.items():
        assert error <= 10 * tol + one.rounding, (tol, error)


def test_a_linear_composition_is_exact_with_one_feature_each():
    rng = np.random.default_rng(0)
    user = User("ann", ("x", "z"), rng.uniform(-3, 3, (40, 2)), rng.standard_normal(40), (1, 2, 3, 40))
    composition = parse("LIN[x] + LIN[z] + LIN[x]*LIN[z]")
    theta = Priors.synthetic().sample(composition, 3, rng)
    found = evidence(user, composition, theta, method="spectral")
    assert found.rank.tolist() == [3, 3, 3]
    np.testing.assert_allclose(found.log, evidence(user, composition, theta, method="dense").log, atol=1e-10)


@pytest.mark.parametrize("text", ["SE[x]", "PER[x]", "PER[x]*SE[z]", "PER[x]*PER[z]*SE[x]"])
def test_too_many_features_are_refused_by_name_not_tried(text):
    rng = np.random.default_rng(0)
    user = User("ann", ("x", "z"), rng.uniform(-3, 3, (20, 2)), rng.standard_normal(20), (20,))
    composition = parse(text)
    theta = np.array([-9.0 if slot.spec.name == "lengthscale" else 0.0 for slot in layout_of(composition).slots])
    with pytest.raises(NumericalError, match=r"'ann'.*features.*lengthscale is too short.*'dense'"):
        evidence(user, composition, theta, method="spectral")
    found = evidence(user, composition, theta)  # auto: at once, by the other method
    assert found.method == ("dense",)
    expected = oracle.precise(user, composition, theta).astype(float)
    np.testing.assert_allclose(found.log[0], expected, rtol=1e-9)


def test_columns_of_very_different_scale():
    """x near 400 in a cubic: its variance is 4e15 times the noise, so the covariance itself is lost in rounding.

    Features of their own scale each are not; 80 bits just suffice to tell.
    """
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 1)) + 400.0
    composition = parse("SE[x] + LIN[x]*LIN[x]*LIN[x]")
    theta = np.zeros(layout_of(composition).size)
    user = User("ann", ("x",), X, rng.standard_normal(60), (60,))
    inputs = inputs_for(user, composition)
    found = evidence_of(inputs, theta, method="spectral")
    assert found.method == ("spectral",)
    assert found.log[0, 0] == pytest.approx(float(oracle.precise(user, composition, theta)[0]), abs=0.3)

"""The scikit-learn adapter against scikit-learn itself: matrices, gradients, clones, and refusals."""

import importlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.errors import KernelError
from kerneltrail.kernels import ATOMS, Hyperparameters, Product, layout_of, parse

pytest.importorskip("sklearn", reason="the scikit-learn adapter needs scikit-learn")
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from kerneltrail.adapters.sklearn import Column, Linear, from_sklearn, to_sklearn

NAMES = ["hour", "temperature"]
X = np.random.default_rng(0).uniform(-2.0, 2.0, (9, 2))
TEXTS = [
    "",
    "LIN[hour]",
    "PER[temperature]",
    "SE[hour]",
    "LIN[hour] + PER[hour]*SE[temperature]",
    "LIN[hour]*LIN[hour] + PER[hour]*PER[hour] + LIN[temperature]*SE[temperature]",
    "SE[hour]*SE[temperature] + LIN[hour]*PER[temperature]*SE[hour]",
]


def ours(hyperparameters, names, X):
    """Matrix of a composition, noise included, by the atoms' own covariance."""
    layout, values = hyperparameters.layout, hyperparameters.values_array
    total = values[-1] * np.eye(len(X))
    for p, product in enumerate(hyperparameters.composition):
        term = np.full((len(X), len(X)), values[layout.amplitude_index[p]])
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            x = X[:, names.index(atom.covariate)]
            term *= atom.spec.covariance(x, x, values[place])
        total += term
    return total


def drawn(text, seed):
    composition = parse(text)
    return Hyperparameters(composition, tuple(np.random.default_rng(seed).normal(0, 0.5, layout_of(composition).size)))


@pytest.mark.parametrize("text", TEXTS)
def test_matrix_diagonal_and_cross_matrix_are_ours(text):
    fitted = drawn(text, 1)
    kernel = to_sklearn(fitted, NAMES)
    expected = ours(fitted, NAMES, X)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(expected), rtol=1e-12)
    noiseless = expected - fitted["noise"] * np.eye(len(X))
    np.testing.assert_allclose(kernel(X[:4], X), noiseless[:4], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(text):
    fitted = drawn(text, 2)
    back = from_sklearn(to_sklearn(fitted, NAMES), NAMES)
    assert back.composition == fitted.composition
    np.testing.assert_allclose(ours(back, NAMES, X), ours(fitted, NAMES, X), rtol=1e-12, atol=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(TEXTS[1:]), st.integers(0, 10_000))
def test_gradient_by_theta_is_a_finite_difference(text, seed):
    kernel = to_sklearn(drawn(text, seed), NAMES)
    _, gradient = kernel(X, eval_gradient=True)
    theta, step = kernel.theta, 1e-6
    assert gradient.shape == (len(X), len(X), len(theta))
    for k in range(len(theta)):
        shift = step * np.eye(len(theta))[k]
        numeric = (kernel.clone_with_theta(theta + shift)(X) - kernel.clone_with_theta(theta - shift)(X)) / (2 * step)
        scale = 1.0 + np.abs(gradient[:, :, k]).max()
        np.testing.assert_allclose(gradient[:, :, k] / scale, numeric / scale, atol=1e-7)


def test_wrappers_clone_compare_and_take_parameters():
    kernel = Column(Linear(0.5), 1)
    copy = clone(kernel)
    assert copy == kernel
    assert copy is not kernel
    assert Column(Linear(0.5), 0) != kernel
    assert kernel != Linear(0.5)
    copy.set_params(kernel__location=-1.0)
    assert copy.kernel.location == -1.0
    assert kernel.kernel.location == 0.5
    assert [spec.name for spec in copy.hyperparameters] == ["kernel__location"]
    np.testing.assert_array_equal(copy.bounds, [[-1e5, 1e5]])
    assert repr(kernel) == "Column(Linear(location=0.5), 1)"
    assert not kernel.is_stationary()
    assert Column(RBF(), 0).is_stationary()


def test_a_fixed_location_is_no_part_of_theta():
    kernel = Linear(0.5, "fixed")
    assert kernel.theta.shape == (0,)
    assert kernel.bounds.shape == (0,)
    assert kernel(X, eval_gradient=True)[1].shape == (9, 9, 0)
    kernel.theta = np.array([])
    with pytest.raises(ValueError, match="expected 0"):
        kernel.theta = np.array([1.0])
    with pytest.raises(ValueError, match="Y is None"):
        Linear()(X, X, eval_gradient=True)


def test_it_can_be_fitted_by_scikit_learn():
    start = Hyperparameters.from_values(parse("LIN[hour] + SE[temperature]"), [1.0, 0.3, 1.0, 1.0, 0.1])
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2, 2, (40, 2))
    y = 1.5 * (inputs[:, 0] - 0.4) + np.sin(inputs[:, 1]) + 0.1 * rng.standard_normal(40)
    model = GaussianProcessRegressor(to_sklearn(start, NAMES), alpha=0.0).fit(inputs, y)
    before = GaussianProcessRegressor(to_sklearn(start, NAMES), alpha=0.0, optimizer=None).fit(inputs, y)
    assert model.log_marginal_likelihood_value_ > before.log_marginal_likelihood_value_ + 1.0
    fitted = from_sklearn(model.kernel_, NAMES)
    np.testing.assert_allclose(ours(fitted, NAMES, inputs), model.kernel_(inputs), rtol=1e-10)


def test_one_column_needs_no_wrapper():
    kernel = to_sklearn(drawn("PER[hour]", 0), ["hour"])
    assert "Column" not in repr(kernel)
    np.testing.assert_allclose(kernel(X[:, :1]), ours(drawn("PER[hour]", 0), ["hour"], X[:, :1]), rtol=1e-12)


READABLE = {
    "anisotropic": (2.0 * RBF([0.5, 3.0]), "SE[hour]*SE[temperature]"),
    "isotropic": (RBF(0.7), "SE[hour]*SE[temperature]"),
    "constant in the middle": (RBF(0.7) * ConstantKernel(3.0) * RBF([1.0, 2.0]), "SE[hour]*SE[temperature]"),
    "dot product": (0.3 * DotProduct(sigma_0=0.0), "LIN[hour] + LIN[temperature]"),
    "square": (
        DotProduct(sigma_0=0.0) ** 2,
        "LIN[hour]*LIN[hour] + LIN[hour]*LIN[temperature] + LIN[temperature]*LIN[temperature]",
    ),
    "cube of RBF": ((2.0 * RBF(0.7)) ** 3, "SE[hour]*SE[temperature]"),
    "periodic": (Column(ExpSineSquared(0.8, 1.7), 0) * RBF(2.0), "PER[hour]*SE[hour]*SE[temperature]"),
    "product of sums": (
        (Column(RBF(0.5), 0) + Column(Linear(0.2), 1)) * (2.0 * Column(ExpSineSquared(), 1)),
        "PER[temperature]*SE[hour] + LIN[temperature]*PER[temperature]",
    ),
    "two equal terms": (2.0 * RBF(0.7) + 3.0 * RBF(0.7), "SE[hour]*SE[temperature]"),
    "scaled noise": (RBF(0.7) + 2.0 * WhiteKernel(0.1), "SE[hour]*SE[temperature]"),
}


@pytest.mark.parametrize("case", READABLE)
def test_scikit_learn_kernels_are_read_exactly(case):
    kernel, text = READABLE[case]
    kernel = kernel + WhiteKernel(0.2)
    fitted = from_sklearn(kernel, NAMES)
    assert fitted.composition == parse(text)
    np.testing.assert_allclose(ours(fitted, NAMES, X), kernel(X), rtol=1e-12, atol=1e-13)


REFUSED = {
    "constant 2": ConstantKernel(2.0) + RBF(),
    "Matern": Matern() + WhiteKernel(),
    "RationalQuadratic": RationalQuadratic() * RBF(),
    "PairwiseKernel": PairwiseKernel(),
    "CompoundKernel": CompoundKernel([RBF()]),
    "ExpSineSquared on the columns hour, temperature": ExpSineSquared() + WhiteKernel(),
    "sigma_0² ": DotProduct(1.0) + WhiteKernel(),
    "twice with different hyperparameters": RBF(1.0) + RBF(2.0) + WhiteKernel(),
    "WhiteKernel times": RBF(1.0) * WhiteKernel(),
    "no noise": RBF(1.0),
    "Exponentiation by 0.5": RBF(1.0) ** 0.5 + WhiteKernel(),
    "outside the 2 columns": Column(RBF(), 2) + WhiteKernel(),
    "must be positive": ConstantKernel(0.0) * RBF() + WhiteKernel(),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_no_composition_expresses_is_refused_by_name(reason):
    with pytest.raises(KernelError, match=reason):
        from_sklearn(REFUSED[reason], NAMES)


def test_noise_held_outside_the_kernel():
    assert from_sklearn(RBF(), ["hour"], noise=0.3)["noise"] == pytest.approx(0.3)
    assert from_sklearn(RBF() + WhiteKernel(0.2), ["hour"], noise=0.3)["noise"] == pytest.approx(0.5)


def test_columns_are_checked():
    with pytest.raises(KernelError, match="not among the columns temperature"):
        to_sklearn(drawn("SE[hour]", 0), ["temperature"])
    with pytest.raises(KernelError, match="differ"):
        to_sklearn(drawn("SE[hour]", 0), ["hour", "hour"])
    with pytest.raises(KernelError, match="list of names"):
        from_sklearn(RBF(), "hour")


@pytest.mark.usefixtures("new_atoms")
def test_an_atom_without_a_counterpart_is_named():
    with pytest.raises(KernelError, match=r"RQ\[hour\] has no counterpart in scikit-learn: RQ defines no to_sklearn"):
        to_sklearn(drawn("RQ[hour]", 0), NAMES)


@pytest.mark.usefixtures("new_atoms")
def test_an_atom_from_outside_brings_its_own_translation(monkeypatch):
    kind = type(ATOMS["RQ"])
    monkeypatch.setattr(
        kind,
        "to_sklearn",
        lambda self, v: (RationalQuadratic, dict(zip(("length_scale", "alpha"), v.values(), strict=True))),
    )
    monkeypatch.setattr(kind, "sklearn_names", ("RationalQuadratic",))
    monkeypatch.setattr(kind, "from_sklearn", lambda self, k, names: [{names[0]: (k.length_scale, k.alpha)}])
    fitted = drawn("RQ[hour]*SE[temperature] + LIN[hour]", 3)
    kernel = to_sklearn(fitted, NAMES)
    np.testing.assert_allclose(kernel(X), ours(fitted, NAMES, X), rtol=1e-12, atol=1e-14)
    assert from_sklearn(kernel, NAMES).composition == fitted.composition


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.gaussian_process", None)
    monkeypatch.delitem(sys.modules, "kerneltrail.adapters.sklearn")
    with pytest.raises(ImportError, match="pip install 'kerneltrail\\[sklearn\\]'"):
        importlib.import_module("kerneltrail.adapters.sklearn")


def test_products_keep_one_amplitude():
    fitted = from_sklearn(2.0 * RBF(1.0) * ConstantKernel(3.0) + WhiteKernel(), ["hour"])
    assert fitted["SE[hour].amplitude"] == pytest.approx(6.0)
    assert isinstance(fitted.composition.products[0], Product)

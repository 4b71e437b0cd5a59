"""The GPyTorch adapter against GPyTorch itself; skipped where it is not installed (extra `gpytorch`)."""

import builtins
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.adapters.gpytorch import to_gpytorch
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Hyperparameters, layout_of, parse

NAMES = ["hour", "temperature"]
X = np.random.default_rng(0).uniform(-2.0, 2.0, (9, 2))
TEXTS = [
    "LIN[hour]",
    "PER[temperature]",
    "SE[temperature]",
    "LIN[hour] + PER[hour]*SE[temperature]",
    "LIN[hour]*LIN[hour] + PER[hour]*PER[hour] + LIN[temperature]*SE[temperature]",
    "SE[hour]*SE[temperature] + LIN[hour]*PER[temperature]*SE[hour]",
]


def drawn(text, seed):
    composition = parse(text)
    return Hyperparameters(composition, tuple(np.random.default_rng(seed).normal(0, 0.5, layout_of(composition).size)))


def ours(hyperparameters, X, Z):
    """Matrix of a composition without its noise, by the atoms' own covariance."""
    layout, values = hyperparameters.layout, hyperparameters.values_array
    total = np.zeros((len(X), len(Z)))
    for p, product in enumerate(hyperparameters.composition):
        term = np.full((len(X), len(Z)), values[layout.amplitude_index[p]])
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            column = NAMES.index(atom.covariate)
            term *= atom.spec.covariance(X[:, column], Z[:, column], values[place])
        total += term
    return total


@pytest.mark.parametrize("text", TEXTS)
def test_matrix_diagonal_and_cross_matrix_are_ours(text):
    pytest.importorskip("gpytorch", reason="the GPyTorch adapter needs the extra 'gpytorch'")
    import torch

    fitted = drawn(text, 1)
    kernel, noise = to_gpytorch(fitted, NAMES)
    assert noise == pytest.approx(fitted["noise"])
    with torch.no_grad():
        rows, few = torch.tensor(X), torch.tensor(X[:4])
        np.testing.assert_allclose(kernel(rows).to_dense().numpy(), ours(fitted, X, X), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(kernel(few, rows).to_dense().numpy(), ours(fitted, X[:4], X), rtol=1e-9, atol=1e-10)
        diagonal = kernel(rows, diag=True)
        np.testing.assert_allclose(diagonal.numpy(), np.diag(ours(fitted, X, X)), rtol=1e-9, atol=1e-10)


def test_every_hyperparameter_has_a_gradient_there():
    pytest.importorskip("gpytorch", reason="the GPyTorch adapter needs the extra 'gpytorch'")
    import torch

    fitted = drawn("LIN[hour]*PER[temperature] + SE[hour]", 2)
    kernel, _ = to_gpytorch(fitted, NAMES)
    kernel(torch.tensor(X)).to_dense().sum().backward()
    gradients = [parameter.grad for parameter in kernel.parameters()]
    assert len(gradients) == fitted.layout.size - 1
    assert all(g is not None and torch.all(g != 0.0) for g in gradients)


def test_it_trains_in_an_exact_gp():
    gpytorch = pytest.importorskip("gpytorch", reason="the GPyTorch adapter needs the extra 'gpytorch'")
    import torch

    rng = np.random.default_rng(4)
    y = torch.tensor(1.5 * (X[:, 0] - 0.4) + 0.1 * rng.standard_normal(len(X)))
    kernel, noise = to_gpytorch(drawn("LIN[hour] + SE[temperature]", 3), NAMES)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(torch.tensor(X), y, likelihood)
            self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = noise
    model = Model(likelihood)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = -evidence(model(torch.tensor(X)), y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.usefixtures("new_atoms")
def test_refusals():
    pytest.importorskip("gpytorch", reason="the GPyTorch adapter needs the extra 'gpytorch'")
    with pytest.raises(KernelError, match="not among the columns"):
        to_gpytorch(drawn("SE[x]", 0), NAMES)
    with pytest.raises(KernelError, match="no kernel to build"):
        to_gpytorch(drawn("", 0), NAMES)
    with pytest.raises(KernelError, match=r"RQ\[hour\] has no counterpart in GPyTorch"):
        to_gpytorch(drawn("RQ[hour]", 0), NAMES)


def test_without_gpytorch_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **options):
        if name.startswith("gpytorch"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install 'kerneltrail\\[gpytorch\\]'"):
        to_gpytorch(drawn("SE[hour]", 0), NAMES)


class Recorded:
    """Stands in for a kernel of GPyTorch: keeps what it was given."""

    def __init__(self, *inner, active_dims=None):
        self.inner, self.active_dims = inner, active_dims

    def double(self):
        return self

    def initialize(self, **values):
        self.values = values

    def __mul__(self, other):
        return Recorded(self, other)


def test_every_atom_says_what_it_is_there(monkeypatch):
    class RBFKernel(Recorded):
        pass

    class PeriodicKernel(Recorded):
        pass

    kernels = SimpleNamespace(RBFKernel=RBFKernel, PeriodicKernel=PeriodicKernel, ScaleKernel=Recorded)
    monkeypatch.setitem(sys.modules, "gpytorch", SimpleNamespace(kernels=kernels))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(tensor=lambda value, dtype: value, float64=None))
    fitted = Hyperparameters.from_values(parse("PER[temperature]*SE[hour]"), [2.0, 3.0, 0.5, 0.7, 0.1])
    kernel, noise = to_gpytorch(fitted, NAMES)
    periodic, squared = kernel.inner[0].inner
    assert (kernel.outputscale, noise) == pytest.approx((2.0, 0.1))
    assert (type(periodic), periodic.active_dims) == (PeriodicKernel, (1,))
    assert periodic.values == pytest.approx({"lengthscale": 9.0, "period_length": 0.5})  # its λ is ℓ²
    assert (type(squared), squared.active_dims) == (RBFKernel, (0,))
    assert squared.values == pytest.approx({"lengthscale": 0.7})

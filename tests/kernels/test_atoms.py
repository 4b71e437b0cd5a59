"""Atoms against loops over scalars, finite differences and definiteness."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.errors import KernelError
from kerneltrail.kernels import ATOMS, Atom, Hyperparameter
from kerneltrail.kernels.atoms.lin import Linear
from kerneltrail.kernels.atoms.se import SquaredExponential
from kerneltrail.kernels.phrases import Phrase

from .drawing import central_difference

# method (2) to (4), one scalar at a time.
ORACLES = {
    "LIN": lambda x, z, c: (x - c) * (z - c),
    "PER": lambda x, z, ell, p: math.exp(-2.0 * math.sin(math.pi * (x - z) / p) ** 2 / ell**2),
    "SE": lambda x, z, ell: math.exp(-((x - z) ** 2) / (2.0 * ell**2)),
}
points = st.lists(st.floats(-10, 10), min_size=1, max_size=6).map(np.array)


def constrained(kind, u):
    return np.array([math.exp(v) if h.positive else v for h, v in zip(kind.hyperparameters, u, strict=True)])


def vectors(kind):
    size = len(kind.hyperparameters)
    return st.lists(st.floats(-1.5, 2.0), min_size=size, max_size=size)


def test_the_papers_atoms_are_known():
    assert tuple(ATOMS) == ("LIN", "PER", "SE")
    assert [[h.name for h in kind.hyperparameters] for kind in ATOMS.values()] == [
        ["location"],
        ["lengthscale", "period"],
        ["lengthscale"],
    ]


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_covariance_is_the_equation(name, data):
    kind = ATOMS[name]
    x, z, values = data.draw(points), data.draw(points), constrained(kind, data.draw(vectors(kind)))
    expected = [[ORACLES[name](a, b, *values) for b in z] for a in x]
    np.testing.assert_allclose(kind.covariance(x, z, values), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_gradient_is_a_finite_difference_in_the_unconstrained_space(name, data):
    kind = ATOMS[name]
    x, u = data.draw(points), data.draw(vectors(kind))
    values = constrained(kind, u)
    found = kind.gradient(x, values, kind.covariance(x, x, values))
    numeric = central_difference(lambda v: kind.covariance(x, x, constrained(kind, v)), u)
    assert len(found) == len(kind.hyperparameters)
    for one, other in zip(found, numeric, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-5 * (1.0 + np.abs(one).max()))


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_diagonal_symmetry_and_definiteness(name, data):
    kind = ATOMS[name]
    x, values = data.draw(points), constrained(kind, data.draw(vectors(kind)))
    matrix = kind.covariance(x, x, values)
    np.testing.assert_allclose(kind.diagonal(x, values), np.diag(matrix), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-10 * max(1.0, np.trace(matrix))


@pytest.mark.parametrize("name", ["PER", "SE"])
def test_stationary_atoms_keep_their_arguments_unchanged(name):
    kind = ATOMS[name]
    x, values = np.linspace(0, 1, 5), np.ones(len(kind.hyperparameters))
    before = x.copy()
    kind.covariance(x, x, values)
    np.testing.assert_array_equal(x, before)


def test_series_is_there_for_stationary_atoms_only():
    tail = np.array([1e-8])
    assert Linear().series(np.zeros((1, 1)), 1.0, tail) is None
    assert ATOMS["PER"].series(np.ones((1, 2)), 1.0, tail) is not None
    assert SquaredExponential().series(np.ones((1, 1)), 1.0, tail) is not None


@pytest.mark.parametrize("name", ["", " x", "x ", "a[b", "a]b", "a\nb"])
def test_covariate_names_that_cannot_be_written_are_refused(name):
    with pytest.raises(KernelError, match="cannot be written"):
        Atom("SE", name)


def test_unknown_kinds_name_the_known_ones():
    with pytest.raises(KernelError, match="no kernel is called 'RQ'; there are LIN, PER, SE"):
        Atom("RQ", "x")


def test_atoms_sort_print_and_lead_to_their_kind():
    assert sorted([Atom("SE", "a"), Atom("LIN", "b"), Atom("LIN", "a")])[0] == Atom("LIN", "a")
    assert str(Atom("PER", "time of day")) == "PER[time of day]"
    assert Atom("LIN", "x").spec is ATOMS["LIN"]


class Spaced(SquaredExponential):
    name = "S E"


class Accented(SquaredExponential):
    name = "É"


def test_registering():
    with pytest.raises(KernelError, match="a kernel called 'SE' is registered already"):
        ATOMS.add("SE", SquaredExponential())
    with pytest.raises(KernelError, match="this kernel calls itself 'SE', so it cannot be registered as 'RBF'"):
        ATOMS.add("RBF", SquaredExponential())
    for kind in (Spaced(), Accented()):
        with pytest.raises(KernelError, match="plain identifier"):
            ATOMS.add(kind.name, kind)
    assert set(ATOMS) == {"LIN", "PER", "SE"}


def test_hyperparameters_describe_themselves():
    spec = Hyperparameter("lengthscale", "lengthscale")
    assert spec.positive
    assert spec.unit == "none"
    assert spec.fallback == (0.0, 1.0)


def test_the_default_power_of_a_kind_narrows_the_first():
    class Plain(SquaredExponential):
        def phrase(self, covariate, values, unit):
            return Phrase(f"be {values['v']}", f"mod {values['v']}")

    found = Plain().phrase_power("x", [{"v": 1}, {"v": 2}, {"v": 3}], "")
    assert found == Phrase("be 1, mod 2, mod 3", "mod 1, mod 2, mod 3", "mod 1, mod 2, mod 3", 2)

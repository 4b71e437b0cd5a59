"""The one rule for what double precision can tell from zero, and the linear algebra it comes with."""

import numpy as np
import pytest

from kerneltrail.errors import NumericalError
from kerneltrail.gp.numerics import RESOLUTION, factorise, half, root, solve_lower, solve_upper


def definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_definite_matrix_is_factorised(n, overwrite):
    matrix = definite(n)
    lower = factorise(matrix.copy(), overwrite=overwrite)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-13)


def test_the_matrix_is_left_alone_unless_told_otherwise():
    for matrix in (definite(6), np.asfortranarray(definite(6)), np.eye(1)):
        before = matrix.copy()
        factorise(matrix)
        np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_a_singular_matrix_is_refused_and_never_changed(overwrite, scale):
    x = np.random.default_rng(1).standard_normal((9, 3))
    with pytest.raises(NumericalError, match="the noise variance is too small beside variances of up to"):
        factorise(scale * x @ x.T, overwrite=overwrite)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_a_pivot_below_the_resolution_is_refused(scale):
    def near(share):
        """Two rows that differ by so small a share of their variance."""
        return scale * np.array([[1.0, 1.0], [1.0, 1.0 + share]])

    lower = factorise(near(2 * RESOLUTION))
    assert lower[1, 1] == pytest.approx(np.sqrt(2 * RESOLUTION * scale), rel=1e-4)
    with pytest.raises(
        NumericalError, match=r"too small beside variances of up to .* to be told from rounding; use a larger noise"
    ):
        factorise(near(0.5 * RESOLUTION))
    # What is singular by nature may be so, as long as it is definite at all.
    assert factorise(near(0.5 * RESOLUTION), resolution=0.0)[1, 1] > 0.0


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "over- or underflowed"),
        (np.array([[np.inf, 0.0], [0.0, 1.0]]), "over- or underflowed"),
        (np.full((2, 2), 1e308), "over- or underflowed"),
        (np.zeros((3, 3)), "over- or underflowed"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite|not positive definite"),
    ],
)
def test_what_cannot_be_factorised_is_named(matrix, problem):
    with pytest.raises(NumericalError, match=f"SE of ann.*({problem})"):
        factorise(matrix, what="SE of ann")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_solves(n):
    matrix, right = definite(n), np.random.default_rng(2).standard_normal((n, 2))
    lower = factorise(matrix)
    np.testing.assert_allclose(np.tril(lower) @ solve_lower(lower, right), right, atol=1e-12)
    np.testing.assert_allclose(np.tril(lower).T @ solve_upper(lower, right), right, atol=1e-12)


def test_a_zero_on_the_diagonal_is_told():
    lower = np.array([[1.0, 0.0], [1.0, 0.0]])
    for call in (solve_lower, solve_upper):
        with pytest.raises(NumericalError, match="zero on its diagonal"):
            call(lower, np.ones(2))


def test_root_of_singular_and_of_indefinite_covariances():
    x = np.random.default_rng(3).standard_normal((4, 2))
    found = root(x @ x.T, what="the prior")
    np.testing.assert_allclose(found @ found.T, x @ x.T, atol=1e-12)
    np.testing.assert_array_equal(root(np.zeros((2, 2)), what="the prior"), np.zeros((2, 2)))
    with pytest.raises(NumericalError, match="the prior has a negative eigenvalue"):
        root(np.diag([1.0, -0.1]), what="the prior")
    # A difference of large matrices has eigenvalues below zero by rounding.
    np.testing.assert_array_equal(root(np.diag([1.0, -1e-8]), what="the prior", scale=1e3)[:, 0], 0.0)


@pytest.mark.parametrize("weights", [(1.0, 2.0, 0.5), (1.0, 0.0, 0.5), (0.0, 0.0, 0.0)])
def test_half_of_a_covariance_times_itself_is_the_covariance_also_where_it_is_singular(weights):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    covariance = (turn * weights) @ turn.T
    covariance = 0.5 * (covariance + covariance.T)
    part = half(covariance, what="it")
    np.testing.assert_allclose(part @ part.T, covariance, atol=1e-12)


def test_half_of_what_is_no_covariance_is_refused():
    with pytest.raises(NumericalError, match="the prior has a negative eigenvalue"):
        half(np.diag([1.0, -1.0]), what="the prior")

"""What gradients need besides a factor, each against the lines of NumPy that it stands for."""

import numpy as np
import pytest

from kerneltrail.gp import gradients


def factored(n, rng):
    A = rng.standard_normal((n, n + 3))
    matrix = A @ A.T / n + 0.05 * np.eye(n)
    upper = np.linalg.cholesky(matrix).T.copy()
    upper[np.tril_indices(n, -1)] = np.nan  # the lower triangle is never read
    return matrix, upper


@pytest.mark.parametrize("n", range(1, 71))
def test_the_inverse_is_lapacks(n):
    matrix, upper = factored(n, np.random.default_rng(n))
    out = np.empty((n, n))
    gradients.invert(upper, np.ones(n, dtype=bool), out)
    np.testing.assert_allclose(out, np.linalg.inv(matrix), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_the_inverse_of_the_leading_rows_alone(n):
    matrix, upper = factored(n + 1, np.random.default_rng(n))
    out = np.empty((n, n))
    gradients.invert(upper, np.ones(n, dtype=bool), out)
    np.testing.assert_allclose(out, np.linalg.inv(matrix[:n, :n]), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [1, 4, 7, 20])
def test_the_diagonal_and_the_wanted_rows_of_an_inverse(n):
    rng = np.random.default_rng(n)
    matrix, upper = factored(n, rng)
    for _ in range(10):
        wanted = rng.random(n) < 0.3
        out = np.full((n, n), np.nan)
        gradients.invert(upper, wanted, out)
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(np.diagonal(out), np.diagonal(inverse), rtol=1e-8)
        np.testing.assert_allclose(out[wanted], inverse[wanted], rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(out, out.T)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 11])
def test_weighted_rows_are_subtracted(rows):
    rng = np.random.default_rng(rows)
    features, weights, out = rng.standard_normal((rows + 1, 30)), rng.standard_normal(rows), rng.standard_normal(30)
    expected = out - weights @ features[:rows]
    gradients.subtract(features, weights, out)
    np.testing.assert_allclose(out, expected, atol=1e-13)


@pytest.mark.parametrize("terms", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("before", [0, 1, 4])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_the_slope_by_a_frequency_is_the_sum_over_all_rows(terms, before, after):
    """d log p/dω = Σ W ∘ dΦ/dω with W = α mᵀ - Φᵀ A⁻¹, whatever m, α and the symmetric A⁻¹ are."""
    rng = np.random.default_rng(100 * terms + 10 * before + after)
    n, width = 37, 2 * terms - 1
    first, stop, r = before, before + width, before + width + after
    x, omega = rng.uniform(-1, 1, n), 4.3
    waves, slopes = [np.ones(n)], [np.zeros(n)]
    for j in range(1, terms):
        waves += [np.cos(j * omega * x), np.sin(j * omega * x)]
        slopes += [-j * x * np.sin(j * omega * x), j * x * np.cos(j * omega * x)]
    features = rng.standard_normal((r + 1, n))
    features[first:stop] = waves
    scale = rng.uniform(0.5, 2.0, r + 1)
    scale[first + 2 : stop : 2] = scale[first + 1 : stop : 2]  # cosine and sine of a term share their weight
    mean, residual = rng.standard_normal(r), rng.standard_normal(n)
    inverse = rng.standard_normal((r, r))
    inverse = inverse + inverse.T
    W = np.outer(residual, mean) - (scale[:r, None] * features[:r]).T @ inverse
    expected = sum(scale[first + c] * (W[:, first + c] @ slopes[c]) for c in range(width))
    found = gradients.frequency_slope(features, scale, mean, inverse, residual, x, first, stop)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-9)

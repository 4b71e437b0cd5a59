"""The compiled Gram matrices, each against the line of NumPy that it stands for."""

import numpy as np
import pytest

from kerneltrail.gp import gram as compiled


def definite(n, rng):
    A = rng.standard_normal((n, n + 3))
    return A @ A.T / n + 0.05 * np.eye(n)


@pytest.mark.parametrize("n", range(1, 71))
def test_the_small_cholesky_is_lapacks(n):
    rng = np.random.default_rng(n)
    matrix = definite(n, rng)
    upper = matrix.copy()
    upper[np.tril_indices(n, -1)] = np.nan  # the lower triangle is never read
    logdet = compiled.cholesky(upper, n)
    np.testing.assert_allclose(np.triu(upper), np.linalg.cholesky(matrix).T, rtol=1e-10, atol=1e-12)
    assert logdet == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)

    right = rng.standard_normal(n)
    for solve, triangle in ((compiled.forward, np.triu(upper).T), (compiled.backward, np.triu(upper))):
        found = right.copy()
        solve(upper, found)
        np.testing.assert_allclose(triangle @ found, right, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_a_bordered_cholesky_counts_only_its_own_rows_and_leaves_the_remainder(n):
    rng = np.random.default_rng(n)
    full = definite(n + 1, rng)
    upper = full.copy()
    logdet = compiled.cholesky(upper, n)
    assert logdet == pytest.approx(np.linalg.slogdet(full[:n, :n])[1], abs=1e-12)
    remainder = full[n, n] - full[n, :n] @ np.linalg.solve(full[:n, :n], full[:n, n])
    assert upper[n, n] ** 2 == pytest.approx(remainder, rel=1e-10)

    exact = full.copy()  # y in the span of the features: the remainder is zero, or rounding below it
    exact[n, n] = full[n, :n] @ np.linalg.solve(full[:n, :n], full[:n, n]) * (1 - 1e-14)
    assert compiled.cholesky(exact, n) == pytest.approx(logdet, abs=1e-12)
    assert exact[n, n] ** 2 == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_an_indefinite_matrix_gives_nan(n, bad):
    for k in range(n):
        matrix = np.eye(n)
        matrix[k, k] = bad
        assert np.isnan(compiled.cholesky(matrix, n))


def test_rows_of_very_different_scale_do_not_disturb_each_other():
    scale = np.array([1e9, 1.0, 1e-9, 1e6])
    base = definite(4, np.random.default_rng(0))
    logdet = compiled.cholesky(scale[:, None] * base * scale, 4)
    assert logdet == pytest.approx(np.linalg.slogdet(base)[1] + 2 * np.log(scale).sum(), abs=1e-10)


def test_a_remainder_that_is_no_number_is_not_taken_for_zero():
    matrix = np.array([[1.0, np.inf], [0.0, np.inf]])
    compiled.cholesky(matrix, 1)
    assert np.isnan(matrix[1, 1])


def series_features(rng, terms, n):
    """g, g cos θ, g sin θ, …: one product's rows, with a linear factor g."""
    g, theta = rng.standard_normal(n), rng.uniform(-3, 3, n)
    rows = [g]
    for j in range(1, terms):
        rows += [g * np.cos(j * theta), g * np.sin(j * theta)]
    return np.array(rows)


@pytest.mark.parametrize("n", [1, 6, 511, 512, 513, 1100])
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 9), (0, 4, 3), (7, 0, 6, 0)])
def test_trigonometric_moments_are_the_plain_gram(n, shape):
    """`shape`: terms of each block; 0 stands for a block of three arbitrary rows. Then one block more, with y."""
    rng = np.random.default_rng(n)
    parts = [series_features(rng, t, n) if t else rng.standard_normal((3, n)) for t in shape]
    parts.append(rng.standard_normal((2, n)))
    features = np.vstack(parts)
    starts = np.cumsum([0] + [len(part) for part in parts])
    terms = np.array([*shape, 0])
    moments = np.zeros((len(terms), 2, 2 * max(1, terms.max())))
    gram = np.zeros((len(features), len(features)))
    begin = 0
    for end in sorted({1, n // 3, n} - {0}):  # batch by batch
        compiled.add_gram(features, starts, terms, begin, end, moments, gram)
        begin = end
        expected = features[:, :end] @ features[:, :end].T
        np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=1e-11 * (10 + n))


def test_scaled_gram():
    rng = np.random.default_rng(0)
    features, scale = rng.standard_normal((4, 9)), np.array([2.0, 0.5, 3.0, 1.0])
    out = np.zeros((4, 4))
    compiled.scaled_gram(features @ features.T, scale, 0.3, out)
    phi = scale[:, None] * features
    expected = phi @ phi.T + 0.3 * np.diag([1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(np.triu(out), np.triu(expected), rtol=1e-12)


@pytest.mark.parametrize("r", [0, 1, 4, 9, 12])
def test_batches_below_and_above_the_rank_agree_with_the_covariance(r):
    rng = np.random.default_rng(r)
    n, noise = 24, 0.4
    phi, y, scale = rng.standard_normal((r, n)), rng.standard_normal(n), rng.uniform(0.5, 2.0, r + 1)
    scale[r] = 1.0
    features = np.vstack([phi, y])
    ends = np.array([1, 2, 4, 5, 8, 9, 10, 13, 24])
    out = np.empty(len(ends))
    compiled.prefix_evidence(features, scale, np.array([0, r + 1]), np.array([0]), ends, noise, out)
    K = (phi.T * scale[:r] ** 2) @ phi + noise * np.eye(n)
    expected = [
        -0.5 * (y[:e] @ np.linalg.solve(K[:e, :e], y[:e]) + np.linalg.slogdet(K[:e, :e])[1] + e * np.log(2 * np.pi))
        for e in ends
    ]
    np.testing.assert_allclose(out, expected, atol=1e-11)
    for e, value in zip(ends, expected, strict=True):  # alone, so by the other path where e > r
        single = np.empty(1)
        compiled.prefix_evidence(features, scale, np.array([0, r + 1]), np.array([0]), np.array([e]), noise, single)
        assert single[0] == pytest.approx(value, abs=1e-11)

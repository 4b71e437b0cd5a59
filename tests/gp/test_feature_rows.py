"""Features of series, and how many there are, against the lines of NumPy that they stand for."""

import itertools

import numpy as np
import pytest

from kerneltrail.gp import feature_rows


@pytest.mark.parametrize("count", [1, 2, 3, 4, 17, 300])
def test_waves(count):
    x = np.random.default_rng(0).uniform(-5, 5, 40) + 1e3
    rows = np.full((2 * count - 1, 40), np.nan)
    feature_rows.waves(x, 1e3, 0.7, count, rows)
    angle = 0.7 * (x - 1e3)
    expected = [np.ones(40)]
    for j in range(1, count):
        expected += [np.cos(j * angle), np.sin(j * angle)]
    np.testing.assert_allclose(rows, expected, atol=2e-14 * (10 + count))


@pytest.mark.parametrize("far", [0.1, 3.0, 50.0, 9e5, 1e7])
def test_cosines_and_sines_of_all_quarters_near_and_far(far):
    # 4,000 angles to either side, the ends of the quarters among them; past 1e6 the mathematics library takes over
    x = np.concatenate([np.linspace(-far, far, 8001), np.arange(-8, 9) * np.pi / 4])
    rows = np.full((3, len(x)), np.nan)
    feature_rows.waves(x, 0.0, 1.0, 2, rows)
    np.testing.assert_allclose(rows, [np.ones(len(x)), np.cos(x), np.sin(x)], rtol=0, atol=2.3e-16)


def test_ranks_count_what_fill_writes():
    rng = np.random.default_rng(0)
    counts = np.array([3, 5, 4], dtype=np.int64)
    weights = np.sort(rng.uniform(0, 1, (3, 5)), axis=1)[:, ::-1].copy()
    start = np.array([0, 3])
    for cutoff in (0.0, 0.05, 0.3, 0.9):
        out = np.empty(1, dtype=np.int64)
        feature_rows.ranks(start, counts, weights, np.array([cutoff]), out)
        expected = sum(
            2 ** sum(j > 0 for j in index)
            for index in itertools.product(*(range(c) for c in counts))
            if weights[0, index[0]] * weights[1, index[1]] * weights[2, index[2]] > cutoff
        )
        assert out[0] == expected


def test_ranks_of_hopeless_products_are_bounded_not_counted():
    counts = np.full(5, 1 << 14, dtype=np.int64)
    out = np.empty(1, dtype=np.int64)
    feature_rows.ranks(np.array([0, 5]), counts, np.ones((5, 1 << 14)), np.array([0.0]), out)
    assert out[0] >= feature_rows.MOST

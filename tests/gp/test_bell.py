"""Normals and Student-ts stretch by stretch, against scipy's."""

import numpy as np
from scipy import stats

from kerneltrail.gp.bell import LEAST, Bell

BELL = Bell(np.array([0.5, -1.0, 2.0]), np.array([1.2, 0.3, 4.0]), np.array([3.5, np.inf, 40.0]))
EDGES = np.array([-3.0, -1.0, 0.0, 0.4, 6.0])


def reference(i):
    mean, scale, freedom = (float(part[i]) for part in BELL)
    return stats.norm(mean, scale) if np.isinf(freedom) else stats.t(freedom, mean, scale)


def test_stretches_have_scipys_probabilities_and_add_up():
    found = BELL.stretches(EDGES)
    for i in range(3):
        expected = np.diff(np.concatenate([[0.0], reference(i).cdf(EDGES), [1.0]]))
        np.testing.assert_allclose(found[i], np.maximum(expected, LEAST), atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_stretches_far_above_the_mean_are_as_exact_as_far_below():
    far = np.array([8.0, 9.0, 10.0])
    above, below = (Bell(np.zeros(1), np.ones(1), np.full(1, np.inf)).stretches(edges) for edges in (far, -far[::-1]))
    np.testing.assert_allclose(above, below[:, ::-1], rtol=1e-12)
    assert above[0, 1] < 1e-15


def test_densities_are_scipys():
    y = np.array([-2.0, -1.3, 30.0])
    np.testing.assert_allclose(BELL.log_density(y), [reference(i).logpdf(y[i]) for i in range(3)], rtol=1e-12)


def test_a_wider_bell_has_the_same_mean_and_freedom():
    wide = BELL.wider(2.0)
    np.testing.assert_allclose(wide.scale, 2.0 * BELL.scale)
    assert wide.mean is BELL.mean
    assert wide.freedom is BELL.freedom

"""Evidence under another prior in closed form, against sums over a grid."""

import numpy as np
import pytest

from kerneltrail.gp.numerics import LEAST_CURVATURE
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.map_table import Fits, MapSettings, fit_path, group_of
from trajectory import tiny
from trajectory.tiny import LIN, SE


def fits_of(value, peak, curvature, mean, variance):
    """What an exact search finds for ℓ = value - ½(θ-peak)ᵀC(θ-peak) under the prior N(mean, variance)."""
    precision = curvature + np.diag(1.0 / variance)
    theta = np.linalg.solve(precision, curvature @ peak + mean / variance)
    log_likelihood = value - 0.5 * (theta - peak) @ curvature @ (theta - peak)
    return Fits(theta[None], np.array([log_likelihood]), np.array([np.nan]), precision[None])


def grid_sum(value, peak, curvature, mean, variance):
    """log ∫ exp(ℓ) N(θ; mean, variance), one or two hyperparameters, by a plain sum."""
    scale = np.sqrt(variance)
    axes = [m + s * np.linspace(-9.0, 9.0, 1201) for m, s in zip(mean, scale, strict=True)]
    total = 0.0
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    for first in axes[0]:
        rest = np.array([[first]]) if len(axes) == 1 else np.array([[first, second] for second in axes[1]])
        off = rest - peak
        log = value - 0.5 * np.einsum("si,ij,sj->s", off, curvature, off)
        density = np.exp(-0.5 * ((rest - mean) ** 2 / variance).sum(axis=1)) / np.prod(scale * np.sqrt(2 * np.pi))
        total += float((np.exp(log) * density).sum()) * cell
    return np.log(total)


ONE = (-3.0, np.array([0.7]), np.array([[5.0]]), np.array([0.2]), np.array([0.5]))
TWO = (-2.0, np.array([0.3, -0.8]), np.array([[4.0, 1.5], [1.5, 2.0]]), np.array([0.0, 1.0]), np.array([0.5, 0.75]))
SADDLE = (-1.0, np.array([0.3, 0.4]), np.array([[3.0, 0.0], [0.0, -0.4]]), np.array([0.0, 0.0]), np.array([0.5, 0.5]))


@pytest.mark.parametrize("problem", [ONE, TWO, SADDLE], ids=["one", "two", "a likelihood that opens upwards"])
@pytest.mark.parametrize("narrow", [1.0, 0.3, 0.02])
def test_a_quadratic_likelihood_is_integrated_exactly(problem, narrow):
    *likelihood, mean, variance = problem
    quadratic = Quadratic.of(fits_of(*problem), mean, variance)
    moved = mean + 0.8 * np.sqrt(variance) * (1.0 - narrow)
    wanted = grid_sum(*likelihood, moved, narrow * variance)
    np.testing.assert_allclose(quadratic.log_evidence(moved, narrow * variance), [wanted], atol=1e-6)


def test_the_prior_itself_gives_back_laplaces_evidence():
    table = tiny.table()
    for mask in (LIN, SE, LIN | SE):
        moments = tiny.PRIORS.moments(tiny.POOL.composition(mask))
        fits = table.get(1, mask)
        np.testing.assert_allclose(Quadratic.of(fits, *moments).log_evidence(*moments), fits.log_laplace, atol=1e-4)


def test_a_curvature_below_the_floor_is_raised_to_it():
    mean, variance = np.zeros(1), np.array([0.5])
    fits = Fits(np.zeros((1, 1)), np.zeros(1), np.zeros(1), np.full((1, 1, 1), -7.0))
    quadratic = Quadratic.of(fits, mean, variance)
    np.testing.assert_allclose(quadratic.curvature, [[[(LEAST_CURVATURE - 1.0) / 0.5]]])
    assert np.isfinite(quadratic.log_evidence(mean + 3.0, variance)).all()


def test_it_is_near_a_search_under_the_group_where_there_is_one_mode():
    """LIN and SE on 40 rows: the log likelihood is close to quadratic, and nothing was searched again."""
    users = tiny.pilots(4, ends=(20, 40))
    for mask, user, others in ((LIN, 0, (2,)), (SE, 1, (3,)), (SE, 3, (1, 0))):
        composition = tiny.POOL.composition(mask)
        fits = {m: fit_path(users[m], composition, tiny.PRIORS, MapSettings(), None) for m in (user, *others)}
        group = group_of(composition, [fits[m].theta[-1] for m in others], tiny.PRIORS)
        quadratic = Quadratic.of(fits[user], *tiny.PRIORS.moments(composition))
        again = fit_path(users[user], composition, group, MapSettings(), None)
        np.testing.assert_allclose(quadratic.log_evidence(group.mean, group.variance), again.log_laplace, atol=0.5)

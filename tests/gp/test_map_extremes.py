"""Maximum a posteriori fits of input at its worst, and of a kernel without a spectral form."""

import math

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.errors import DataError, KernelError, KerneltrailError
from kerneltrail.gp import find_map
from kerneltrail.kernels import parse

from .test_map import PRIORS, assert_stationary, log_posterior, rng, user_of


def finite(found):
    assert np.isfinite(found.hyperparameters.vector).all()
    assert math.isfinite(found.log_posterior)
    assert math.isfinite(found.log_laplace)
    assert np.isfinite(found.precision).all()


SPREAD, TARGET = np.random.default_rng(0).uniform(size=(20, 2)), np.random.default_rng(1).normal(size=20)
WORST = {
    "one row": ([[0.3, 0.4]], [1.2]),
    "constant target": (SPREAD, np.full(20, 3.0)),
    "zero target": (SPREAD, np.zeros(20)),
    "constant columns": (np.full((20, 2), 0.5), TARGET),
    "duplicates": (np.repeat([[0.1, 0.9], [0.5, 0.2]], 10, axis=0), TARGET),
    "identical rows": (np.full((20, 2), 0.5), np.full(20, 1.0)),
    "targets × 1e6": (SPREAD, 1e6 * TARGET),
    "targets × 1e-6": (SPREAD, 1e-6 * TARGET),
    "covariates × 1e6": (1e6 * SPREAD, TARGET),
}


@pytest.mark.parametrize("case", WORST)
@pytest.mark.parametrize("text", ["", "LIN[x]", "LIN[x] + PER[x]", "SE[x]*SE[z]"])
def test_degenerate_rows_are_fitted(case, text):
    X, y = WORST[case]
    user = User("worst", ("x", "z"), X, y, (len(y),))
    found = find_map(user, parse(text), PRIORS, rng=rng())
    finite(found)
    if case == "targets × 1e6":
        assert found.status in ("edge", "iterations")
        assert not found.converged
    elif case == "covariates × 1e6" and "PER" in text:
        # A period of about 1 on a range of 1e6 is so sharp an optimum that rounding decides where the slope ends.
        assert found.status in ("converged", "flat", "stuck")
    else:
        assert found.converged


def test_targets_out_of_scale_end_at_the_edge_and_say_so():
    # The noise would have to be 1e4, but its prior is log-normal about 1: nothing past eight sd is searched.
    user = User("far", ("x",), np.zeros((10, 1)), 100.0 * rng().normal(size=10), (10,))
    found = find_map(user, parse(""), PRIORS, rng=rng())
    assert found.status == "edge"
    assert not found.converged
    assert found.hyperparameters.vector[0] == pytest.approx(8.0 * math.sqrt(0.5))
    finite(found)


def test_an_edge_does_not_spoil_the_other_hyperparameters():
    # At the edge in amplitude and noise, the location still has to be where its own slope is zero.
    draw = rng(3)
    x = draw.uniform(-1.0, 1.0, 30)
    user = User("far", ("x",), x[:, None], 3e3 * (x - 0.2) + 300.0 * draw.standard_normal(30), (30,))
    found = find_map(user, parse("LIN[x]"), PRIORS, rng=rng())
    assert found.status == "edge"
    u, (mean, variance) = found.hyperparameters.vector, PRIORS.moments(parse("LIN[x]"))
    free = np.abs(u - mean) < 7.99 * np.sqrt(variance)
    assert free.any()
    assert not free.all()
    for i in np.flatnonzero(free):
        shift = 1e-5 * np.eye(3)[i]
        ends = (log_posterior(user, parse("LIN[x]"), u + by) for by in (shift, -shift))
        # The search ends when two steps gain less than 1e-9 of some thousands of nats.
        assert abs(next(ends) - next(ends)) / 2e-5 < 0.5


def test_what_cannot_be_fitted_is_refused_by_name():
    good = user_of("g", 5)
    with pytest.raises(DataError, match="reads hour, which user 'g' does not have"):
        find_map(good, parse("SE[hour]"), PRIORS, rng=rng())
    empty = User("nobody", ("x",), np.empty((0, 1)), [], ())
    with pytest.raises(DataError, match="'nobody'"):
        find_map(empty, parse("SE[x]"), PRIORS, rng=rng())
    with pytest.raises(KernelError, match="unknown method"):
        find_map(good, parse("SE[x]"), PRIORS, rng=rng(), method="guess")  # type: ignore[arg-type]
    with pytest.raises(KerneltrailError, match=r"overflow|out of scale|finite"):
        find_map(User("huge", ("x",), [[0.0], [1.0]], [1e200, -1e200], (2,)), parse("LIN[x]"), PRIORS, rng=rng())


# A kernel without a spectral form


@pytest.mark.usefixtures("new_atoms")
def test_a_kernel_without_a_series_is_fitted_densely():
    composition, user = parse("MATERN52[x] + LIN[z]"), user_of("m", 40)
    found = find_map(user, composition, PRIORS, rng=rng())
    assert found.converged
    assert_stationary(lambda u: log_posterior(user, composition, u), found)
    with pytest.raises(KernelError, match="without a spectral form"):
        find_map(user, composition, PRIORS, rng=rng(), method="spectral")

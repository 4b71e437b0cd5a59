import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Priors, parse
from kerneltrail.trajectory.map_table import MEAN_WEIGHT, SPREAD_WEIGHT, group_of

KERNEL = parse("LIN[x] + SE[x]")
PRIORS = Priors.synthetic()
SIZE = len(PRIORS.moments(KERNEL)[0])
THETAS = st.lists(st.lists(st.floats(-5, 5), min_size=SIZE, max_size=SIZE), min_size=1, max_size=6)


def naive(thetas):
    """The formula of the docstring, one number at a time."""
    means, variances = [], []
    for i in range(SIZE):
        mu, v = (moment[i] for moment in PRIORS.moments(KERNEL))
        values = [theta[i] for theta in thetas]
        n = len(values)
        bar = sum(values) / n
        means.append((MEAN_WEIGHT * mu + n * bar) / (MEAN_WEIGHT + n))
        variances.append(min(v, (SPREAD_WEIGHT * v + sum((x - bar) ** 2 for x in values)) / (SPREAD_WEIGHT + n)))
    return means, variances


@given(THETAS)
def test_a_group_is_the_formula_number_by_number(thetas):
    group = group_of(KERNEL, [np.array(theta) for theta in thetas], PRIORS)
    mean, variance = naive(thetas)
    np.testing.assert_allclose(group.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(group.variance, variance, rtol=1e-12)
    assert group.users == len(thetas)


@given(THETAS)
def test_a_group_is_never_vaguer_than_the_prior_and_lies_between_it_and_the_users(thetas):
    group = group_of(KERNEL, [np.array(theta) for theta in thetas], PRIORS)
    mean0, variance0 = PRIORS.moments(KERNEL)
    assert (group.variance <= variance0).all()
    assert (group.variance > 0).all()
    centre = np.mean(thetas, axis=0)
    low, high = np.minimum(mean0, centre), np.maximum(mean0, centre)
    assert (group.mean >= low - 1e-12).all()
    assert (group.mean <= high + 1e-12).all()


def test_nobody_leaves_the_prior_as_it_is():
    group = group_of(KERNEL, [], PRIORS)
    mean, variance = PRIORS.moments(KERNEL)
    np.testing.assert_array_equal(group.mean, mean)
    np.testing.assert_array_equal(group.variance, variance)
    assert group.users == 0


def test_users_who_agree_make_it_sharper():
    theta = np.full(SIZE, 0.3)
    spreads = [group_of(KERNEL, [theta] * n, PRIORS).variance.max() for n in (0, 1, 3, 30)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < spreads[0] / 20
    np.testing.assert_allclose(group_of(KERNEL, [theta] * 30, PRIORS).mean, theta, atol=0.02)


def test_a_group_speaks_of_its_own_composition_only():
    group = group_of(KERNEL, [], PRIORS)
    np.testing.assert_array_equal(group.moments(parse("SE[x] + LIN[x]"))[0], group.mean)
    with pytest.raises(KernelError, match=r"says nothing of SE\[x\]"):
        group.moments(parse("SE[x]"))

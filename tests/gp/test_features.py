"""The features' inner product is the kernel, whatever the structure; the layout and the cut are as stated."""

import numpy as np
import pytest
from hypothesis import given, settings

from kerneltrail.data.user import User
from kerneltrail.gp import dense, feature_rows, inputs_for
from kerneltrail.gp.features import expansion_of, feature_layout_for
from kerneltrail.kernels import parse

from .strategies import problems


def feature_matrix(inputs, thetas, s=0, tol=1e-10):
    """Φ, (r, n), of one hyperparameter vector."""
    expansion = expansion_of(inputs, feature_layout_for(inputs), inputs.natural(thetas), tol)
    layout, r, n = expansion.layout, int(expansion.ranks()[s]), inputs.rows
    rows, plain = feature_rows.empty_rows(r, n, layout.series_start), np.full((r, n), np.nan)
    rows.features[:], rows.scale[:] = np.nan, np.nan
    feature_rows.fill(inputs.columns, inputs.reach.mean(axis=0), layout.compiled, expansion.terms(s), rows, plain)
    return rows.scale[:, None] * rows.features


@settings(max_examples=40)
@given(problem=problems(rows=(1, 30), samples=2, blocks=False, rank=2000, where=["unit", "paper", "duplicates"]))
def test_inner_products_are_the_kernel(problem):
    inputs = problem.inputs
    values = inputs.natural(problem.thetas)
    for s in range(2):
        phi = feature_matrix(inputs, problem.thetas, s)
        K = dense.covariance(inputs, values[s]) - values[s, -1] * np.eye(inputs.rows)
        # What is dropped may cost 1e-10 in a log evidence, that is 2e-10 σ²/n in a diagonal entry.
        np.testing.assert_allclose(phi.T @ phi, K, atol=2e-9 * values[s, -1] / inputs.rows + 1e-12 * np.abs(K).max())


def test_products_with_a_series_come_first_in_a_plan():
    user = User("ann", ("x", "z"), np.ones((2, 2)), [1.0, 2.0], (2,))
    layout = feature_layout_for(inputs_for(user, parse("LIN[x] + SE[z] + LIN[x]*LIN[z] + LIN[z]*PER[x]*SE[z]")))
    assert np.diff(layout.series_start).tolist() == [1, 2, 0, 0]
    assert np.diff(layout.linear_start).tolist() == [0, 1, 1, 2]
    assert layout.tensor
    assert layout.mixed


@pytest.mark.parametrize("text", ["SE[x]", "PER[x]", "LIN[x]*SE[x]", "PER[x]*SE[x]", "SE[x]*SE[z]"])
def test_ranks_fall_when_the_tolerance_is_loosened(text):
    rng = np.random.default_rng(0)
    user = User("ann", ("x", "z"), rng.uniform(-2, 2, (50, 2)), rng.standard_normal(50), (50,))
    inputs = inputs_for(user, parse(text))
    values = inputs.natural(np.zeros(inputs.layout.size))
    found = [
        int(expansion_of(inputs, feature_layout_for(inputs), values, tol).ranks()[0])
        for tol in (1e-10, 1e-8, 1e-6, 1e-4)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]
    assert int(expansion_of(inputs, feature_layout_for(inputs), values, 1e-8).ranks(3)[0]) == found[1] + 3


@pytest.mark.parametrize(("ell", "at_most"), [(0.05, 60), (0.1, 40), (0.37, 25), (1.0, 20)])
def test_ranks_on_a_unit_range_are_the_designs(ell, at_most):
    """53, 33, 19, 15 terms would do at 1e-8; ours is cut by what it costs in the evidence, so a little more."""
    user = User("ann", ("x",), np.linspace(0, 1, 100)[:, None], np.zeros(100), (100,))
    inputs = inputs_for(user, parse("SE[x]"))
    values = inputs.natural([0.0, np.log(ell), 0.0])
    assert int(expansion_of(inputs, feature_layout_for(inputs), values, 1e-6).ranks()[0]) <= at_most


def test_arrays_are_row_major_whatever_the_number_of_vectors():
    """Column-major ones would have the loops compiled a second time."""
    user = User("ann", ("x",), np.linspace(0, 1, 9)[:, None], np.zeros(9), (9,))
    inputs = inputs_for(user, parse("LIN[x] + PER[x] + SE[x] + LIN[x]*LIN[x]"))
    for samples in (1, 2, 64):
        expansion = expansion_of(
            inputs, feature_layout_for(inputs), inputs.natural(np.zeros((samples, inputs.layout.size))), 1e-8
        )
        for name in ("amplitude", "noise", "location", "omega", "count", "weights", "dlog_weights", "domega", "cutoff"):
            assert getattr(expansion, name).flags.c_contiguous, name

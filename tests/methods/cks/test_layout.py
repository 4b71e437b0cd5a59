"""Expressions with hyperparameters of their own: against multiplied-out compositions, loops and finite differences."""

import numpy as np
import pytest

from kerneltrail.data import Scaler, User
from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import Posterior, Reward, evidence
from kerneltrail.kernels import Hyperparameters, Priors, layout_of, parse
from kerneltrail.methods.cks import ExpressionParameters, expression_layout, read
from kerneltrail.methods.cks.candidate import Candidate, is_plain
from kerneltrail.methods.cks.evidence import CovarianceTree, ExpressionPosterior, Rows

NESTED = (
    "SE[x] + SE[x]",
    "PER[x]*(LIN[x] + SE[x])",
    "PER[x] + (LIN[x] + SE[x])*(LIN[x] + LIN[x]*PER[x])",
    "SE[x]*(SE[x] + PER[x]*(LIN[x] + SE[z]))",
)


def somebody(rows=25, *, action=False):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (rows, 2))
    y = np.sin(9.0 * X[:, 0]) + 0.3 * rng.standard_normal(rows)
    return User("ann", ("x", "z"), X, y, (rows,), action=rng.integers(0, 2, rows) if action else None)


def drawn(text, seed=0):
    layout = expression_layout(read(text))
    return ExpressionParameters(
        layout.expression, tuple(0.5 * np.random.default_rng(seed).standard_normal(layout.size))
    )


@pytest.mark.parametrize("text", NESTED)
def test_amplitudes_are_as_few_as_can_be_told_apart(text):
    layout = expression_layout(read(text))
    np.testing.assert_array_equal(layout.pull @ layout.carry, np.eye(len(layout.amplitudes)))
    assert (
        len(set(layout.names))
        == layout.size
        == 1 + len(layout.amplitudes) + sum(p.stop - p.start for p in layout.places)
    )
    # Every change of an amplitude changes the covariance in a way that no change of the others can undo.
    user, kernel = somebody(), drawn(text)
    tree = CovarianceTree(kernel.expression, user.covariates)
    slopes = []
    for place in layout.amplitudes:
        up = kernel.vector
        up[place] += 1e-4
        change = tree.cells(up, user.X, user.X).matrix - tree.cells(kernel.vector, user.X, user.X).matrix
        slopes.append((change / 1e-4).ravel())
    assert np.linalg.matrix_rank(np.array(slopes), tol=1e-3) == len(layout.amplitudes)


def test_a_nested_expression_is_its_composition_with_equal_hyperparameters():
    kernel = drawn("PER[x]*(LIN[x] + SE[x])")
    amplitude, lengthscale, period, location, relative, smooth, noise = kernel.unconstrained
    spread = parse("LIN[x]*PER[x] + PER[x]*SE[x]")
    same = Hyperparameters(
        spread,
        (amplitude, location, lengthscale, period, amplitude + relative, lengthscale, period, smooth, noise),
    )
    assert layout_of(spread).names[1:4] == (
        "LIN[x]*PER[x]: LIN[x].location",
        "LIN[x]*PER[x]: PER[x].lengthscale",
        "LIN[x]*PER[x]: PER[x].period",
    )
    user = somebody()
    expected = evidence(user, spread, same.unconstrained, method="dense").log[0, -1]
    np.testing.assert_allclose(
        Rows(user).log_evidence(CovarianceTree(kernel.expression, ("x", "z")), kernel.vector), expected
    )
    at = np.random.default_rng(1).uniform(0.0, 1.5, (6, 2))
    ours, theirs = ExpressionPosterior(Rows(user), kernel).predict(at), Posterior.fit(user, same).predict(at)
    np.testing.assert_allclose(ours.mean, theirs.mean)
    np.testing.assert_allclose(ours.total, theirs.total)


def test_two_smooth_parts_by_loops():
    kernel = drawn("SE[x] + SE[x]")
    a, short, b, long, _ = np.exp(kernel.unconstrained)
    x = somebody(5).X[:, 0]

    def smooth(size, length, gap):
        return size * np.exp(-0.5 * gap**2 / length**2)

    naive = [[smooth(a, short, s - t) + smooth(b, long, s - t) for t in x] for s in x]
    X = somebody(5).X
    np.testing.assert_allclose(CovarianceTree(kernel.expression, ("x", "z")).cells(kernel.vector, X, X).matrix, naive)
    np.testing.assert_allclose(
        CovarianceTree(kernel.expression, ("x", "z")).diagonal(kernel.vector, X), np.diagonal(naive)
    )


@pytest.mark.parametrize("text", NESTED)
@pytest.mark.parametrize("reward", [None, Reward()])
def test_gradients_by_differences(text, reward):
    user = somebody(action=True)
    block = None if reward is None else reward.block(user.X, user.covariates, user.action)
    rows, kernel = Rows(user, block), drawn(text)
    tree = CovarianceTree(kernel.expression, user.covariates)
    log, gradient = rows.slope(tree, kernel.vector)
    assert log == pytest.approx(rows.log_evidence(tree, kernel.vector), rel=1e-12)
    for i, step in enumerate(1e-5 * np.eye(len(gradient))):
        change = rows.log_evidence(tree, kernel.vector + step) - rows.log_evidence(tree, kernel.vector - step)
        assert gradient[i] == pytest.approx(change / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("text", [*NESTED, "LIN[x]", "LIN[x]*SE[z] + PER[x]"])
def test_data_units_are_the_same_kernel(text):
    scaler = Scaler.fit(
        [User("a", ("x", "z"), [[1900.0, -3.0], [1960.0, 5.0]], [100.0, 900.0], (2,))], target="standard"
    )
    kernel = drawn(text)
    raw = np.column_stack([np.linspace(1900.0, 1970.0, 7), np.linspace(-3.0, 9.0, 7)])
    tree = CovarianceTree(kernel.expression, ("x", "z"))
    scaled = tree.cells(kernel.vector, scaler.transform(raw), scaler.transform(raw)).matrix
    own = kernel.in_data_units(scaler)
    np.testing.assert_allclose(tree.cells(own.vector, raw, raw).matrix, scaled * scaler.scale**2, rtol=1e-9)
    assert own["noise"] == pytest.approx(kernel["noise"] * scaler.scale**2)


def test_plain_expressions_are_their_compositions():
    for text in ("SE[x]", "LIN[x] + PER[x]*SE[x] + SE[x]", "SE[x]*SE[z] + PER[x]"):
        layout = expression_layout(read(text))
        plain = layout_of(parse(text))
        assert is_plain(read(text))
        assert [slot.spec for slot in layout.slots] == [slot.spec for slot in plain.slots]
        for ours, theirs in zip(
            layout.moments(Priors.synthetic()), Priors.synthetic().moments(parse(text)), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    assert not any(is_plain(read(text)) for text in NESTED)


def test_relative_amplitudes_have_the_prior_of_a_ratio():
    layout = expression_layout(read("PER[x]*(LIN[x] + SE[x])"))
    mean, variance = layout.moments(Priors.synthetic())
    place = layout.names.index("SE[x].relative amplitude")
    assert (mean[place], variance[place]) == (0.0, 1.0)  # of two log-normals with variance ½ each
    assert (mean[0], variance[0]) == (1.0, 0.5)


def test_both_searches_find_the_same_optimum():
    user = somebody(40)
    quick = Candidate(Rows(user), Priors.heartsteps(), read("LIN[x] + SE[x]"))
    assert quick.quick is not None
    slow = Candidate(Rows(user), Priors.heartsteps(), read("LIN[x] + SE[x]"))
    slow.__dict__["quick"] = None
    start = quick.moments[0][None]
    np.testing.assert_allclose(quick.log_posteriors(start), slow.log_posteriors(start), rtol=1e-6)
    (one,), (two,) = quick.climb(start, 1e-9), slow.climb(start, 1e-9)
    assert one.log_posterior == pytest.approx(two.log_posterior, abs=1e-4)
    np.testing.assert_allclose(one.vector, two.vector, atol=1e-2)


def test_what_cannot_be_is_refused():
    with pytest.raises(KernelError, match="has 3 hyperparameters"):
        ExpressionParameters(read("SE[x]"), (0.0, 1.0))
    with pytest.raises(KernelError, match="noise alone"):
        ExpressionParameters(None, (np.nan,))
    with pytest.raises(KeyError):
        drawn("SE[x] + SE[x]")["SE[x]#3.lengthscale"]
    with pytest.raises(NumericalError, match="run away"):
        Rows(somebody()).log_evidence(CovarianceTree(read("SE[x]"), ("x", "z")), np.array([0.0, 400.0, 0.0]))

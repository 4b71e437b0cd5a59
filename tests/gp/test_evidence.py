"""The public function: choice of method, shapes, memory, blocks, new atoms, invariances."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.errors import KernelError
from kerneltrail.gp import LinearBlock, Reward, evidence, evidence_of, features, inputs_for, log_evidence, slope_of
from kerneltrail.kernels import Priors, layout_of, parse

from . import oracle
from .strategies import COVARIATES, METHODS, TEXTS, problems, seeds, true, user_of, vector


@settings(max_examples=40)
@given(problem=problems(rows=(1, 400), samples=3, where=["unit", "paper", "duplicates", "ordered"]))
def test_auto_is_dense(problem):
    auto = evidence_of(problem.inputs, problem.thetas)
    dense = evidence_of(problem.inputs, problem.thetas, method="dense")
    np.testing.assert_allclose(auto.log, dense.log, rtol=0, atol=problem.allowed(dense.log))
    assert auto.log.shape == (3, len(problem.user.ends))
    assert auto.rank.shape == (3,)


@settings(max_examples=20)
@given(problem=problems(rows=(1, 250), samples=2, where=["unit", "paper"]))
def test_auto_gradients_are_dense_gradients(problem):
    auto, dense = slope_of(problem.inputs, problem.thetas), slope_of(problem.inputs, problem.thetas, method="dense")
    np.testing.assert_allclose(auto.log, dense.log, rtol=0, atol=max(1e-8, problem.rounding))
    allowed = 1e-6 * np.maximum(1.0, np.abs(dense.gradient)) + problem.rounding
    assert (np.abs(auto.gradient - dense.gradient) <= allowed).all()


@settings(max_examples=20)
@given(problem=problems(rows=(1, 300), samples=1, rank=300, where=["unit", "paper"]))
def test_prefix_evidences_are_evidences_batch_by_batch_in_every_method(problem):
    for method in METHODS:
        together = evidence_of(problem.inputs, problem.thetas, method=method).log[0]
        alone = [
            evidence_of(problem.inputs.upto(e), problem.thetas, method=method).log[0, 0] for e in problem.user.ends
        ]
        np.testing.assert_allclose(together, alone, rtol=0, atol=problem.allowed(together))


def test_auto_picks_the_cheaper_method_for_each_vector():
    user = user_of(400)
    thetas = np.stack([vector("SE[x]", lengthscale=0.0), vector("SE[x]", lengthscale=-8.0)])
    found = evidence(user, parse("SE[x]"), thetas)
    assert found.method == ("spectral", "dense")
    assert found.rank[0] > 0 == found.rank[1]
    np.testing.assert_allclose(found.log, evidence(user, parse("SE[x]"), thetas, method="dense").log, atol=1e-8)
    slope = slope_of(inputs_for(user, parse("SE[x]")), thetas)
    assert (slope.rank > 0).tolist() == [True, False]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", TEXTS)
def test_one_vector_many_and_none(text, method):
    user = user_of(9, ends=(2, 9))
    composition, k = parse(text), layout_of(parse(text)).size
    thetas = Priors.synthetic().sample(composition, 3, np.random.default_rng(0)) + vector(text, lengthscale=0.7)
    many = evidence(user, composition, thetas, method=method)
    for s in range(3):
        one = evidence(user, composition, thetas[s], method=method)
        assert one.log.shape == (1, 2)
        np.testing.assert_allclose(one.log[0], many.log[s], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(log_evidence(user, composition, thetas[s], method=method), one.log)
    none = evidence(user, composition, np.empty((0, k)), method=method)
    assert none.log.shape == (0, 2)
    assert none.method == ()
    slope = slope_of(inputs_for(user, composition), np.empty((0, k)), method=method)
    assert slope.log.shape == (0,)
    assert slope.gradient.shape == (0, k)


def test_neither_rows_nor_vectors_are_touched():
    user, thetas = user_of(20), np.zeros((2, 6))
    thetas.setflags(write=False)
    for method in METHODS:
        evidence(user, parse("LIN[x] + PER[x]"), thetas, method=method)  # User's arrays are read-only as well


@pytest.mark.parametrize("method", METHODS)
def test_noise_alone(method):
    user = user_of(30, ends=(4, 30))
    theta = [0.3]
    noise = np.exp(0.3)
    expected = [-0.5 * (user.y[:n] @ user.y[:n] / noise + n * np.log(2 * np.pi * noise)) for n in (4, 30)]
    np.testing.assert_allclose(evidence(user, parse(""), theta, method=method).log[0], expected, atol=1e-11)
    slope = slope_of(inputs_for(user, parse("")), theta, method=method)
    assert slope.gradient[0, 0] == pytest.approx(0.5 * (user.y @ user.y / noise - 30), abs=1e-11)
    block = LinearBlock(np.ones((30, 1)), np.eye(1) * 5.0, ("constant",))
    found = evidence(user, parse(""), theta, method=method, block=block).log[0]
    np.testing.assert_allclose(found, true(user, "", theta, block), atol=1e-10)


@pytest.mark.parametrize("text", ["PER[x] + SE[z]", "LIN[x]*PER[x]", "PER[x]*SE[z]"])
@pytest.mark.parametrize("method", ["auto", "spectral"])
def test_many_vectors_need_no_more_memory_and_give_the_same_bits(text, method, monkeypatch):
    """One short lengthscale makes the series of all vectors long."""
    composition, rng = parse(text), np.random.default_rng(0)
    thetas = Priors.synthetic().sample(composition, 400, rng)
    lengths = [slot.spec.name == "lengthscale" for slot in layout_of(composition).slots]
    thetas[:, lengths] = rng.uniform(-0.5, 1.0, (400, sum(lengths)))
    thetas[123, lengths] = -4.5 if "*SE" not in text else -1.0
    inputs = inputs_for(user_of(210, ends=(20, 210)), composition)

    def run(limit, vectors=thetas):
        monkeypatch.setattr(features, "TEMPORARIES", limit)
        tracemalloc.start()
        log = evidence_of(inputs, vectors, method=method).log
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return log, slope_of(inputs, thetas[100:140], method=method), peak

    whole, slope, large = run(1 << 28)
    parts, slope_parts, small = run(1 << 17)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(slope_parts.log, slope.log)
    np.testing.assert_array_equal(slope_parts.gradient, slope.gradient)
    alone = run(1 << 17, thetas[123:124])[2]  # the rows of features of one vector, however many there are
    assert small < large
    assert small - alone < 0.8 * (large - alone)


def test_unknown_methods_and_tolerances_are_refused():
    user = user_of(4)
    with pytest.raises(KernelError, match="unknown method 'fast'; known are auto, dense, spectral"):
        evidence(user, parse("SE[x]"), np.zeros(3), method="fast")
    for tol in (0.0, -1e-8, 1.0, np.nan):
        with pytest.raises(KernelError, match="tolerance"):
            evidence(user, parse("SE[x]"), np.zeros(3), tol=tol)


def test_a_singular_prior_of_the_block_is_fine_in_every_method():
    user = user_of(30, ends=(1, 2, 30))
    block = LinearBlock(np.column_stack([np.ones(30), user.X]), np.diag([4.0, 0.0, 1.0]), ("one", "x", "z"))
    theta = vector("SE[x]", lengthscale=0.5)
    for method in METHODS:
        found = evidence(user, parse("SE[x]"), theta, method=method, block=block)
        np.testing.assert_allclose(found.log[0], true(user, "SE[x]", theta, block), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_reward_block_is_its_covariance(method):
    rng = np.random.default_rng(0)
    user = User("ann", COVARIATES, rng.uniform(0, 1, (50, 3)), rng.standard_normal(50), (1, 3, 20, 50))
    block = Reward(("steps", "temp")).block(user.X, COVARIATES, rng.integers(0, 2, 50))
    theta = Priors.heartsteps().sample(parse("LIN[steps] + PER[hour]"), 1, rng)
    found = evidence(user, parse("LIN[steps] + PER[hour]"), theta, method=method, block=block)
    np.testing.assert_allclose(
        found.log, [oracle.precise(user, parse("LIN[steps] + PER[hour]"), theta[0], block).astype(float)], atol=1e-9
    )
    inputs = inputs_for(user, parse("LIN[steps] + PER[hour]"), block=block)
    expected = oracle.precise_gradient(user, parse("LIN[steps] + PER[hour]"), theta[0], block)
    np.testing.assert_allclose(slope_of(inputs, theta, method=method).gradient[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("new_atoms")
@pytest.mark.parametrize("text", ["RQ[x]", "MATERN52[x]", "LIN[x]*RQ[x] + SE[z]", "MATERN52[x]*PER[x] + RQ[z]*RQ[z]"])
def test_new_atoms_have_evidence_and_gradient_with_no_other_change(text):
    user = user_of(30, ends=(5, 30))
    theta = Priors.synthetic().sample(parse(text), 2, np.random.default_rng(0))
    found = evidence(user, parse(text), theta)
    assert found.method == ("dense", "dense")
    np.testing.assert_allclose(found.log, [true(user, text, one) for one in theta], rtol=1e-9)
    np.testing.assert_allclose(found.log, oracle.log_evidence(user, parse(text), theta), rtol=1e-9)
    slope = slope_of(inputs_for(user, parse(text)), theta)
    for s in range(2):
        expected = oracle.precise_gradient(user, parse(text), theta[s])
        np.testing.assert_allclose(slope.gradient[s], expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(KernelError, match="has an atom without a spectral form: use method 'dense' or 'auto'") as error:
        evidence(user, parse(text), theta, method="spectral")
    assert str(parse(text)) in str(error.value)


@settings(max_examples=25)
@given(problem=problems(rows=(1, 60), samples=1, rank=300, where=["unit", "paper"]), seed=seeds)
def test_the_order_of_columns_does_not_matter(problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.user.covariates))
    names = [problem.user.covariates[i] for i in order]
    turned = problem.user.with_X(problem.user.X[:, order], names)
    for method in METHODS:
        one, other = (
            evidence(u, problem.composition, problem.thetas, method=method, block=problem.block).log
            for u in (problem.user, turned)
        )
        np.testing.assert_array_equal(one, other)


@settings(max_examples=25)
@given(
    problem=problems(rows=(2, 100), samples=1, rank=300, blocks=False, where=["unit", "paper", "ordered"]), seed=seeds
)
def test_the_order_of_rows_within_the_last_batch_does_not_matter(problem, seed):
    user = problem.user
    start = user.ends[-2] if len(user.ends) > 1 else 0
    order = np.r_[:start, start + np.random.default_rng(seed).permutation(user.rows - start)]
    turned = user.with_X(user.X[order]).with_y(user.y[order])
    for method in METHODS:
        one, other = (evidence(u, problem.composition, problem.thetas, method=method).log for u in (user, turned))
        np.testing.assert_allclose(one, other, rtol=0, atol=max(1e-9, problem.rounding))


@settings(max_examples=25)
@given(
    problem=problems(rows=(1, 60), samples=1, rank=300, blocks=False, where=["unit", "paper"]), log_c=st.floats(-14, 14)
)
def test_scaling_the_target_shifts_the_log_evidence(problem, log_c):
    """y → cy with amplitudes and noise × c² is a change of units: -n log c. c up to 1e6."""
    layout = problem.inputs.layout
    thetas = problem.thetas.copy()
    thetas[:, [*layout.amplitude_index, -1]] += 2.0 * log_c
    scaled = problem.user.with_y(np.exp(log_c) * problem.user.y)
    for method in METHODS:
        one = evidence(problem.user, problem.composition, problem.thetas, method=method).log[0]
        other = evidence(scaled, problem.composition, thetas, method=method).log[0]
        np.testing.assert_allclose(
            other, one - log_c * np.array(problem.user.ends), rtol=0, atol=max(1e-8, problem.rounding)
        )


@settings(max_examples=25)
@given(
    problem=problems(rows=(1, 60), samples=1, rank=300, kinds=("PER", "SE"), blocks=False, where=["unit", "paper"]),
    shift=st.integers(-1024, 1024),
)
def test_shifting_covariates_does_not_matter_to_stationary_kernels(problem, shift):
    X = np.round(problem.user.X * 2**20) / 2**20  # so that shifting rounds nothing
    here, there = problem.user.with_X(X), problem.user.with_X(X + shift)
    for method in METHODS:
        one, other = (evidence(u, problem.composition, problem.thetas, method=method).log for u in (here, there))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 if method == "spectral" else 1e-7)


def test_evidence_is_a_density():
    """exp(log evidence) of one row integrates to one over y; by quadrature, no chance involved."""
    grid = np.linspace(-60, 60, 4001)
    theta = vector("LIN[x] + PER[x]")
    values = [evidence(user_of(X=[[0.3, 0.1]], y=[y]), parse("LIN[x] + PER[x]"), theta).log[0, 0] for y in grid]
    assert np.trapezoid(np.exp(values), grid) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("text", ["LIN[x] + PER[x]", "SE[x]"])
def test_the_truth_has_the_largest_evidence_on_average(text):
    """E[log p(y|θ₀) - log p(y|θ)] > 0 (Gibbs); and the score has mean zero.

    400 users from a fixed seed; each of up to 6 scores within 4 standard errors: false alarms 4e-4 over seeds.
    """
    rng = np.random.default_rng(7)
    composition = parse(text)
    theta = vector(text, noise=-1.0)
    base = user_of(40, seed=5)
    K = oracle.precise_covariance(base, composition, theta).astype(float)
    root = np.linalg.cholesky(K)
    scores, gains = [], []
    other = theta + 0.4
    for _ in range(400):
        inputs = inputs_for(base.with_y(root @ rng.standard_normal(40)), composition)
        slope = slope_of(inputs, np.stack([theta, other]))
        scores.append(slope.gradient[0])
        gains.append(slope.log[0] - slope.log[1])
    scores = np.array(scores)
    assert (np.abs(scores.mean(axis=0)) < 4 * scores.std(axis=0) / 20).all()
    assert np.mean(gains) > 4 * np.std(gains) / 20

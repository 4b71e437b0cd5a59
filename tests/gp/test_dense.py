"""The dense method against the double loop, and its gradient against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import dense, evidence, evidence_of, inputs_for, slope_of
from kerneltrail.gp.numerics import factorise
from kerneltrail.kernels import Composition, layout_of, parse

from . import oracle
from .strategies import problems, seeds


@settings(max_examples=60)
@given(problem=problems(rows=(1, 12)))
def test_covariance_is_the_double_loop(problem):
    inputs = problem.inputs
    for theta, values in zip(problem.thetas, inputs.natural(problem.thetas), strict=True):
        expected = oracle.covariance(problem.user, problem.composition, theta, problem.block)
        # PER far from zero: sines of large angles lose digits, π·1e3/p of them times the slope 4/ℓ².
        np.testing.assert_allclose(dense.covariance(inputs, values), expected, rtol=1e-9, atol=1e-10 * expected.max())
        total = sum(dense.product_diagonal(inputs, p, values, inputs.X) for p in range(len(problem.composition)))
        both = sum(dense.product_covariance(inputs, p, values, inputs.X) for p in range(len(problem.composition)))
        np.testing.assert_allclose(total, np.diag(both), rtol=1e-10, atol=1e-12 * expected.max())


@settings(max_examples=60)
@given(problem=problems(rows=(1, 12), where=["unit", "paper", "duplicates", "ordered"]))
def test_log_evidence_is_the_oracles_to_1e_9(problem):
    """Every batch from its own matrix, determinant and solve: so this is the prefix property as well."""
    found = evidence_of(problem.inputs, problem.thetas, method="dense")
    expected = oracle.log_evidence(problem.user, problem.composition, problem.thetas, problem.block)
    np.testing.assert_allclose(found.log, expected, rtol=1e-9, atol=1e-9)
    assert found.method == ("dense", "dense")


@settings(max_examples=15)
@given(problem=problems(rows=(1, 12), where=["wide", "offset"]))
def test_log_evidence_far_out_is_the_precise_one_to_rounding(problem):
    found = evidence_of(problem.inputs, problem.thetas, method="dense")
    for s, theta in enumerate(problem.thetas):
        if problem.signal_to_noise < 1e12:
            expected = oracle.precise(problem.user, problem.composition, theta, problem.block).astype(float)
            np.testing.assert_allclose(found.log[s], expected, rtol=1e-9, atol=1e-8 + problem.rounding)


@settings(max_examples=25)
@given(problem=problems(rows=(1, 300), samples=1))
def test_prefix_evidences_are_evidences_batch_by_batch(problem):
    together = evidence_of(problem.inputs, problem.thetas, method="dense")
    for t, end in enumerate(problem.user.ends):
        alone = evidence_of(problem.inputs.upto(end), problem.thetas, method="dense")
        np.testing.assert_allclose(together.log[:, t], alone.log[:, 0], rtol=1e-11, atol=1e-9 + problem.rounding)


@settings(max_examples=40)
@given(problem=problems(rows=(1, 40), samples=1, where=["unit", "paper", "duplicates"]))
def test_gradient_is_a_finite_difference(problem):
    found = slope_of(problem.inputs, problem.thetas, method="dense")
    expected = oracle.precise_gradient(problem.user, problem.composition, problem.thetas[0], problem.block)
    np.testing.assert_array_less(np.abs(found.gradient[0] - expected) / np.maximum(1.0, np.abs(expected)), 1e-5)
    value = oracle.precise(problem.user, problem.composition, problem.thetas[0], problem.block)[-1]
    assert found.log[0] == pytest.approx(float(value), rel=1e-9, abs=1e-9)


EXPRESSIONS = st.recursive(
    st.builds(
        lambda kind, covariate: (kind, covariate), st.sampled_from(["LIN", "PER", "SE"]), st.sampled_from(["x", "z"])
    ),
    lambda inner: st.builds(
        lambda sign, parts: (sign, parts), st.sampled_from("+*"), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=6,
)
VALUES = {"LIN": [0.3], "PER": [1.2, 0.8], "SE": [0.9]}


def nested(expression, root=True):
    if isinstance(expression[1], str):
        leaf = (expression[0], expression[1], VALUES[expression[0]])
        return oracle.Nested("+", leaf) if root else leaf
    return oracle.Nested(expression[0], *(nested(part, False) for part in expression[1]))


@settings(max_examples=60)
@given(expression=EXPRESSIONS, seed=seeds)
def test_multiplied_out_compositions_are_the_nested_expression(expression, seed):
    """Each kind has one set of values, so SE×SE is an SE of shorter lengthscale, and a term may stand several times."""
    tree = nested(expression)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (6, 2))
    covariates = ("x", "z")
    terms = multiplied_out(expression)
    composition = tree.composition(lambda kind, covariate: parse(f"{kind}[{covariate}]"))
    texts = {str(product): product for product in composition}
    total = np.zeros((6, 6))
    user = User("ann", covariates, X, np.zeros(6), (6,))
    for text, groups in group(terms).items():
        assert text in texts
        for squares in groups:  # how often each SE stands in the term
            one = Composition((texts[text],))
            theta = theta_of(one, squares)
            values = inputs_for(user, one).natural(theta)[0]
            total += dense.product_covariance(inputs_for(user, one), 0, values, X)
    assert set(group(terms)) == set(texts)
    expected = [[tree.at(a, b, covariates) for b in X] for a in X]
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-11)


def multiplied_out(expression):
    """Terms, each a sorted tuple of (kind, covariate)."""
    if isinstance(expression[1], str):
        return [(expression,)]
    parts = [multiplied_out(part) for part in expression[1]]
    if expression[0] == "+":
        return [term for part in parts for term in part]
    terms = [()]
    for part in parts:
        terms = [a + b for a in terms for b in part]
    return terms


def group(terms):
    """By text of the merged product: for each term, how often each SE stands in it."""
    found = {}
    for term in terms:
        squares = {covariate: term.count(("SE", covariate)) for _, covariate in term}
        atoms = sorted(a for i, a in enumerate(sorted(term)) if a[0] != "SE" or sorted(term).index(a) == i)
        found.setdefault("*".join(f"{kind}[{covariate}]" for kind, covariate in atoms), []).append(squares)
    return found


def theta_of(composition, squares):
    theta = []
    for slot in layout_of(composition).slots:
        if slot.atom < 0:
            theta.append(0.0)
            continue
        kind = composition.products[slot.product].atoms[slot.atom].kind
        if kind == "LIN":
            theta.append(VALUES["LIN"][0])
        elif kind == "SE":
            theta.append(np.log(VALUES["SE"][0] / np.sqrt(squares[slot.covariate])))
        else:
            theta.append(np.log(VALUES["PER"][0 if slot.spec.name == "lengthscale" else 1]))
    return theta


def test_scikit_learn_agrees():
    from sklearn.gaussian_process import GaussianProcessRegressor

    from kerneltrail.adapters.sklearn import to_sklearn
    from kerneltrail.kernels import Hyperparameters, Priors

    rng = np.random.default_rng(0)
    n = 60
    for texts, covariates in (
        (["LIN[x] + PER[x]", "SE[x]", "PER[x]*SE[x]", "LIN[x]*LIN[x] + LIN[x]*PER[x]"], ("x",)),
        (["SE[x]*SE[z]", "LIN[z] + PER[x]*SE[z]", "PER[x]*PER[z]"], ("x", "z")),
    ):
        user = User("ann", covariates, rng.uniform(-2, 2, (n, len(covariates))), rng.standard_normal(n), (n,))
        for text in texts:
            composition = parse(text)
            theta = Priors.synthetic().sample(composition, 1, rng)[0]
            theirs = to_sklearn(Hyperparameters(composition, tuple(theta)), covariates)
            fitted = GaussianProcessRegressor(theirs, optimizer=None, alpha=0.0).fit(user.X, user.y)
            for method in ("dense", "spectral", "auto"):
                ours = evidence(user, composition, theta, method=method).log[0, 0]
                assert ours == pytest.approx(fitted.log_marginal_likelihood_value_, abs=1e-8), (text, method)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_a_gradient_is_contracted_with(n):
    root = np.random.default_rng(0).standard_normal((n, n + 2))
    matrix, alpha = root @ root.T + 0.1 * np.eye(n), np.random.default_rng(2).standard_normal(n)
    expected = np.outer(alpha, alpha) - np.linalg.inv(matrix)
    np.testing.assert_allclose(dense.outer_minus_inverse(factorise(matrix), alpha), expected, atol=1e-11)


def test_a_zero_on_the_diagonal_of_a_factor_is_told():
    with pytest.raises(NumericalError, match="zero on its diagonal"):
        dense.outer_minus_inverse(np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))

"""Partial effects, against the joint Gaussian of rows and averages written out with plain covariances."""

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.gp import OnlineState, Posterior, Reward, prior_only
from kerneltrail.gp.partial import partial_effect
from kerneltrail.kernels import Hyperparameters, Priors, parse

from . import oracle

NAMES = ("a", "b", "c")


def case(text, n=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 3))
    user = User("ann", NAMES, X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n), (n,))
    composition = parse(text)
    theta = Priors.standardised().sample(composition, 1, rng)[0]
    return user, Hyperparameters(composition, tuple(theta)), rng.uniform(0, 1, (7, 3)), rng


def joint(user, hyperparameters, products, names, points, rows):
    """Every f_p at every (point, row) beside the targets, one joint Gaussian, conditioned and averaged by matrices."""
    columns = [NAMES.index(name) for name in names]
    grid = np.repeat(rows[None], len(points), axis=0)
    grid[:, :, columns] = points[:, None, :]
    flat = grid.reshape(-1, 3)
    K = oracle.covariance(user, hyperparameters.composition, hyperparameters.unconstrained)
    part = lambda X, Z: sum(oracle.product_covariance(NAMES, hyperparameters, p, X, Z) for p in products)  # noqa: E731
    A = np.kron(np.eye(len(points)), np.full((1, len(rows)), 1.0 / len(rows)))
    cross = part(user.X, flat) @ A.T
    return cross.T @ np.linalg.solve(K, user.y), A @ part(flat, flat) @ A.T - cross.T @ np.linalg.solve(K, cross)


TEXTS = ["LIN[a] + SE[a] + SE[b]", "SE[a]*LIN[b] + SE[c]", "PER[a]*SE[b]*SE[c] + LIN[a]"]


@pytest.mark.parametrize(
    ("text", "names"), [*((text, ("a",)) for text in TEXTS), *((t, ("a", "b")) for t in TEXTS[1:])]
)
def test_an_effect_is_that_of_the_joint_gaussian(text, names):
    user, h, rows, rng = case(text)
    products = [p for p, product in enumerate(h.composition) if set(names) <= set(product.covariates)]
    points = rng.uniform(0, 1, (5, len(names)))
    mean, covariance = partial_effect(Posterior.fit(user, h), products, names, points, rows)
    expected = joint(user, h, products, names, points, rows)
    np.testing.assert_allclose(mean, expected[0], atol=1e-9)
    np.testing.assert_allclose(covariance, expected[1], atol=1e-9)


@pytest.mark.parametrize("text", TEXTS[:2])
def test_sums_in_place_of_rows_give_the_same_effect(text):
    user, h, rows, rng = case(text)
    products = [p for p, product in enumerate(h.composition) if "a" in product.covariates]
    points = rng.uniform(0, 1, (5, 1))
    state = OnlineState.start(h, NAMES, low=0.0, high=1.0, tol=1e-10).update(user.X, user.y)
    dense = partial_effect(Posterior.fit(user, h), products, ["a"], points, rows)
    online = partial_effect(state, products, ["a"], points, rows)
    np.testing.assert_allclose(online[0], dense[0], atol=1e-5)
    np.testing.assert_allclose(online[1], dense[1], atol=1e-5)


def test_a_linear_block_is_no_part_of_an_effect():
    user, h, rows, rng = case(TEXTS[0])
    reward = Reward.constant(2.0)
    points = rng.uniform(0, 1, (5, 1))
    block = reward.block(user.X, NAMES, None)
    dense = partial_effect(Posterior.fit(user, h, block=block), [0, 1], ["a"], points, rows)
    start = OnlineState.start(h, NAMES, low=0.0, high=1.0, tol=1e-10, linear=block.covariance)
    online = partial_effect(start.update(user.X, user.y, linear=block.features), [0, 1], ["a"], points, rows)
    np.testing.assert_allclose(online[0], dense[0], atol=1e-5)
    np.testing.assert_allclose(online[1], dense[1], atol=1e-5)


def test_before_any_row_an_effect_is_the_priors():
    _, h, rows, rng = case(TEXTS[1])
    points = rng.uniform(0, 1, (5, 1))
    mean, covariance = partial_effect(prior_only(h, NAMES), [0], ["a"], points, rows)
    np.testing.assert_array_equal(mean, 0.0)
    values = np.linalg.eigvalsh(covariance)
    assert values.min() > -1e-10


@pytest.mark.parametrize("text", TEXTS)
def test_noise_that_is_alike_in_neighbouring_rows_makes_an_effect_vary_more(text):
    """Method (79), with the weights of the rows from effects of each row's target alone."""
    user, h, rows, rng = case(text)
    products = [p for p, product in enumerate(h.composition) if "a" in product.covariates]
    points, noise = rng.uniform(0, 1, (5, 1)), h.values_array[-1]
    plain = partial_effect(Posterior.fit(user, h), products, ["a"], points, rows)
    mean, covariance = partial_effect(Posterior.fit(user, h), products, ["a"], points, rows, echo=0.6)
    weights = np.column_stack(
        [joint(user.with_y(unit), h, products, ["a"], points, rows)[0] for unit in np.eye(user.rows)]
    )
    expected = plain[1].copy()
    for i in range(user.rows):
        for j in range(user.rows):
            if i != j:
                expected += noise * 0.6 ** abs(i - j) * np.outer(weights[:, i], weights[:, j])
    np.testing.assert_array_equal(mean, plain[0])
    np.testing.assert_allclose(covariance, expected, atol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("text", TEXTS[:2])
def test_sums_of_rows_that_are_all_known_allow_for_an_echo_as_rows_do(text, linear):
    user, h, _, rng = case(text)
    products = [p for p, product in enumerate(h.composition) if "a" in product.covariates]
    points, features = rng.uniform(0, 1, (5, 1)), rng.standard_normal((5, 1)) if linear else None
    block = Reward.constant(2.0).block(user.X, NAMES, None) if linear else None
    start = OnlineState.start(
        h, NAMES, low=0.0, high=1.0, tol=1e-10, linear=None if block is None else block.covariance
    )
    given = None if block is None else block.features
    online = start.update(user.X, user.y, linear=given)
    args = (products, ["a"], points, user.X, features, 0.6)
    dense = partial_effect(Posterior.fit(user, h, block=block), *args)
    np.testing.assert_allclose(partial_effect(online, *args, given)[1], dense[1], atol=1e-5)
    before = partial_effect(online, products, ["a"], points, user.X, features)
    assert np.abs(before[1] - dense[1]).max() > 1e-4


def test_rows_before_the_newest_ones_echo_as_those_do():
    """Four times the same rows: the newest quarter tells of all."""
    user, h, _, rng = case(TEXTS[0])
    points = rng.uniform(0, 1, (5, 1))
    X, y = np.tile(user.X, (4, 1)), np.tile(user.y, 4)
    online = OnlineState.start(h, NAMES, low=0.0, high=1.0, tol=1e-10).update(X, y)
    whole = partial_effect(online, [0], ["a"], points, X, None, 0.6)[1]
    newest = partial_effect(online, [0], ["a"], points, user.X, None, 0.6)[1]
    assert np.linalg.eigvalsh(newest).min() > -1e-9
    np.testing.assert_allclose(newest, whole, rtol=0.15, atol=0.05 * float(whole.max()))

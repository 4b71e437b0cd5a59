"""The shape of outcomes learnt: against a general optimiser, and against shapes that are known."""

import numpy as np
import pytest
from scipy import optimize, special

from kerneltrail.gp.bell import Bell
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.gp.outcome_shape_search import (
    PENALTY,
    Predicted,
    _left_out,
    _Rows,
    _size,
    _start,
    _weighted,
    _weights,
    learn_shape,
)

TRUTH = OutcomeShape(
    (0.1, 1.5, 2.9, 4.3, 5.8), (2.9, -3.0, 1.3, 2.0, 0.7, -4.0), (-0.7, None, None, None, None, None), length=1.6
)


def bells(count, rows, rng, heavy=np.inf):
    mean = 3.0 + rng.standard_normal(count)[:, None] + rng.standard_normal((count, rows))
    return [Bell(each, np.full(rows, 2.0), np.full(rows, heavy)) for each in mean]


def shaped(count, rows, seed=0):
    """Users whose outcomes have a known shape: those in the stretch of zeros are exactly that."""
    rng = np.random.default_rng(seed)
    users = []
    for bell in bells(count, rows, rng):
        users.append(Predicted(bell, TRUTH.draws(bell, 1, rng)[0]))
    return users


def unshaped(count, rows, seed=0, heavy=np.inf):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal if np.isinf(heavy) else lambda size: rng.standard_t(heavy, size)
    return [Predicted(bell, bell.mean + bell.scale * noise(rows)) for bell in bells(count, rows, rng, heavy)]


def test_weights_are_those_of_a_general_optimiser():
    users = shaped(8, 30)
    y = np.concatenate([user.y for user in users])
    bell = Bell(*map(np.concatenate, zip(*(user.bell for user in users), strict=True)))
    rows = _Rows.of(_start(y), bell, y)

    def loss(weights):
        total = special.logsumexp(rows.log + weights, axis=1)
        return float(np.sum(total - weights[rows.place]) + 0.5 * PENALTY * weights @ weights)

    expected = optimize.minimize(loss, np.zeros(rows.log.shape[1]), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(_weights(rows), expected.x, atol=1e-4)


def test_weights_are_found_from_few_rows_far_out():
    """Newton's first step would be far too long: all outcomes where hardly any was predicted."""
    bell = Bell(np.zeros(50), np.full(50, 0.1), np.full(50, np.inf))
    shape = OutcomeShape((1.0, 2.0, 3.0), (0.0,) * 4, (None,) * 4)
    rows = _Rows.of(shape, bell, np.full(50, 5.0))
    weights = _weights(rows)
    shares = special.softmax(rows.log + weights, axis=1).sum(axis=0)
    np.testing.assert_allclose(np.bincount(rows.place, minlength=4) - shares - PENALTY * weights, 0.0, atol=1e-5)


def test_a_shape_that_is_there_is_found():
    users = shaped(20, 100)
    found = learn_shape(users)
    assert found is not None
    assert found.floor == -0.7
    assert found.ceiling is None
    fresh = shaped(20, 100, seed=1)
    gap, plain = ([], [])
    for user in fresh:
        gap.append(TRUTH.log_density(user.bell, user.y) - found.log_density(user.bell, user.y))
        plain.append(TRUTH.log_density(user.bell, user.y) - user.bell.log_density(user.y))
    assert np.mean(plain) > 0.4
    assert abs(np.mean(gap)) < 0.15  # stretches are not where the truth has them
    ends = [(user.y, *found.interval(user.bell, 0.9)) for user in fresh]
    assert 0.87 <= np.mean([np.mean((low <= y) & (y <= high)) for y, low, high in ends]) <= 0.95


@pytest.mark.parametrize("heavy", [np.inf, 4.0])
def test_outcomes_that_are_the_bell_have_no_shape(heavy):
    """Twenty sets of users whose outcomes are as predicted: none may have a shape (the rule asks for two standard
    errors and a hundredth of a nat of users who were left out, which is rarer than one in a thousand)."""
    assert [learn_shape(unshaped(10, 40, seed, heavy)) for seed in range(20)] == [None] * 20


def test_predictions_that_are_too_narrow_are_widened_with_the_shape():
    users = [Predicted(user.bell.wider(0.7), user.y) for user in shaped(20, 60)]
    found = learn_shape(users)
    assert found is not None
    assert found.width > 1.2


def test_users_who_are_left_out_say_nothing_of_their_own_weights():
    users = shaped(5, 30)
    y = np.concatenate([user.y for user in users])
    bell = Bell(*map(np.concatenate, zip(*(user.bell for user in users), strict=True)))
    groups = np.repeat(np.arange(5), 30)
    start = _start(y)
    moved = y.copy()
    moved[:30] = -0.7
    rest = Bell(*(part[30:] for part in bell))
    shape = _weighted(start, _Rows.of(start, rest, y[30:]))
    first = Bell(*(part[:30] for part in bell))
    for each in (y, moved):
        found = _left_out(start, bell, each, groups)
        np.testing.assert_allclose(found[:30], shape.log_density(first, each[:30]), rtol=1e-9)


def test_the_ends_of_the_outcomes_have_stretches_without_others():
    inner = np.random.default_rng(0).uniform(0.01, 9.9, 60)
    shape = _start(np.concatenate([np.zeros(40), inner, np.full(20, 10.0)]))
    assert shape.points[0] == 0.0
    assert shape.points[-1] == 10.0
    assert set(shape.points[1:-1]) == {None}
    assert 0.0 < shape.edges[0] < inner.min()
    assert inner.max() < shape.edges[-1] < 10.0


def test_few_values_are_a_rating_and_each_has_a_stretch():
    rng = np.random.default_rng(0)
    shape = _start(rng.integers(1, 8, 200).astype(float))
    assert shape.points == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    assert shape.edges == (1.5, 2.5, 3.5, 4.5, 5.5, 6.5)
    assert None in _start(rng.normal(size=15)).points  # few rows are no rating
    assert None in _start(np.repeat([0.0, 1e-4, 1.0], 50)).points  # nor are values next to each other


def test_a_rating_is_learnt_and_its_intervals_end_with_values():
    rng = np.random.default_rng(2)
    users = [
        Predicted(bell, np.clip(np.round(bell.mean + bell.scale * rng.standard_normal(60)), 1.0, 5.0))
        for bell in bells(15, 60, rng)
    ]
    found = learn_shape(users)
    assert found is not None
    assert found.points == (1.0, 2.0, 3.0, 4.0, 5.0)
    held, stated = [], []
    for user in users:
        low, high = found.interval(user.bell, 0.9)
        assert set(low) | set(high) <= set(found.points)
        held.append(np.mean((low <= user.y) & (user.y <= high)))
        stated.append(np.mean(found.held(user.bell, 0.9)))
    assert np.mean(held) == pytest.approx(np.mean(stated), abs=0.02)
    assert np.mean(stated) >= 0.9


def test_a_rating_of_many_values_has_its_values_though_a_bell_is_as_dense():
    rng = np.random.default_rng(5)
    users = [
        Predicted(bell, np.clip(np.round(bell.mean + 2.0 * rng.standard_normal(60)), -9.0, 15.0))
        for bell in bells(15, 60, rng)
    ]
    found = learn_shape([Predicted(user.bell, np.clip(user.y, -3.0, 9.0)) for user in users])
    assert found is not None
    assert None not in found.points


@pytest.mark.parametrize("factor", [0.7, 0.85, 1.4])
def test_predictions_that_are_only_too_wide_or_too_narrow_have_no_shape(factor):
    """Ten sets of Normal outcomes: that is a matter of the width alone."""
    every = [[Predicted(u.bell.wider(factor), u.y) for u in unshaped(10, 40, seed)] for seed in range(10)]
    assert sum(learn_shape(users) is not None for users in every) == 0


@pytest.mark.parametrize("value", [0.1, 37.2, 1e6 + 0.1, 0.0, -0.7])
def test_outcomes_that_are_one_and_the_same_have_no_shape(value):
    assert learn_shape([Predicted(user.bell, np.full(50, value)) for user in shaped(5, 50)]) is None


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_the_unit_does_not_matter(scale):
    one = learn_shape(shaped(8, 40))
    other = learn_shape(
        [Predicted(Bell(u.bell.mean * scale, u.bell.scale * scale, u.bell.freedom), u.y * scale) for u in shaped(8, 40)]
    )
    np.testing.assert_allclose(np.array(other.edges) / scale, one.edges)
    np.testing.assert_allclose(other.log_weights, one.log_weights, atol=1e-5)


@pytest.mark.parametrize("users", [[], shaped(2, 50), [Predicted(user.bell, np.ones(50)) for user in shaped(5, 50)]])
def test_few_users_and_constant_outcomes_have_no_shape(users):
    assert learn_shape(users) is None


def test_a_user_without_rows_changes_nothing():
    nobody = Predicted(Bell(np.zeros(0), np.zeros(0), np.zeros(0)), np.zeros(0))
    users = shaped(6, 40)
    assert learn_shape([*users, nobody]) == learn_shape(users)


def minutes(count, rows, seed=0):
    """Minutes of which a quarter are zero and some are hundreds; the bell is heavy-tailed and reaches far below 0."""
    rng = np.random.default_rng(seed)
    users = []
    for _ in range(count):
        y = np.round(np.exp(3.2 + 0.4 * rng.standard_normal() + 0.55 * rng.standard_t(3.0, rows)))
        y = np.where(rng.uniform(size=rows) < 0.25, 0.0, np.minimum(y, 900.0))
        users.append(Predicted(Bell(np.full(rows, np.median(y)), np.full(rows, 25.0), np.full(rows, 3.0)), y))
    return users


@pytest.mark.parametrize("seed", range(4))
def test_zeros_are_found_though_some_outcomes_are_far_out(seed):
    """Those few made the standard deviation, and so the stretch of the zeros, as long as the bell is wide."""
    users = minutes(20, 60, seed)
    shape = learn_shape(users)
    assert shape is not None
    assert shape.floor == 0.0
    low, _ = shape.interval(users[0].bell, 0.9)
    assert low.min() >= 0.0
    y = np.concatenate([user.y for user in users])
    said = np.concatenate([shape.below(user.bell, np.zeros(len(user.y)))[1] for user in users])
    assert said.mean() == pytest.approx((y == 0.0).mean(), abs=0.03)


def test_the_size_of_outcomes_is_their_standard_deviation_but_for_a_few_far_out():
    rng = np.random.default_rng(2)
    for values in (
        rng.normal(3.0, 2.0, 5000),
        rng.uniform(size=5000),
        np.where(rng.uniform(size=5000) < 0.3, -1.0, 4.0),
    ):
        assert _size(values) == values.std()
    far = np.r_[rng.normal(0.0, 2.0, 5000), np.full(25, 200.0)]
    assert far.std() > 10.0
    assert _size(far) == pytest.approx(2.5, rel=0.05)
    assert _size(np.r_[np.zeros(95), 1.0]) > 0.0  # the middle is one value: it says nothing

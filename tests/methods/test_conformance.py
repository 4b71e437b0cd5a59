"""One behavioural suite that every method passes, the trajectory model among them."""

import numpy as np
import pytest

from kerneltrail.errors import DataError, KerneltrailError, ModelFileError
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition
from kerneltrail.methods import FollowedUser, Method
from kerneltrail.methods.protocol import hyperparameter_count, probabilities_of
from kerneltrail.methods.trajectory import TrajectoryMethod

from .common import ALL, COVARIATES, REWARDED, method, rows

X7, Y7, A7 = rows(7, seed=1)
X5, Y5, A5 = rows(5, seed=2)
NEXT, _, NEXT_A = rows(6, seed=3)


GREEDY = "trajectory, greedy"
"""The trajectory model with another selection than the model's own."""

IN_PIECES = (
    "mean", "linear", "lmm", "lmm-shaped", "se-ard", "pooled", "pooled-mean", "hgp", "hgp-shaped", "final",
    "memoryless", "cks",
)  # fmt: skip
"""Methods that promise that only the rows matter, not where the batches end."""


@pytest.fixture(params=(*ALL, GREEDY))
def made(request):
    if request.param == GREEDY:
        return TrajectoryMethod(method("trajectory").model, {"selection": "greedy"})
    return method(request.param)


def followed(made, *batches):
    user = made("ann")
    for X, y in batches:
        user.update(X, y)
    return user


def sound(said, n):
    assert isinstance(said, Prediction)
    assert said.mean.shape == said.variance.shape == (n,)
    assert np.isfinite(said.mean).all()
    assert np.isfinite(said.variance).all()
    assert (said.variance >= 0).all()
    assert np.isfinite(said.noise)
    assert said.noise >= 0
    assert (said.total > 0).all()


def same(a, b, **tolerance):
    compare = np.testing.assert_allclose if tolerance else np.testing.assert_array_equal
    compare(a.mean, b.mean, **tolerance)
    compare(a.variance, b.variance, **tolerance)
    compare(a.noise, b.noise, **tolerance)


def test_protocol(made):
    assert isinstance(made, Method)
    user = made("ann")
    assert isinstance(user, FollowedUser)
    assert user.name == "ann"
    assert made.covariates == COVARIATES
    assert (user.rows, user.batches) == (0, 0)


def test_probabilities_are_of_the_composition_selected_or_none_are_said(made):
    user = followed(made, (X7, Y7))
    said = probabilities_of(user)
    if said:
        assert sum(said.values()) == pytest.approx(1.0)
        assert said[user.composition] == max(said.values())
    else:
        assert made.method in ("mean", "linear", "lmm", "lmm-shaped", "cks", "shrinkage")
    assert hyperparameter_count(user) >= 1


def test_predict_before_any_data(made):
    user = made("ann")
    sound(user.predict(NEXT), len(NEXT))
    assert isinstance(user.composition, Composition)


def test_one_row(made):
    user = followed(made, (X7[:1], Y7[:1]))
    sound(user.predict(NEXT), len(NEXT))
    assert (user.rows, user.batches) == (1, 1)


def test_composition_reads_known_covariates(made):
    user = followed(made, (X7, Y7))
    assert isinstance(user.composition, Composition)
    assert set(user.composition.covariates) <= set(COVARIATES)


def test_repeated_rows(made):
    user = followed(made, (np.repeat(X7[:2], 4, axis=0), np.repeat(Y7[:2], 4)))
    sound(user.predict(np.repeat(X7[:1], 3, axis=0)), 3)


def test_inputs_are_neither_kept_nor_changed(made):
    X, y, new = X7.copy(), Y7.copy(), NEXT.copy()
    user = followed(made, (X, y))
    said = user.predict(new)
    np.testing.assert_array_equal(X, X7)
    np.testing.assert_array_equal(y, Y7)
    np.testing.assert_array_equal(new, NEXT)
    X[:], y[:], new[:] = -1.0, 1e9, 3.0
    same(user.predict(NEXT), said)
    user.update(X5, Y5)
    same(user.predict(NEXT), followed(made, (X7, Y7), (X5, Y5)).predict(NEXT))


def test_read_only_inputs(made):
    X, y = X7.copy(), Y7.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    sound(followed(made, (X, y)).predict(X), 7)


def test_lists_and_transposed_arrays_are_as_good_as_arrays(made):
    said = followed(made, (X7, Y7)).predict(NEXT)
    same(followed(made, (X7.tolist(), Y7.tolist())).predict(NEXT.tolist()), said)
    same(followed(made, (np.asfortranarray(X7), Y7)).predict(np.asfortranarray(NEXT)), said, rtol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_one_piece_is_many_where_promised(name):
    made = method(name)
    assert made.in_pieces == (name in IN_PIECES)
    whole = followed(made, (np.vstack([X7, X5]), np.concatenate([Y7, Y5])))
    parts = followed(made, (X7[:3], Y7[:3]), (X7[3:], Y7[3:]), (X5, Y5))
    assert whole.rows == parts.rows == 12
    assert (whole.batches, parts.batches) == (1, 3)
    if name in IN_PIECES:
        same(parts.predict(NEXT), whole.predict(NEXT), rtol=1e-6)
        assert parts.composition == whole.composition
    else:
        sound(parts.predict(NEXT), len(NEXT))
        sound(whole.predict(NEXT), len(NEXT))


@pytest.mark.parametrize("name", ALL)
def test_seeds_reproduce(name):
    once = followed(method(name), (X7, Y7)).predict(NEXT)
    again = followed(method.__wrapped__(name), (X7, Y7)).predict(NEXT)
    same(once, again)


@pytest.mark.parametrize("name", ALL)
def test_another_seed_is_as_sound(name):
    sound(followed(method(name, seed=1), (X7, Y7)).predict(NEXT), len(NEXT))


def test_users_do_not_disturb_each_other(made):
    one, other = made("ann"), made("bob")
    one.update(X7, Y7)
    other.update(X5, -Y5)
    same(one.predict(NEXT), followed(made, (X7, Y7)).predict(NEXT))


def test_copy_is_independent(made):
    user = followed(made, (X7, Y7))
    twin = user.copy()
    said = user.predict(NEXT)
    twin.update(X5, Y5 + 3.0)
    same(user.predict(NEXT), said)
    assert (user.rows, twin.rows) == (7, 12)
    user.update(X5, Y5 + 3.0)
    same(user.predict(NEXT), twin.predict(NEXT))


def test_save_load_continue(made):
    user = followed(made, (X7[:4], Y7[:4]), (X7[4:], Y7[4:]))
    data = made.save(user)
    assert isinstance(data, bytes)
    again = made.load(data)
    assert (again.name, again.rows, again.batches) == ("ann", 7, 2)
    assert again.composition == user.composition
    same(again.predict(NEXT), user.predict(NEXT))
    again.update(X5, Y5)
    user.update(X5, Y5)
    same(again.predict(NEXT), user.predict(NEXT))
    assert made.save(again) == made.save(user)


def test_save_load_before_any_data(made):
    again = made.load(made.save(made("ann")))
    same(again.predict(NEXT), made("ann").predict(NEXT))


def test_load_refuses_what_is_not_a_user(made):
    half = b'{"schema": 1, "method": "mean"'
    for data in (
        b"", b"{}", b"[1]", b"\x00\x01\x02", b"[" * 100_000, half + b"}", half + b', "covariates": 3}',
        half + b', "covariates": ["hour", "steps"], "name": [], "X": [[]], "y": {}, "ends": "abc", "action": 1}',
    ):  # fmt: skip
        with pytest.raises(ModelFileError):
            made.load(data)


@pytest.mark.parametrize("name", ALL)
def test_covariates_in_another_order(name):
    plain, turned = method(name), method(name, order=(1, 0))
    assert turned.covariates == COVARIATES[::-1]
    here, there = followed(plain, (X7, Y7)), followed(turned, (X7[:, ::-1], Y7))
    # Some searches are seeded by the content of the rows, columns in their order: then alike, not equal.
    seeded_by_content = name in ("trajectory", "union", "flat", "memoryless", "final", "stratified")
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if seeded_by_content else {"rtol": 1e-6}
    same(here.predict(NEXT), there.predict(NEXT[:, ::-1]), **tolerance)
    assert here.composition == there.composition


def test_constant_covariate(made):
    X = X7.copy()
    X[:, 1] = 250.0
    user = followed(made, (X, Y7))
    sound(user.predict(X), 7)
    sound(user.predict(NEXT), len(NEXT))


@pytest.mark.parametrize("value", [0.0, 1.5, -1e3])
def test_constant_target(made, value):
    user = followed(made, (X7, np.full(7, value)))
    sound(user.predict(NEXT), len(NEXT))


@pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")
def test_values_outside_the_range(made):
    user = followed(made, (X7, Y7))
    far = np.array([[-100.0, 5e3], [1e3, -1e4]])
    sound(user.predict(far), 2)
    user.update(far, [0.0, 1.0])
    sound(user.predict(NEXT), len(NEXT))


def test_large_targets(made):
    X, y, _ = rows(7, seed=1, shift=1e6, scale=1e5)
    user = followed(made, (X, y))
    sound(user.predict(NEXT), len(NEXT))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused_by_name(made, bad):
    X, y = X7.copy(), Y7.copy()
    X[2, 1] = bad
    y[3] = bad
    user = followed(made, (X5, Y5))
    said = user.predict(NEXT)
    with pytest.raises(DataError, match="steps"):
        user.update(X, Y7)
    with pytest.raises(DataError, match="target"):
        user.update(X7, y)
    with pytest.raises(DataError, match="steps"):
        user.predict(X)
    assert user.rows == 5
    same(user.predict(NEXT), said)


def test_wrong_shapes_are_refused(made):
    user = made("ann")
    for X, y in ((X7[:, :1], Y7), (X7, Y7[:6]), (X7, Y7[:, None]), (np.hstack([X7, X7]), Y7), (X7[:0], Y7[:0])):
        with pytest.raises(KerneltrailError):
            user.update(X, y)
    with pytest.raises(DataError):
        user.predict(X7[:, :1])
    assert user.rows == 0


def test_an_update_without_rows_is_refused_by_name(made):
    user = made("ann")
    with pytest.raises(DataError, match="user 'ann': no rows were given"):
        user.update(np.zeros((0, 2)), [])
    assert user.rows == 0


def test_predict_changes_nothing(made):
    user, quiet = followed(made, (X7, Y7)), followed(made, (X7, Y7))
    first = user.predict(NEXT)
    user.predict(X5)
    same(user.predict(NEXT), first)
    user.update(X5, Y5)
    quiet.update(X5, Y5)
    same(user.predict(NEXT), quiet.predict(NEXT))


def test_rows_are_predicted_one_by_one_as_together(made):
    user = followed(made, (X7, Y7))
    said = user.predict(NEXT)
    for i in range(len(NEXT)):
        one = user.predict(NEXT[i : i + 1])
        np.testing.assert_allclose(one.mean, said.mean[i : i + 1], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(one.variance, said.variance[i : i + 1], rtol=1e-6, atol=1e-9)


def test_one_row_after_fifty(made):
    X, y, _ = rows(50, seed=4)
    user = followed(made, (X, y), (X5[:1], Y5[:1]))
    assert (user.rows, user.batches) == (51, 2)
    sound(user.predict(NEXT), len(NEXT))


def test_it_learns(made):
    X, y, _ = rows(50, seed=5)
    user = followed(made, (X, y + 5.0))
    error = np.abs(user.predict(X).mean - (y + 5.0)).mean()
    assert error < np.abs(made("bob").predict(X).mean - (y + 5.0)).mean()


@pytest.mark.parametrize("name", REWARDED)
def test_action(name):
    made = method(name, reward=True)
    assert made.takes_action
    user = made("ann")
    sound(user.predict(NEXT, action=NEXT_A), len(NEXT))
    user.update(X7, Y7, action=A7)
    user.update(X5, Y5, action=A5)
    with_action = user.predict(NEXT, action=np.ones(6))
    without = user.predict(NEXT, action=np.zeros(6))
    sound(with_action, 6)
    assert not np.allclose(with_action.mean, without.mean)
    again = made.load(made.save(user))
    same(again.predict(NEXT, action=NEXT_A), user.predict(NEXT, action=NEXT_A))
    with pytest.raises(DataError, match="action"):
        user.update(X5, Y5)
    with pytest.raises(DataError, match="action"):
        user.predict(NEXT)
    with pytest.raises(DataError, match="action"):
        user.predict(NEXT, action=[1.0])
    with pytest.raises(DataError, match="action must be 0 or 1, is 2 in row 1 of 6"):
        user.predict(NEXT, action=np.full(6, 2.0))


@pytest.mark.parametrize("name", ALL)
def test_an_action_is_left_aside_by_those_who_do_not_take_it(name):
    made = method(name)
    user = made("ann")
    user.update(X7, Y7, action=A7)
    same(user.predict(NEXT, action=NEXT_A), followed(made, (X7, Y7)).predict(NEXT))

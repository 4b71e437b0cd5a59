"""A followed user's state: replaced whole or not at all, whoever updates, and no larger after years."""

import copy
import pickle
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy

from kerneltrail.errors import DataError, ModelFileError
from kerneltrail.gp import Reward, numerics, online, posterior
from kerneltrail.store.container import pack, unpack
from kerneltrail.trajectory import new_user
from kerneltrail.trajectory.evidence import LaplaceEvidence
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.node_fit import NodeFit
from kerneltrail.trajectory.user_state import RECENT
from support.identical import difference

from . import tiny
from .small import X_NEXT, follow, rewarded_model, rows, small_model


@pytest.fixture
def switching():
    """Threads take turns so often that an unguarded update would lose rows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("refine", [0, 400])
def test_no_row_is_lost_when_several_threads_update(switching, refine):
    user, person = tiny.model().new_user("ann", refine=refine), tiny.pilot(7, (4, 13))
    follow(user, person, [1])
    failures, odd = [], []

    def send(start):
        try:
            for i in range(start, start + 3):
                user.update(person.X[i : i + 1], person.y[i : i + 1])
                state = user.state
                if state.rows != 4 + state.batches - 1 or sum(state.selected) != state.batches:
                    odd.append(state)
                user.predict(person.X)
        except Exception as problem:  # of any kind: a thread's own would be lost
            failures.append(problem)

    threads = [threading.Thread(target=send, args=(start,)) for start in (4, 7, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not odd
    assert (user.rows, user.batches) == (13, 10)
    assert [step.batch for step in user.history] == list(range(1, 11))
    assert [step.rows for step in user.history] == [4, *range(5, 14)]


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, lambda user: pickle.loads(pickle.dumps(user))])
def test_a_user_with_a_lock_still_travels(travel):
    user, person = small_model().new_user("ann"), rows("ann", 12, seed=6)
    follow(user, person, [1, 2])
    other = travel(user)
    assert difference(other, user) is None
    follow(other, person, [3])
    assert (user.batches, other.batches) == (2, 3)


@pytest.mark.parametrize("refine", [0, 6, 400])
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_update_that_fails_midway_leaves_the_user_as_it_was(monkeypatch, refine, failing):
    user, person = small_model().new_user("ann", refine=refine), rows("ann", 16, seed=2)
    follow(user, person, range(1, failing))
    kept, calls = user.copy(), []
    with monkeypatch.context() as patch:
        frozen = user.state.kept is None and user.batches
        last = sum(fit.online is not None for fit in user.state.fits) if frozen else len(user.model.nodes)

        def broken(*given, **named):
            calls.append(1)
            if len(calls) == last:
                raise MemoryError
            return original(*given, **named)

        where, name = (type(user.state.fits[0]), "follow") if frozen else (LaplaceEvidence, "estimate")
        original = getattr(where, name)
        patch.setattr(where, name, broken)
        with pytest.raises(MemoryError):
            follow(user, person, [failing])
    assert len(calls) == last
    assert difference(user, kept) is None
    follow(user, person, [failing])
    follow(kept, person, [failing])
    assert difference(user, kept) is None


def test_the_history_is_bounded_and_what_is_left_out_is_counted():
    user, rng = tiny.model().new_user("ann", refine=4), np.random.default_rng(0)
    steps = []
    sizes = {}
    for number in range(1, 3 * RECENT + 1):
        steps.append(user.update(rng.uniform(-4.0, 4.0, (1, 1)), rng.standard_normal(1)))
        sizes[number] = (
            len(user.to_bytes()) - user.state.recent.X.nbytes - user.state.recent.y.nbytes
        )  # of those there are at most CONTEXTS
    assert user.batches == len(steps)
    assert user.history == tuple(steps[-RECENT:])
    assert user.state.first == steps[0]
    assert user.state.steps == (steps[0], *steps[-RECENT:])
    assert dict(user.selected) == {
        node.composition: sum(step.composition == node.composition for step in steps) for node in user.model.nodes
    }
    assert sizes[3 * RECENT] < 1.05 * sizes[RECENT + 1]  # longer numbers, no more of them
    back = NewUser.from_bytes(user.to_bytes(), user.model)
    assert difference(back, user) is None


def test_a_file_with_every_step_is_read_with_the_last_ones(monkeypatch):
    """As version 0.1.0 wrote them: no counts, a history of any length, and actions that nothing reads."""
    model, person = tiny.model(), tiny.pilot(7, tuple(range(1, RECENT + 9)), action=True)
    user, short = model.new_user("ann", refine=1000), model.new_user("ann", refine=1000)
    monkeypatch.setattr(NodeFit, "refine", lambda fit, rows, *others: replace(fit, log_evidence=-float(rows.rows)))
    follow(short, person)
    with monkeypatch.context() as patch:
        patch.setattr(new_user, "RECENT", 10**6)
        steps = follow(user, person)
    content, arrays = unpack(user.to_bytes(), "user", "ann")
    assert len(content["history"]) == len(steps) == RECENT + 8
    del content["selected"]
    old = pack("user", content, {**arrays, "kept.action": np.ones(RECENT + 8)})
    back = NewUser.from_bytes(old, model)
    assert difference(back, short) is None
    back.update([[0.5]], [0.6])
    assert back.batches == RECENT + 9


def test_up_to_the_bound_every_step_is_there():
    user = small_model().new_user("ann")
    steps = follow(user, rows("ann", 12, seed=3))
    assert user.history == user.state.steps == tuple(steps)


@pytest.mark.parametrize("refine", [0, 400])
@pytest.mark.parametrize("given", [(True, False, True), (False, True, False)])
def test_an_action_is_left_aside_by_a_model_without_a_reward(given, refine):
    model, person = tiny.model(), tiny.pilot(7, (3, 5, 8), action=True)
    user, plain = model.new_user("ann", refine=refine), model.new_user("ann", refine=refine)
    for t, told in enumerate(given, start=1):
        batch = person.batch(t)
        user.update(batch.X, batch.y, action=batch.action if told else None)
        plain.update(batch.X, batch.y)
    assert difference(user, plain) is None
    np.testing.assert_array_equal(user.predict(person.X, action=person.action).mean, plain.predict(person.X).mean)


@pytest.mark.parametrize("action", [None, [1, 0], [[1]], ["no"] * 4, [np.nan] * 4])
def test_actions_that_make_no_sense_leave_a_reward_models_user_as_it_was(action):
    user, person = rewarded_model().new_user("ann"), rows("ann", 8, seed=5)
    follow(user, person, [1])
    kept = user.copy()
    with pytest.raises(DataError):
        user.update(person.batch(2).X, person.batch(2).y, action=action)
    assert difference(user, kept) is None


FULL = Reward(("hour",), covariance=((1.0, 0.3, -0.1), (0.3, 0.5, 0.2), (-0.1, 0.2, 0.4)))
"""A prior whose eigenvectors LAPACK's drivers give other signs."""


def frozen_user(reward):
    """Somebody of whom there are sums alone."""
    user, person = small_model(reward=reward).new_user("ann", refine=20), rows("ann", 60, seed=9, size=20)
    for t in range(1, person.batches + 1):
        follow(user, person, [t])
    assert all(fit.online is not None for fit in user.state.fits)
    return user


@pytest.mark.parametrize("reward", [FULL, Reward(("hour",), constant_variance=0.0)])
def test_sums_are_read_as_they_were_taken_on_a_machine_with_other_eigenvectors(monkeypatch, reward):
    user, more = frozen_user(reward), rows("ann", 20, seed=11, size=20)
    turned = lambda covariance, **_: -numerics.root(covariance, what="")[:, ::-1]  # noqa: E731
    monkeypatch.setattr(online, "root", turned)
    monkeypatch.setattr(posterior, "root", turned)
    again = NewUser.from_bytes(user.to_bytes(), user.model)
    for each in (user, again):
        follow(each, more, [1])
    assert again.advantage(X_NEXT).mean == pytest.approx(user.advantage(X_NEXT).mean, rel=1e-6)
    assert again.advantage(X_NEXT).variance == pytest.approx(user.advantage(X_NEXT).variance, rel=1e-6)
    for kernel, value in user.history[-1].log_evidence.items():
        assert again.history[-1].log_evidence[kernel] == pytest.approx(value, abs=1e-6)


def test_sums_of_files_of_before_are_seen_through_the_root_of_then(monkeypatch):
    """They do not hold it. It was SciPy's; NumPy's driver has other signs, and turned effects around."""
    user = frozen_user(FULL)
    covariance = np.array(FULL.covariance)
    values, vectors = scipy.linalg.eigh(covariance)
    np.testing.assert_array_equal(numerics.root(covariance, what=""), vectors * np.sqrt(values))
    content, arrays = unpack(user.to_bytes(), "user", "ann's file")
    before = {name: value for name, value in arrays.items() if not name.endswith(".root")}
    assert len(before) == len(arrays) - len(user.state.fits)
    assert difference(NewUser.from_bytes(pack("user", content, before), user.model), user) is None


def test_a_root_of_another_prior_is_refused():
    user = frozen_user(FULL)
    content, arrays = unpack(user.to_bytes(), "user", "ann's file")
    wrong = {name: 1.1 * value if name == "judges.0.root" else value for name, value in arrays.items()}
    with pytest.raises(ModelFileError, match=r"judges\.0\.root is no root"):
        NewUser.from_bytes(pack("user", content, wrong), user.model)


@pytest.mark.parametrize(("given", "name"), [(5, "5"), (np.int64(5), "5"), (5.0, "5"), ("ann", "ann"), (" b ", " b ")])
def test_an_id_becomes_a_text_at_the_door_so_that_its_file_can_be_read_before_any_row(given, name):
    model = small_model()
    user = model.new_user(given)
    assert user.name == name
    assert NewUser.from_bytes(user.to_bytes(), model).name == name


@pytest.mark.parametrize("given", [None, "", "  ", np.nan, ("ann",)])
def test_nobody_is_no_user(given):
    with pytest.raises(DataError, match="a user needs a name: a text or a number, got "):
        small_model().new_user(given)

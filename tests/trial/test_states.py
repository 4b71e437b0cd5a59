"""Followed participants in memory and in files: what was removed stays away, whatever is being computed meanwhile."""

import pytest

from kerneltrail.trial.rows import Row
from kerneltrail.trial.shelf import Shelf
from kerneltrail.trial.states import States

from .study import model

BATCHES = ((0,),)


def rows(model):
    context = dict.fromkeys(model.covariates, 0.5)
    return [[Row(2 * number, 2 * number + 1, context, 1.0, number % 2, 0.5, 1.0) for number in range(3)]]


@pytest.fixture
def states(tmp_path):
    return States(Shelf(tmp_path))


def computed(states, during=lambda: None):
    """Somebody's state; their data are removed while rows are gathered, or nothing happens then."""
    known = model()

    def gather(begin):
        during()
        return rows(known)[begin:]

    return states.compute(known, "m", "p01", BATCHES, gather)


def files(tmp_path):
    return [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_state_is_kept_in_memory_and_in_a_file(states, tmp_path):
    user = computed(states)
    assert states.get("m", "p01", BATCHES) is user
    assert len(files(tmp_path)) == 1
    again = States(Shelf(tmp_path)).known(model(), "m", "p01", BATCHES, lambda begin: rows(model())[begin:])
    assert again.probabilities == user.probabilities


def test_what_is_computed_while_data_are_removed_is_kept_nowhere(states, tmp_path):
    user = computed(states, during=lambda: states.forget("p01"))
    assert user.probabilities  # who asked before the removal is answered
    assert states.get("m", "p01", BATCHES) is None
    assert not files(tmp_path)


def test_a_state_that_was_read_from_a_file_before_a_removal_is_not_kept(states, tmp_path):
    computed(states)
    fresh = States(Shelf(tmp_path))
    known = model()
    read = Shelf.read

    class Removing(Shelf):
        def read(self, participant, name, model):
            user = read(self, participant, name, model)
            fresh.forget("p01")
            return user

    fresh._shelf = Removing(tmp_path)
    assert fresh.known(known, "m", "p01", BATCHES, lambda begin: rows(known)[begin:]) is not None
    assert fresh.get("m", "p01", BATCHES) is None


def test_after_a_ledger_was_restored_everybody_may_be_kept_again(states, tmp_path):
    states.forget("p01")
    computed(states)
    assert not files(tmp_path)
    states.forget()
    user = computed(states)
    assert states.get("m", "p01", BATCHES) is user
    assert len(files(tmp_path)) == 1

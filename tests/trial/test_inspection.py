"""What a trial gives to pages: participants as followed, models, noted looks, a secret of another purpose."""

import pytest

from kerneltrail.errors import DataError, ParticipantRemoved, UnknownName
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trial.ledger.folds import fold

from .running import walked
from .study import DRAWS, centred_model


def test_a_participant_is_as_the_policy_that_serves_knows_them(trial, time):
    assert trial.followed("p01") is None
    walked(trial, "p01", range(4), time)
    assert trial.followed("p01") is None  # no update has seen it
    trial.update(reason="test")
    assert trial.followed("p01").rows == 4
    trial.activate("1", reason="back")
    assert trial.followed("p01") is None
    with pytest.raises(UnknownName, match="no participant 'p09'"):
        trial.followed("p09")
    trial.remove("p01", reason="asked")
    with pytest.raises(ParticipantRemoved):
        trial.followed("p01")


def test_a_model_is_found_by_its_fingerprint(trial):
    assert trial.model(fingerprint(centred_model())) is centred_model()
    with pytest.raises(UnknownName, match="no model"):
        trial.model("nothing")


def test_a_look_is_an_entry_each_time_and_stays_when_data_are_removed(trial):
    for _ in range(2):
        assert trial.look("a participant", by="key 1", participant="p01", reason="safety").new
    trial.remove("p01", reason="asked")
    with trial.reading() as state:
        looks = list(state.looks)
    assert [(each.by, each.payload["participant"]) for each in looks] == [("key 1", "p01")] * 2
    assert looks[0].sequence < looks[1].sequence
    assert trial.snapshot().looks == looks
    assert trial.verify().sound
    ledger = trial._core.ledger
    assert fold(ledger.trial, ledger.entries()).looks == looks
    with pytest.raises(DataError, match="has no 'by'"):
        ledger.append("look", "x", {"what": "the cohort"})


def test_the_secret_of_a_purpose_is_its_own_and_no_draw(trial):
    one = trial.secret("desk")
    assert one == trial.secret("desk")
    assert one != trial.secret("another")
    assert one != DRAWS.key
    assert len(one) == 32
    assert one not in (DRAWS._digest((), "desk", "p", "k", 0), DRAWS._digest(("id",), "desk", "p", "k", 0))

"""Decisions and the ledger: how often it is read, how long a decision waits for it, what another process drew."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kerneltrail.errors import KeyConflict, KeyPublished, NotRecorded
from kerneltrail.trial import deciding
from kerneltrail.trial.draw import PUBLISHED
from kerneltrail.trial.ledger import Ledger

from .running import agreed, asked, begun, enrol, incidents, outcome, walked
from .service.calls import problem
from .service.conftest import served


@pytest.fixture
def readings(trial, monkeypatch):
    """The entries after which the ledger was read, each time."""
    ledger, noted = trial._core.ledger, []
    inner = ledger.following
    monkeypatch.setattr(ledger, "following", lambda after: noted.append(after) or inner(after))
    return noted


@pytest.mark.parametrize("demonstration", [False, True])
def test_nothing_is_drawn_with_a_key_that_was_published_but_in_a_demonstration(tmp_path, demonstration):
    trial = begun(tmp_path / "ledger.db", demonstration=demonstration)
    enrol(trial, "p01")
    first = trial.decide(asked())
    trial._core.incident(PUBLISHED, "the key of the draws was published in a.zip", severity="error", key=PUBLISHED)
    assert trial.decide(asked()).body == first.body  # what was recorded is answered
    drawn = trial.report(asked(index=1), action=1, probability=0.5, reason="no answer")
    assert drawn.new  # the app's own draw has nothing to do with the key
    if demonstration:
        assert trial.decide(asked(index=2)).new
    else:
        for call in (lambda: trial.decide(asked(index=2)), lambda: trial.schedule([asked(index=3)])):
            with pytest.raises(KeyPublished, match=r"was published in a\.zip: stop its servers and revoke their keys"):
                call()
        assert len(trial.snapshot().participants["p01"].decisions) == 2
    assert trial.replay().same
    assert trial.status().light == "red"
    trial.close()


def test_a_decision_reads_the_ledger_once(trial, readings):
    walked(trial)
    trial.update(reason="test")
    readings.clear()
    trial.decide(asked(index=8))
    assert len(readings) == 1


def test_a_call_reads_the_ledger_once_with_its_key(trial, time, readings):
    for call in served(trial, time):
        call.decide(index=0)
        readings.clear()
        assert call.decide(index=1).status_code == 201
        assert len(readings) == 1
        assert call.decide(index=1).status_code == 200
        assert len(readings) == 2


def test_what_another_process_recorded_before_a_call_is_known_to_it(trial, location, time):
    other = begun(location, time)
    for call in served(trial, time):
        token = call.token("app")
        for index in range(4):  # each time the other one writes, and this one must see it
            answer = other.decide(asked(index=index, hour=9.0))
            assert call.decide(index=index).content == answer.body
            record = trial.decision(call.decide("p02", index).json()["decision_id"])[1]
            assert record["until"] >= answer.sequence
        other.event("p01", "pause", at=time(), reason="holiday")
        assert problem(call.decide(index=10)) == (409, "not-active")
        other.revoke_key(token.split("_")[1])
        assert problem(call.decide("p02", index=11)) == (401, "no-key")
    other.close()


def test_whoever_waited_for_the_same_decision_reads_what_was_recorded(trial, monkeypatch):
    entered, go, real = threading.Event(), threading.Event(), deciding.made

    def held(*arguments):
        entered.set()
        assert go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(deciding, "made", held)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(trial.decide, asked())
        assert entered.wait(60)
        second = pool.submit(trial.decide, asked(steps=1.0))
        go.set()
        assert first.result(60).new
        with pytest.raises(KeyConflict, match="they differ in context"):
            second.result(60)
    assert len(incidents(trial, "conflict")) == 1


def test_what_another_process_draws_ahead_while_a_decision_is_made_stands(trial, location, time, monkeypatch):
    other, real = begun(location, time), deciding.made

    def meanwhile(core, wanted, end):
        monkeypatch.undo()
        other.schedule([asked(index=3, steps=7.0)])
        return real(core, wanted, end)

    monkeypatch.setattr(deciding, "made", meanwhile)
    answer = trial.decide(asked(index=3))
    assert answer.repeated
    assert answer.body == other.decide(asked(index=3)).body
    assert not incidents(trial, "conflict")
    other.close()


@pytest.mark.parametrize("who", ["thread", "process"])
def test_a_decision_waits_for_another_writer_no_longer_than_its_deadline(location, time, who):
    trial = begun(Ledger(location, "walks", clock=time, patience=3600).database, time, protocol=agreed(deadline_ms=200))
    enrol(trial, "p01")
    writing = trial._core.ledger if who == "thread" else Ledger(location, "walks", clock=time)
    for call in served(trial, time):
        call.token("app")
        with ThreadPoolExecutor(1) as pool:
            with writing.transaction():
                refused = pool.submit(call.decide).result(60)
            assert problem(refused) == (503, "not-recorded")
        assert call.decide().status_code == 201
    writing.close()
    with pytest.raises(NotRecorded), trial._core.ledger.transaction(), trial._core.ledger.transaction(0.01):
        pass
    assert trial.verify().sound
    trial.close()


def test_many_outcomes_are_recorded_in_one_commit_each_by_itself(trial, location, time):
    enrol(trial, "p03")
    answers = [trial.decide(asked(person, index)) for person in ("p01", "p03") for index in range(4)]
    before = trial._core.ledger.head().sequence
    trial.outcomes([outcome(answers[0], 1.0, name="known")])
    trial.remove("p03", reason="asked")
    items = [
        outcome(answers[0], 1.0, name="known"),
        outcome(answers[0], 2.0, name="known"),
        outcome(answers[1], 3.0, name="new"),
        outcome(answers[1], 3.0, name="new"),
        outcome(answers[1], 4.0, name="new"),
        outcome(answers[5], 5.0),
        {"client_id": "nothing"},
        *(outcome(answers[2], float(number), name=f"many{number}") for number in range(250)),
    ]
    done = trial.outcomes(items)
    assert [each.client_id for each in done] == [item["client_id"] for item in items]
    shown = ["duplicate", "refused", "stored", "duplicate", "refused", "refused", "refused"]
    assert [each.status for each in done] == shown + ["stored"] * 250
    assert "is taken" in done[1].reason
    assert "is taken" in done[4].reason
    assert "removed" in done[5].reason
    stored = [each.sequence for each in done if each.status == "stored"]
    assert stored == list(range(before + 3, before + 3 + 251))
    assert (done[0].sequence, done[3].sequence) == (before + 1, done[2].sequence)
    assert len(incidents(trial, "conflict")) == 2
    assert trial.verify().sound

"""A trial when things break: killed processes, two at once, missing models, slow states, databases that go away."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from kerneltrail.errors import InFlight, KeyConflict, NotRecorded, UpdateRunning
from kerneltrail.trial import deciding, states, updating
from kerneltrail.trial.burden import dose_of
from kerneltrail.trial.ledger.copies import restore

from .running import Time, agreed, asked, begun, enrol, models, walked

TESTS = Path(__file__).parents[1]


@contextmanager
def worker(location, what):
    """A process that works on the trial; killed at the end, whatever happens."""
    paths = [str(TESTS), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-m", "trial.conduct_worker", str(location), what],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_update_that_is_killed_leaves_the_old_policy_and_the_next_goes_on(trial, location):
    walked(trial)
    with worker(location, "update") as process:
        assert process.stdout.readline() == "computed\n"
        with pytest.raises(UpdateRunning):
            trial.update(reason="beside it")
        assert trial.decide(asked(index=8)).value["policy_version"] == "1"
        assert trial.freeze(agreed(updates={"every": 3}), reason="test", by="ann").new
        assert trial.due() == ""
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert trial.due().startswith("4 outcomes came")
    assert trial.decide(asked(index=9)).value["policy_version"] == "1"
    done = trial.update(reason="again")
    assert (done.id, done.version, done.rows) == ("2", "2", 4)
    assert trial.updated("1").state == "killed"
    assert trial.replay().same
    assert trial.verify().sound


def test_a_process_killed_between_commit_and_answer_repeats_what_was_recorded(trial, location):
    answered = {}
    with worker(location, "decide") as process:
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        for _ in range(3):
            index, body = process.stdout.readline().split(" ", 1)
            answered[int(index)] = body.strip().encode()
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            index, _, body = line.partition(" ")
            if body.endswith("\n"):
                answered[int(index)] = body.strip().encode()
        process.wait()
    recorded = len(trial.participant("p01").decisions)
    assert recorded - len(answered) in (0, 1)  # at most one was committed and not told
    again = begun(location)
    for key, decision in again.participant("p01").decisions.items():
        request = deciding.requested(decision.payload)
        answer = again.decide(request)
        assert answer.repeated, key
        assert answer.body == answered.get(decision.payload["index"], answer.body)
    assert again.replay().exact == recorded
    again.close()


def test_two_trials_on_one_ledger_agree(trial, location):
    other = begun(location)
    walked(trial)
    trial.update(reason="by one")
    mine, theirs = trial.decide(asked(index=6)), other.decide(asked(index=7))
    assert mine.value["policy_version"] == theirs.value["policy_version"] == "2"
    assert theirs.value["composition"] is not None
    assert other.decide(asked(index=6)).body == mine.body
    with pytest.raises(KeyConflict):
        other.decide(asked(index=6, steps=1.0))
    with ThreadPoolExecutor(4) as pool:
        same = list(pool.map(lambda each: each.decide(asked("p02", index=3)).body, (trial, other) * 4))
    assert len(set(same)) == 1
    assert other.replay().same
    other.close()


def test_a_restart_changes_nothing(trial, location):
    walked(trial)
    trial.update(reason="one")
    walked(trial, indices=range(4, 7))
    trial.update(reason="two")
    before = trial._core.ledger.head()
    again = begun(location)
    assert again._core.ledger.head() == before  # opening records nothing
    assert again.replay().exact == 7
    warm = trial.update(reason="dry", dry_run=True)
    assert warm == again.update(reason="dry", dry_run=True)
    again._core.states.forget()
    assert trial.decide(asked(index=8)).value["composition"] == again.decide(asked(index=9)).value["composition"]
    assert again.replay().exact == 9
    again.close()


def test_decisions_are_served_while_an_update_runs(trial, monkeypatch):
    walked(trial)
    go, real = threading.Event(), updating.finish

    def held(core, job, result):
        assert go.wait(60)
        return real(core, job, result)

    monkeypatch.setattr(updating, "finish", held)
    name = trial.start_update(reason="slow")
    assert trial.updated(name).state == "running"
    assert trial.decide(asked(index=8)).value["policy_version"] == "1"
    go.set()
    trial._core.beside[0].join()
    assert trial.updated(name).state == "done"
    assert trial.decide(asked(index=9)).value["policy_version"] == "2"
    assert trial.replay().exact == 6


def test_a_rollback_during_an_update_wins(trial, monkeypatch):
    walked(trial)
    trial.update(reason="one")
    walked(trial, indices=range(4, 6))
    real = updating.finish

    def late(core, job, result):
        trial.activate("1", reason="rollback")
        return real(core, job, result)

    monkeypatch.setattr(updating, "finish", late)
    done = trial.update(reason="two")
    assert (done.state, done.version) == ("superseded", None)
    assert trial.decide(asked(index=8)).value["policy_version"] == "1"


def test_a_state_that_is_not_computed_in_time_is_answered_by_the_next_rung(location, monkeypatch):
    trial = begun(location, protocol=agreed(deadline_ms=400))
    enrol(trial, "p01")
    walked(trial)
    trial.update(reason="test")
    trial._core.states.forget()
    go, real = threading.Event(), states.followed

    def slow(*arguments):
        assert go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(states, "followed", slow)
    answer = trial.decide(asked(index=8))
    assert answer.value["rung"] in ("last_good", "group_prior", "fixed")  # a busy machine may take its time
    assert "policy: no answer within 400 ms" in answer.value["rung_reason"]
    assert 0.2 <= answer.value["probability"] <= 0.8
    go.set()
    trial._core.states.close()  # waits for it
    monkeypatch.undo()
    assert trial._core.states._users["p01"]
    assert trial.replay().exact == 5
    trial.close()


def test_without_the_model_a_fixed_probability_answers_flagged(trial, location, tmp_path):
    walked(trial, indices=range(2))
    bare = begun(location, models=tmp_path / "no models", protocol=None)
    answer = bare.decide(asked(index=5))
    assert (answer.value["rung"], answer.value["probability"]) == ("fixed", 0.5)
    assert "no model with the fingerprint" in answer.value["rung_reason"]
    assert bare.replay().different == 2
    assert "cannot be made anew" in str(bare.replay())
    next(iter(models().values())).save(tmp_path / "no models" / "some.trail")
    assert bare.decide(asked(index=6)).value["rung"] == "policy"
    assert bare.replay().exact == 4
    bare.close()


def test_whatever_fails_in_a_state_is_answered_by_the_next_rung(trial, monkeypatch):
    walked(trial)
    trial.update(reason="test")

    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(states.States, "within", broken)
    answer = trial.decide(asked(index=8))
    assert answer.value["rung"] == "last_good"  # somebody of whom nothing was known
    assert answer.value["rung_reason"] == "policy: ZeroDivisionError: a bug"
    monkeypatch.undo()
    assert trial.replay().exact == 5


def test_who_asks_while_it_is_decided_waits_and_gets_the_same_bytes(trial, monkeypatch):
    entered, go, real = threading.Event(), threading.Event(), deciding.made

    def held(*arguments):
        entered.set()
        assert go.wait(60)
        return real(*arguments)

    monkeypatch.setattr(deciding, "made", held)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(trial.decide, asked())
        assert entered.wait(60)
        with pytest.raises(InFlight), deciding.flight(trial._core, "p01/walk/0", 0.01):
            pass
        second = pool.submit(trial.decide, asked())
        go.set()
        answers = [first.result(60), second.result(60)]
    assert answers[0].body == answers[1].body
    assert sorted(each.new for each in answers) == [False, True]


def test_what_cannot_be_written_is_not_answered(tmp_path):
    trial = begun(tmp_path / "ledger.db")
    enrol(trial, "p01")
    trial.decide(asked())
    before = trial._core.ledger.head()
    engine = trial._core.ledger.database.engine
    with engine.connect() as connection:  # the disk is full: no page more
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    trial._core.ledger.close()

    def full(connection, _):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(engine, "connect", full)
    with pytest.raises(NotRecorded, match="disk is full"):
        walked(trial, indices=range(1, 150))
    event.remove(engine, "connect", full)
    trial._core.ledger.close()
    assert trial._core.ledger.head().sequence >= before.sequence
    assert trial.decide(asked(index=160)).new
    assert trial.replay().same
    assert trial.verify().sound
    trial.close()


def test_a_copy_is_made_before_each_update_and_can_be_restored(trial, location, tmp_path):
    folder = tmp_path / "copies"
    trial.close()
    trial = begun(location, Time(), backups=folder)
    walked(trial)
    trial.update(reason="one")
    trial.decide(asked(index=9))
    copies = sorted(folder.iterdir())
    assert [path.stem.split("-", 2)[2] for path in copies] == ["before-update-1"]
    restore(copies[0], tmp_path / "restored.db")
    again = begun(tmp_path / "restored.db")
    assert [each.version for each in again.policies()] == ["1"]
    assert again.replay().exact == 4
    with again.reading() as state:
        assert not state.updates  # the copy was made before the update began
    assert again.update(reason="after the restore").version == "2"
    assert again.decide(asked(index=9)).new
    assert again.verify().sound
    again.close()
    assert trial.remove("p01", reason="asked").backups == tuple(copies)
    trial.close()


def test_without_its_copy_nothing_is_learnt(trial, location, tmp_path):
    walked(trial)
    (tmp_path / "file").write_text("no folder")
    again = begun(location, backups=tmp_path / "file")
    done = again.update(reason="test")
    assert done.state == "failed"
    assert "cannot be written" in done.words
    assert again.updated(done.id).state == "failed"
    assert [each.version for each in again.policies()] == ["1"]
    again.close()


def test_states_in_files_make_a_restart_quick_and_are_never_trusted_by_a_replay(trial, location, tmp_path, monkeypatch):
    folder = tmp_path / "states"
    walked(trial)
    trial.update(reason="one")
    first = begun(location, states=folder)
    walked(first, "p02")
    first.update(reason="two")
    assert len(list(folder.glob("*/*.user"))) == 2
    expected = first.decide(asked(index=8))
    first.close()
    batches = []
    real = states.followed
    monkeypatch.setattr(states, "followed", lambda *given: batches.append(len(given[2])) or real(*given))
    again = begun(location, states=folder)
    assert batches == [0, 0]  # both were read, and nothing was computed
    key = again.decision(expected.value["decision_id"])[0]
    assert again.decide(asked(index=9)).value["rung"] == "policy"
    assert again.replay().exact == 10
    assert sum(batches) == 1  # the replay computed it anew: of p01, who alone was decided for with rows
    for path in folder.glob("*/*.user"):
        path.write_bytes(path.read_bytes()[:-20])
    once_more = begun(location, states=folder)
    assert once_more.replay_one(key).exact
    assert once_more.decide(asked(index=10)).value["rung"] == "policy"
    assert once_more.replay().exact == 11
    once_more.remove("p01", reason="asked")
    assert len(list(folder.glob("*"))) == 1
    again.close()
    once_more.close()


def test_what_is_recorded_while_a_decision_is_made_is_not_in_it(location, monkeypatch):
    trial = begun(location, protocol=agreed(burden={"per_dose": 0.3}))
    enrol(trial, "p01")
    answers = walked(trial, indices=range(8))
    sent = next(each for each in answers if each.value["action"])
    real = deciding.made

    def meanwhile(core, asked, end):
        trial.deliver(sent.value["decision_id"], status="failed", at=None, delivered_action=0)
        trial.update(reason="meanwhile")
        return real(core, asked, end)

    monkeypatch.setattr(deciding, "made", meanwhile)
    answer = trial.decide(asked(index=9))
    monkeypatch.undo()
    key, record = trial.decision(answer.value["decision_id"])
    assert answer.value["policy_version"] == "1"
    assert answer.sequence > record["until"] + 1
    after = trial.decide(asked(index=10))
    assert after.value["policy_version"] == "2"
    doses = [float.fromhex(trial.decision(each.value["decision_id"])[1]["dose"]) for each in (answer, after)]
    assigned = [each.value["action"] for each in answers]
    reached = [0 if each is sent else each.value["action"] for each in answers]
    assert doses == [dose_of(assigned), dose_of([*reached, answer.value["action"]])]
    assert trial.replay_one(key).exact
    assert trial.replay().exact == 10
    trial.close()


def test_an_update_that_cannot_be_recorded_is_broken_off_and_does_not_stand_in_the_way(trial, monkeypatch):
    walked(trial)

    def full(*_):
        raise NotRecorded("the disk is full; nothing was recorded")

    monkeypatch.setattr(updating, "finish", full)
    done = trial.update(reason="one")
    assert (done.state, trial.updated(done.id).state) == ("failed", "failed")
    monkeypatch.setattr(updating, "failed", full)
    with pytest.raises(NotRecorded):
        trial.update(reason="two")
    assert trial.updated("2").state == "running"
    monkeypatch.undo()
    assert trial.update(reason="three").version == "2"
    assert trial.updated("2").state == "killed"


def test_two_processes_that_decide_the_same_answer_the_same(trial, location):
    with worker(location, "decide") as one, worker(location, "decide") as other:
        for process in (one, other):
            assert process.stdout.readline() == "ready\n"
        for process in (one, other):
            process.stdin.write("\n")
            process.stdin.flush()
        first, second = ([process.stdout.readline() for _ in range(12)] for process in (one, other))
    assert first == second
    assert json.loads(first[-1].partition(" ")[2])["index"] == 11
    recorded = trial.participant("p01").decisions
    assert len(recorded) >= 12
    assert trial.replay().exact == len(recorded)
    assert trial.verify().sound
    assert not trial.incidents()

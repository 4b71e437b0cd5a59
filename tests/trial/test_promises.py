"""What is promised to everybody who runs a trial, one test for each promise, on SQLite and on PostgreSQL."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import permutations
from math import nan

import numpy as np
import pytest

from kerneltrail.errors import DecisionError, KeyConflict, NotActive, NotRecorded, TrialError
from kerneltrail.store.canonical import real
from kerneltrail.trial import checks, states, updating
from kerneltrail.trial.core import Core
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.ledger.copies import restore
from kerneltrail.trial.ledger.writer import Writer
from kerneltrail.trial.standing import lines
from kerneltrail.trial.versions import Versions

from .running import BEGIN, Time, agreed, asked, begun, broken, drawn, enrol, incidents, models, outcome, rows, walked
from .service.calls import asked as body
from .service.calls import local_time, problem
from .service.calls import outcome as reported
from .service.conftest import served
from .study import DRAWS
from .test_alarms import TIMES, goes, kinds


def test_promise_01_every_decision_is_answered_within_its_deadline(location, time, monkeypatch):
    trial = begun(location, time, protocol=agreed(deadline_ms=300))
    people = [f"p{number:02}" for number in range(1, 7)]
    enrol(trial, *people)
    for person in people:
        walked(trial, person, range(2))
    trial.update(reason="test")
    trial._core.states.forget()
    go = threading.Event()
    monkeypatch.setattr(states, "followed", lambda *_: go.wait(120) and broken())
    try:
        for call in served(trial, time):
            call.token("app")
            with ThreadPoolExecutor(len(people)) as pool:  # more than there are threads that compute or decide
                answers = list(pool.map(partial(call.decide, index=8), people))
            assert not go.is_set()  # no state has been computed, and yet everybody has an answer
            go.set()  # else the server would wait for them
    finally:
        go.set()
    assert [each.status_code for each in answers] == [201] * len(people)
    for answer in answers:
        assert answer.json()["rung"] != "policy"
        assert "300 ms" in answer.json()["rung_reason"]
    trial.close()


def test_promise_02_fallbacks_are_randomised_and_flagged(trial, monkeypatch):
    walked(trial)
    trial.update(reason="test")
    monkeypatch.setattr(states.States, "within", broken)
    last_good = [trial.decide(asked(index=index)) for index in range(10, 60)]
    monkeypatch.setattr(Core, "policy", broken)
    fixed = [trial.decide(asked(index=index)) for index in range(60, 110)]
    monkeypatch.undo()
    for rung, answers in (("last_good", last_good), ("fixed", fixed)):
        for answer in answers:
            assert answer.value["rung"] == rung
            assert "policy: ArithmeticError: broken" in answer.value["rung_reason"]
            assert answer.value["action"] == drawn(answer)
        chances = np.array([each.value["probability"] for each in answers])
        taken = sum(each.value["action"] for each in answers)
        # Draws are fixed by the key, so this is the same in every run; 4 standard deviations would be 6e-5.
        assert abs(taken - chances.sum()) < 4 * np.sqrt((chances * (1 - chances)).sum())
        assert 0 < taken < len(answers)
    assert {row["rung"] for row in rows(trial, "decisions")} == {"policy", "last_good", "fixed"}
    assert trial.replay().exact == 104


@pytest.mark.parametrize("delta", [-1000.0, 0.0, 1000.0])
def test_promise_03_probabilities_keep_within_their_limits_and_0_has_a_reason(location, time, monkeypatch, delta):
    trial = begun(location, time, protocol=agreed(burden={"delta": delta}))
    enrol(trial, "p01")
    walked(trial)
    trial.update(reason="test")
    rng = np.random.default_rng(3)
    for index in range(10, 30):
        trial.decide(asked(index=index, hour=float(rng.uniform(0, 24)), steps=float(rng.uniform(0, 728))))
    monkeypatch.setattr(states.States, "within", broken)
    trial.decide(asked(index=30))
    monkeypatch.undo()
    with pytest.raises(DecisionError, match="reasons must say why"):
        trial.decide(asked(index=31, available=False))
    trial.decide(asked(index=31, available=False, reasons=("asleep",)))
    chances = [trial.decision(row["decision_id"])[1] for row in rows(trial, "decisions")]
    assert all(0.2 <= float.fromhex(each["probability"]) <= 0.8 for each in chances[:-1])
    assert float.fromhex(chances[-1]["probability"]) == 0.0
    assert (chances[-1]["action"], chances[-1]["reasons"]) == (0, ["asleep"])
    if delta:
        assert {each["clipped"] for each in chances[:-1]} == {"lower" if delta > 0 else "upper"}
    trial.close()


def test_promise_04_the_record_of_a_decision_is_full(trial):
    walked(trial)
    trial.update(reason="test")
    answer = trial.decide(asked(index=8, steps=77.0))
    record = trial.decision(answer.value["decision_id"])[1]
    exact = {name: real(record[name]) for name in ("probability", "probability_of_action")}
    assert {name: record[name] for name in answer.value} | exact == answer.value
    assert record["context"] == {"hour": 8.0, "steps": 77.0}
    assert (record["policy_version"], record["model_id"]) == ("2", next(iter(models())))
    assert record["protocol_hash"] == trial.protocol.hash
    chance, number = (float.fromhex(record[name]) for name in ("probability", "draw"))
    assert number == Draws(DRAWS.key).number("walks", "p01", "walk", 8)
    assert record["action"] == int(number < chance)
    assert real(record["probability_of_action"]) == (chance if record["action"] else 1 - chance)
    assert answer.body == trial._core.ledger.get("decision", "p01/walk/8").response


def test_promise_05_the_same_request_gets_the_same_bytes(trial, location, time):
    for call in served(trial, time):
        call.token("app")
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(call.decide, ["p01"] * 12))
        assert sorted(each.status_code for each in answers) == [200] * 11 + [201]
        walked(trial, indices=range(1, 4))
        trial.update(reason="test")
        again = call.decide()
        assert again.headers["Idempotency-Replayed"] == "true"
        assert {each.content for each in (*answers, again)} == {again.content}
        assert problem(call.decide(steps=1.0)) == (422, "key-conflict")
        assert call.decide().content == again.content
    other = begun(location, time)
    assert other.decide(asked(hour=9.0)).body == again.content
    other.close()


def test_promise_06_late_and_corrected_outcomes_count_by_one_rule(location, time):
    trial = begun(location, time)
    orders = list(permutations(range(3)))
    people = [f"p{number}" for number in range(len(orders))]
    enrol(trial, *people)
    for person, order in zip(people, orders, strict=True):
        answer = trial.decide(asked(person))
        items = [
            outcome(answer, 1.0, name="first"),
            outcome(answer, 2.0, name="second", supersedes="first"),
            outcome(answer, 3.0, name="third", supersedes="second"),
        ]
        for number, turn in enumerate(order):
            assert trial.outcomes([items[turn]])[0].status == "stored"
            if number == 1:
                trial.update(reason="while some are on their way")
    trial.update(reason="when all are there")
    assert [row["outcome"] for row in rows(trial, "mrt")] == [3.0] * len(orders)
    with trial.reading() as state:
        versions = Versions(state)
        for person in people:
            (((used,),),) = [versions.batches(versions.active.version, person)]
            third = state.participants[person].outcomes[f"{person}/third"]
            assert used == third.sequence
    assert {row["why_not"] for row in rows(trial, "outcomes") if not row["counts"]} >= {
        f"superseded by {people[0]}/third"
    }
    trial.decide(asked(people[0], index=1))
    assert trial.replay().exact == len(orders) + 1
    trial.close()


def test_promise_07_updates_are_atomic_and_validated(trial, monkeypatch):
    walked(trial)
    append = Writer.append

    def torn(writer, kind, *more, **named):
        if kind == "policy-activated":
            raise NotRecorded("in the middle of the commit")
        return append(writer, kind, *more, **named)

    monkeypatch.setattr(Writer, "append", torn)
    assert trial.update(reason="torn").state == "failed"
    monkeypatch.undo()
    assert [each.version for each in trial.policies()] == ["1"]  # nothing of it, not even the policy without its turn
    monkeypatch.setattr(
        "kerneltrail.trial.learning.checked", lambda _, __, name, *more: [checks.Check("finite", False, "NaN", name)]
    )
    assert trial.update(reason="not sound").state == "refused"
    monkeypatch.undo()
    assert [each.active for each in trial.policies()] == [True]
    assert trial.decide(asked(index=8)).value["policy_version"] == "1"
    done = trial.update(reason="sound")
    assert {check.name for check in done.checks} >= {"finite", "bounded"}
    assert all(check.passed for check in done.checks)
    assert trial.decide(asked(index=9)).value["policy_version"] == "2"


def test_promise_08_decisions_are_served_during_updates(trial, time, monkeypatch):
    walked(trial)
    go, learn = threading.Event(), updating.learn
    monkeypatch.setattr(updating, "learn", lambda *given: go.wait(120) and learn(*given))
    for call in served(trial, time):
        started = call("POST", "updates", {"reason": "test"}, scope="operator").json()["id"]
        during = [call.decide(index=index).json() for index in range(8, 12)]
        state = call("GET", f"updates/{started}", scope="operator").json()["state"]
        go.set()
        call.until(lambda name=started: trial.updated(name).state == "done")
        after = call.decide(index=12).json()
    assert state == "running"
    assert {(each["policy_version"], each["rung"]) for each in during} == {("1", "policy")}
    assert (after["policy_version"], after["rung"]) == ("2", "policy")


def test_promise_09_missing_is_not_zero(location, time):
    trial = begun(location, time, protocol=agreed(covariates={"hour": {}, "steps": {"missing": "last_seen"}}))
    enrol(trial, "p01")
    answers = [trial.decide(asked(index=index)) for index in range(3)]
    trial.outcomes([outcome(answers[0], 0.0), outcome(answers[1], None)])
    done = trial.update(reason="test")
    assert (done.rows, done.left_out) == (1, {"no outcome": 1, "outcome missing": 1})
    assert [row["outcome"] for row in rows(trial, "mrt")] == [0.0, None, None]
    unknown, zero = trial.decide(asked(index=4, steps=None)), trial.decide(asked(index=5, steps=0.0))
    contexts = [trial.decision(each.value["decision_id"])[1]["context"]["steps"] for each in (unknown, zero)]
    assert contexts == [None, 0.0]  # as it came
    assert [bool(each.value["imputed"]) for each in (unknown, zero)] == [True, False]
    trial.close()


def test_promise_10_undelivered_is_not_untreated(trial):
    answers = walked(trial, indices=range(8))
    sent = [each for each in answers if each.value["action"]]
    trial.deliver(sent[0].value["decision_id"], status="failed", at=None, delivered_action=0)
    trial.deliver(sent[1].value["decision_id"], status="delivered", at=BEGIN, delivered_action=1)
    trial.update(reason="test")
    shown = {row["decision_id"]: (row["action"], row["delivered_action"]) for row in rows(trial, "decisions")}
    assert [shown[each.value["decision_id"]] for each in sent[:3]] == [(1, 0), (1, 1), (1, None)]
    assigned = [each.value["action"] for each in answers]
    assert [row["treatment"] for row in rows(trial, "mrt")] == assigned
    with trial.reading() as state:
        versions = Versions(state)
        user = trial._core.user(state.participants["p01"], versions, versions.active)
    assert user.state.kept.action.tolist() == assigned


def test_promise_11_a_restart_changes_nothing_and_replay_reproduces_all(trial, location, time):
    walked(trial)
    trial.update(reason="one")
    trial.decide(asked(index=8))
    before = trial._core.ledger.head()
    again = begun(location, time)
    assert again._core.ledger.head() == before
    assert again.update(reason="dry", dry_run=True) == trial.update(reason="dry", dry_run=True)
    ours, theirs = trial.decide(asked(index=9)), again.decide(asked(index=10, hour=20.0, at=BEGIN))
    assert ours.value["composition"] == theirs.value["composition"]
    replayed = again.replay()
    assert (replayed.exact, replayed.different) == (7, 0)
    again.close()
    with pytest.raises(TrialError):  # a replay with another key would be another trial
        begun(location, time, key=bytes(32))


def test_promise_12_withdrawal_and_removal_can_be_traced(trial, location, time, tmp_path):
    trial.close()
    trial = begun(location, time, backups=tmp_path / "copies")
    walked(trial)
    walked(trial, "p02")
    trial.update(reason="test")
    trial.event("p01", "withdraw", at=BEGIN + timedelta(days=5), reason="moved")
    with pytest.raises(NotActive, match="withdrawn"):
        trial.decide(asked(index=30))
    done = trial.remove("p02", reason="asked for it", by="ann")
    assert [path.name.endswith(("before-update-1.db", "before-update-1.jsonl")) for path in done.backups] == [True]
    (left,) = trial.participant("p01").changes[-1:]
    assert (left.status, left.reason) == ("withdrawn", "moved")
    entries = [each for each in trial._core.ledger.entries(participant="p02") if each.kind != "removal"]
    assert entries
    assert all(each.content is None and each.response is None for each in entries)
    entry = trial._core.ledger.get("removal", "p02")
    assert (entry.payload["reason"], entry.payload["by"]) == ("asked for it", "ann")
    with trial.reading() as state:  # policies that were learnt with them can still be named
        assert [each.version for each in Versions(state).by_name.values() if "p02" in each.stored["participants"]] == [
            "2"
        ]
    assert not any("p02" in row.values() for row in rows(trial, "decisions"))
    assert (trial.replay().removed, trial.replay().different) == (4, 0)
    assert trial.verify().sound
    trial.close()


def test_promise_13_the_protocol_is_frozen_and_changes_are_versions(trial, location, time):
    changed = agreed(burden={"delta": 0.25})
    with pytest.raises(TrialError):
        begun(location, time, protocol=changed)  # a server that is started with another file
    for missing in ({"reason": "", "by": "ann"}, {"reason": "too many", "by": ""}):
        with pytest.raises(TrialError):
            trial.freeze(changed, **missing)
    before = trial.decide(asked())
    trial.freeze(changed, reason="too many prompts", by="ann")
    after = trial.decide(asked(index=1))
    hashes = [trial.decision(each.value["decision_id"])[1]["protocol_hash"] for each in (before, after)]
    assert hashes == [agreed().hash, changed.hash]
    with trial.reading() as state:
        assert [each.hash for each in state.protocols] == hashes
        assert (state.protocols[-1].payload["reason"], state.protocols[-1].payload["by"]) == ("too many prompts", "ann")
    assert trial.replay().exact == 2


def test_promise_14_somebody_is_told_of_whatever_goes_wrong(location, monkeypatch):
    time = Time(datetime(2026, 3, 1, tzinfo=UTC))
    trial = begun(location, time, protocol=agreed(updates={"every": 3}, burden={"delta": 1000.0}))
    enrol(trial, "p01")
    index = goes(trial, time, 1)
    assert kinds(trial) == []
    for day in range(2, 18):  # outcomes on which no prediction is right
        for clock in TIMES:
            time.now = datetime(2026, 3, day, int(clock[:2]) - 1, int(clock[3:]), tzinfo=UTC)
            answer = trial.decide(asked(index=index, at=time.now))
            trial.outcomes([outcome(answer, 40.0 * (-1) ** index)])
            index += 1
    trial.update(reason="test")
    time.now = datetime(2026, 3, 18, tzinfo=UTC)
    enrol(trial, "p02", starts_on=date(2026, 3, 18))  # who never calls
    index = goes(trial, time, 3, first=index)
    index = goes(trial, time, 4, first=index, answers=False)
    monkeypatch.setattr(Core, "policy", broken)
    for later in range(12):
        trial.decide(asked(index=index + later, at=time.now + timedelta(hours=3)))  # a clock that is ahead
    monkeypatch.undo()
    with pytest.raises(KeyConflict):
        trial.decide(asked(index=index, at=time.now))
    expected = [
        "calibration", "clock-skew", "conflict", "fallback-rate", "missed-calls", "missed-update", "missing-outcomes",
        "silence", "stuck-at-limit",
    ]  # fmt: skip
    assert sorted(set(kinds(trial))) == expected
    trial.watch()
    assert sorted({each.payload["kind"] for each in trial.incidents()}) == expected
    assert trial.status().light == "red"
    trial.close()


def test_promise_15_mean_and_25th_percentile_over_participants_are_reported(location, time):
    trial = begun(location, time)
    assert trial.status().outcome is None
    values = {"p01": [1.0, 2.0, None], "p02": [5.0], "p03": [0.0, 1.0], "p04": [None], "p05": [9.0], "p06": [3.0]}
    enrol(trial, *values)
    for person, several in values.items():
        for index, value in enumerate(several):
            trial.outcomes([outcome(trial.decide(asked(person, index)), value)])
    trial.remove("p05", reason="asked")
    means = [1.5, 5.0, 0.5, 3.0]
    assert trial.status().outcome == (np.mean(means), np.quantile(means, 0.25))
    assert f"a quarter lie below {np.quantile(means, 0.25):.4g}" in " ".join(lines(trial.status()))
    trial.freeze(agreed(better="lower"), reason="it is stress", by="ann")
    assert trial.status().outcome == (np.mean(means), np.quantile(means, 0.75))
    assert f"a quarter lie above {np.quantile(means, 0.75):.4g}" in " ".join(lines(trial.status()))
    trial.close()


def test_promise_16_a_copy_is_made_before_each_update_and_can_be_restored(trial, location, time, tmp_path, postgresql):
    trial.close()
    trial = begun(location, time, backups=tmp_path / "copies")
    for number in range(2):
        walked(trial, indices=range(4 * number, 4 * number + 4))
        trial.update(reason="test")
        time.go(hours=1)
    copies = sorted((tmp_path / "copies").iterdir())
    assert len(copies) == 2
    trial.close()
    goal = postgresql if "sqlite" in str(trial._core.ledger.database.url) else tmp_path / "restored.db"
    restore(copies[1], goal)
    drill = begun(goal, time, backups=tmp_path / "more")
    assert drill.verify().sound
    assert drill.replay().exact == 8
    assert [each.version for each in drill.policies()] == ["1", "2"]  # as it was before the second
    assert drill.update(reason="again").version == "3"
    assert drill.decide(asked(index=20)).value["rung"] == "policy"
    drill.close()


def test_promise_17_what_breaks_is_refused_in_words_or_waits_and_nothing_is_lost(trial, location, time):
    for call in served(trial, time):
        first = call.decide()
        assert problem(call.decide("nobody")) == (404, "unknown")
        content = json.dumps(body(1, steps=nan))
        refused = call(
            "PUT", "participants/p01/decisions/walk/1", content=content, headers={"Content-Type": "application/json"}
        )
        assert problem(refused)[0] in (400, 422)
        empty = call("POST", "outcomes", {"items": []})
        assert (empty.status_code, empty.json()["items"]) == (200, [])
        assert trial.update(reason="nothing").state == "empty"
        other = begun(location, time)  # a second worker
        assert other.decide(asked(hour=9.0)).body == first.content
        other.outcomes([reported(first.json(), 2.0)])
        spring = [
            local_time(call, index, datetime(2026, 3, 29, hour, 30, tzinfo=UTC)) for index, hour in ((2, 0), (3, 1))
        ]
        assert [each[11:] for each in spring] == ["01:30:00+01:00", "03:30:00+02:00"]  # there is no half past two
        assert other.update(reason="test").rows == 1
        assert call.decide(index=5).json()["policy_version"] == "2"
        other.close()
    assert trial.replay().exact == 4
    assert trial.verify().sound
    assert not incidents(trial, "conflict")

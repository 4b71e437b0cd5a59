"""Updates of the policy: what enters, what is left out, what is checked, and what a failed one leaves behind."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from kerneltrail.errors import TrialError, UnknownName
from kerneltrail.gp import Reward
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trial import checks, states, updating
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.versions import Versions
from trajectory.small import small_model

from .running import agreed, asked, begun, enrol, incidents, models, outcome, walked


def test_late_and_corrected_outcomes_by_one_rule(trial, time):
    answers = walked(trial, indices=range(3), time=time)
    late = trial.decide(asked(index=3))
    walked(trial, indices=range(4, 6), time=time)
    first = trial.update(reason="first")
    assert (first.state, first.rows, first.left_out) == ("done", 5, {"no outcome": 1})
    assert first.words == "5 new rows entered, of 1 participant. In all so far, 1 decision has no outcome."
    trial.outcomes([outcome(late, 1.4)])
    second = trial.update(reason="late")
    assert (second.rows, second.rebuilt) == (1, ())
    assert "1 row came late" in second.words
    trial.outcomes([outcome(answers[1], 9.0, name="better", supersedes="o1")])
    third = trial.update(reason="corrected")
    assert (third.rows, third.rebuilt) == (1, ("p01",))
    assert third.words == (
        "1 new or corrected row entered, of 1 participant. After a correction p01 was computed anew. "
        "In all so far, 1 outcome was replaced by a later one."
    )
    with trial.reading() as state:
        shapes = [[len(batch) for batch in each] for each in _batches(state)]
    assert shapes == [[], [5], [5, 1], [5, 1]]
    trial.outcomes([outcome(answers[1], None, name="none", supersedes="better")])
    fourth = trial.update(reason="withdrawn value")
    assert (fourth.state, fourth.rows, fourth.rebuilt) == ("done", 0, ("p01",))
    with trial.reading() as state:
        assert [len(batch) for batch in _batches(state)[-1]] == [4, 1]
    trial.decide(asked(index=6))
    assert trial.replay().exact == 7


def _batches(state):
    versions = Versions(state)
    return [versions.batches(version, "p01") for version in versions.by_name]


def test_an_empty_batch_changes_nothing_and_says_so(trial):
    done = trial.update(reason="nothing to learn")
    assert (done.state, done.version, done.words) == ("empty", None, "There is nothing new, so nothing changes.")
    assert [each.version for each in trial.policies()] == ["1"]
    assert trial.updated(done.id) == done


def test_a_dry_run_records_nothing(trial):
    walked(trial)
    before = trial._core.ledger.head()
    dry = trial.update(reason="try", dry_run=True)
    assert (dry.state, dry.rows, dry.version) == ("done", 4, None)
    assert trial._core.ledger.head() == before
    assert trial.update(reason="now").checks == dry.checks


@pytest.mark.parametrize("part", ["learn", "finish"])
def test_an_update_that_fails_leaves_the_old_policy(trial, monkeypatch, part):
    walked(trial)

    def broken(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(f"kerneltrail.trial.updating.{part}", broken)
    done = trial.update(reason="test")
    assert done.state == "failed"
    assert "RuntimeError: out of luck" in done.words
    assert [each.payload["severity"] for each in incidents(trial, "update-failed")] == ["error"]
    assert trial.decide(asked(index=9)).value["policy_version"] == "1"
    monkeypatch.undo()
    assert trial.update(reason="again").version == "2"


def test_who_fails_a_check_is_held_back_and_the_others_go_on(trial, monkeypatch):
    walked(trial)
    walked(trial, "p02")
    real = checks.checked

    def suspicious(protocol, policy, name, *more):
        return (
            [checks.Check("bounded", False, "too large", name)]
            if name == "p02"
            else real(protocol, policy, name, *more)
        )

    monkeypatch.setattr("kerneltrail.trial.learning.checked", suspicious)
    done = trial.update(reason="test")
    assert (done.state, done.held, done.rows) == ("done", ("p02",), 4)
    assert [each.participant for each in incidents(trial, "held-back")] == ["p02"]
    assert trial.decide(asked(index=9)).value["composition"] is not None
    assert trial.decide(asked("p02", index=9)).value["composition"] is None
    monkeypatch.undo()
    assert trial.update(reason="again").rows == 4
    assert trial.replay().same


def test_a_large_shift_is_reported_and_not_refused(location, time):
    stated = agreed(updates={"by_hand": True, "largest_shift": 0.0001})
    trial = begun(location, time, protocol=stated)
    enrol(trial, "p01")
    walked(trial)
    assert trial.update(reason="test").state == "done"
    assert len(incidents(trial, "large-shift")) == 1
    trial.close()


def test_a_rollback_lets_the_earlier_version_serve_and_updates_go_on_from_it(trial):
    walked(trial)
    trial.update(reason="one")
    assert trial.activate("1", reason="doubts", expected="2").new
    assert trial.activate("1", reason="doubts").repeated
    with pytest.raises(TrialError, match="policy 1 serves, not 2"):
        trial.activate("2", reason="x", expected="2")
    with pytest.raises(UnknownName):
        trial.activate("7", reason="x")
    assert trial.decide(asked(index=5)).value["policy_version"] == "1"
    done = trial.update(reason="again")
    assert (done.version, done.base, done.rows) == ("3", "1", 4)
    assert [each.active for each in trial.policies()] == [False, False, True]
    assert trial.replay().same


def test_an_update_as_of_a_time_leaves_out_what_came_later(trial, time):
    walked(trial, indices=range(2))
    then = time.go(hours=1)
    time.go(hours=1)
    walked(trial, indices=range(2, 5))
    assert trial.update(reason="yesterday", as_of=then).rows == 2
    assert trial.update(reason="today").rows == 3
    with pytest.raises(TrialError, match="before that"):
        trial.update(reason="too early", as_of=then - timedelta(hours=2))


def test_with_another_model_everybody_is_followed_anew_with_the_same_batches(location, time):
    other = small_model(reward=Reward(("hour",), advantage_variance=0.9, constant_variance=1.0, typical=0.5))
    trial = begun(location, time, models={**models(), fingerprint(other): other})
    enrol(trial, "p01")
    walked(trial)
    trial.update(reason="one")
    before = trial.decide(asked(index=5))
    changed = Protocol.from_json({**agreed().to_json(), **_of(other)})
    trial.freeze(changed, reason="a better model", by="ann")
    after = trial.decide(asked(index=6))
    assert (before.value["policy_version"], after.value["policy_version"]) == ("2", "3")
    assert after.value["model_id"] == fingerprint(other) != before.value["model_id"]
    assert after.value["composition"] is not None
    with trial.reading() as state:
        assert _batches(state)[2] == _batches(state)[1] != ()
    walked(trial, indices=range(7, 9))
    assert trial.update(reason="two").base == "3"
    trial.decide(asked(index=10))
    assert trial.replay().exact == 9
    trial.close()


def _of(model):
    stated = Protocol.from_model(model, trial="walks", commitment=agreed().draw.commitment).to_json()
    return {name: stated[name] for name in ("model", "allocation")}


def test_what_was_recorded_meanwhile_is_read_before_the_end_is_recorded(trial, location, time, monkeypatch):
    walked(trial)
    id = updating.begin(trial._core, "test", None, "")
    other, learn, finish = begun(location, time), updating.learn, updating.finish
    known, last, where = [], [], []

    def learnt(core, job):
        result = learn(core, job)
        other.decide(asked(index=8))
        last.append(other._core.ledger.head().sequence)
        return result

    def finished(core, *given):
        known.append(core._folded._state.sequence)
        where.append(threading.current_thread().name)
        return finish(core, *given)

    monkeypatch.setattr(updating, "learn", learnt)
    monkeypatch.setattr(updating, "finish", finished)
    with ThreadPoolExecutor(1, thread_name_prefix="aside") as pool:
        done = trial.complete(id, lambda call: pool.submit(call).result())
    assert done.state == "done"
    assert known == last
    assert where == [threading.current_thread().name]
    other.close()


def test_decisions_do_not_wait_for_a_replay(trial, monkeypatch):
    walked(trial)
    trial.update(reason="one")
    trial.decide(asked(index=5))
    entered, go, real = threading.Event(), threading.Event(), states.followed

    def slow(*given):
        entered.set()
        assert go.wait(60)
        return real(*given)

    monkeypatch.setattr(states, "followed", slow)
    with ThreadPoolExecutor(1) as pool:
        replayed = pool.submit(trial.replay)
        assert entered.wait(60)
        assert trial.decide(asked(index=6)).value["rung"] == "policy"
        go.set()
        assert replayed.result(60).exact == 5  # as the ledger was when it began

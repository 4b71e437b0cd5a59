"""What a trial promises, as far as it needs no network: on SQLite and on PostgreSQL."""

from datetime import UTC, date, datetime, timedelta, timezone
from time import monotonic

import pytest

from kerneltrail.errors import (
    DataError,
    DecisionError,
    KeyConflict,
    NotActive,
    ParticipantRemoved,
    RevisionNeeded,
    StaleRevision,
    TrialError,
    UnknownName,
)
from kerneltrail.store.canonical import real
from kerneltrail.trial.standing import lines

from .running import BEGIN, Time, agreed, asked, begun, enrol, incidents, models, outcome, walked


def time():
    return Time()


def trial(location, time):
    opened = begun(location, time)
    enrol(opened, "p01", "p02")
    yield opened
    opened.close()


def test_a_decision_is_recorded_in_full_and_answered_with_what_was_recorded(trial):
    answer = trial.decide(asked())
    key, record = trial.decision(answer.value["decision_id"])
    assert answer.new
    assert answer.body == trial._core.ledger.get("decision", key).response
    for name, value in answer.value.items():
        assert (real(record[name]) if name.startswith("probability") else record[name]) == value
    assert record["until"] == answer.sequence - 1
    for name in ("probability", "draw", "raw", "arrived", "context", "protocol_hash", "dose"):
        assert record[name] is not None
    assert answer.value["policy_version"] == "1"
    assert trial.decision(key)[0] == key


def test_the_same_request_gets_the_same_bytes_whatever_happened_since(trial, location, time):
    first = trial.decide(asked())
    walked(trial, indices=range(1, 5))
    trial.update(reason="test")
    again = trial.decide(asked())
    assert (again.body, again.repeated, again.sequence) == (first.body, True, first.sequence)
    zone = asked(at=BEGIN.astimezone(timezone(timedelta(hours=5))), hour=8.0)  # the same instant in another zone
    assert trial.decide(zone).body == first.body
    other = begun(location, time)
    assert other.decide(asked()).body == first.body
    other.close()


def test_the_same_decision_with_another_payload_is_a_conflict_and_an_incident(trial):
    first = trial.decide(asked())
    for _ in range(2):
        with pytest.raises(KeyConflict, match="differ in context"):
            trial.decide(asked(steps=121.0))
    assert len(incidents(trial, "conflict")) == 1
    assert trial.decide(asked()).body == first.body
    with pytest.raises(KeyConflict):
        trial.decide(asked(steps=float("nan")))


def test_refused_requests_leave_nothing_in_the_record(trial):
    before = trial._core.ledger.head()
    with pytest.raises(DecisionError, match=r"context\.steps"):
        trial.decide(asked(steps=float("nan")))
    with pytest.raises(DecisionError, match="time zone"):
        trial.decide(asked(at=datetime(2026, 3, 1, 8)))
    with pytest.raises(UnknownName, match="p03"):
        trial.decide(asked("p03"))
    assert trial._core.ledger.head() == before


def test_probabilities_keep_within_their_limits_and_are_0_only_where_nobody_could_act(trial, time):
    answers = walked(trial, indices=range(6), time=time)
    trial.update(reason="test")
    answers += [trial.decide(asked(index=6 + i, steps=60.0 * i)) for i in range(6)]
    assert all(0.2 <= each.value["probability"] <= 0.8 for each in answers)
    asleep = trial.decide(asked(index=20, available=False, reasons=("asleep",)))
    assert (asleep.value["probability"], asleep.value["action"], asleep.value["reasons"]) == (0, 0, ["asleep"])
    assert asleep.value["rung"] == "unavailable"


def test_outcomes_item_by_item(trial):
    first, second = trial.decide(asked()), trial.decide(asked(index=1))
    items = [
        outcome(first, 3.5),
        outcome(second, None),
        outcome(first, float("nan"), name="a"),
        outcome(first, 10**400, name="a"),
        outcome(first, True, name="a"),
        outcome(first, 1.0, name="a", participant="p02"),
        outcome(first, 1.0, name="a", participant="p03"),
        outcome(first, 1.0, name="a", decision="no"),
        outcome(first, 1.0, name="a", decision=["no"]),
        outcome(first, 1.0, name="a", observed_at="2026-03-01T12:00:00"),
        outcome(first, 1.0, name="a", vlaue=1),
        outcome(first, 1.0, name="a", supersedes="a"),
        {"client_id": "b"},
        "c",
    ]
    found = trial.outcomes(items)
    assert [each.status for each in found] == ["stored", "stored", *["refused"] * 12]
    assert all(each.reason for each in found[2:])
    again = trial.outcomes([items[0], outcome(first, 3.6), outcome(first, 3.6, name="c", supersedes="o0")])
    assert [each.status for each in again] == ["duplicate", "refused", "stored"]
    assert len(incidents(trial, "conflict")) == 1
    counting = trial.participant("p01").current().values()
    assert sorted(each.value for each in counting if each.value is not None) == [3.6]


def test_missing_is_not_zero(trial):
    answers = [trial.decide(asked(index=i)) for i in range(3)]
    trial.outcomes([outcome(answers[0], 0.0), outcome(answers[1], None)])
    done = trial.update(reason="test")
    assert (done.state, done.rows, done.version) == ("done", 1, "2")
    assert done.left_out == {"no outcome": 1, "outcome missing": 1}


def test_undelivered_is_not_untreated(trial):
    answers = [trial.decide(asked(index=i)) for i in range(12)]
    one = next(each for each in answers if each.value["action"])
    none = next(each for each in answers if not each.value["action"])
    done = trial.deliver(one.value["decision_id"], status="failed", at=None, delivered_action=0)
    assert (done.value["assigned_action"], done.value["delivered_action"]) == (1, 0)
    trial.deliver(none.value["decision_id"], status="unknown", at=None, delivered_action=None)
    assert trial.deliver(one.value["decision_id"], status="failed", at=None, delivered_action=0).body == done.body
    with pytest.raises(KeyConflict):
        trial.deliver(one.value["decision_id"], status="failed", at=None, delivered_action=1)
    trial.deliver(none.value["decision_id"], status="seen", at=BEGIN, delivered_action=1)
    assert [each.participant for each in incidents(trial, "delivered-otherwise")] == ["p01"]
    trial.outcomes([outcome(one, 2.0)])
    trial.update(reason="test")
    with trial.reading() as state:
        core, person = trial._core, state.participants["p01"]
        user = core.states.get(
            next(iter(models())), "p01", ((person.outcomes["p01/o" + str(one.value["index"])].sequence,),)
        )
    assert user.state.kept.action.tolist() == [1.0]  # what was assigned is the treatment


def test_the_dose_counts_what_was_delivered(location, time):
    trial = begun(location, time, protocol=agreed(burden={"per_dose": 0.1}))
    enrol(trial, "p01")
    answers = [trial.decide(asked(index=i)) for i in range(6)]
    sent = [each.value["action"] for each in answers]
    last = max(i for i, action in enumerate(sent) if action)
    trial.deliver(answers[last].value["decision_id"], status="failed", at=None, delivered_action=0)
    after = trial.decide(asked(index=6))
    sent[last] = 0
    dose = 0.0
    for each in sent:
        dose = 0.95 * dose + each
    record = trial.decision(after.value["decision_id"])[1]
    assert float.fromhex(record["dose"]) == dose
    # A decision that was made earlier, though it is recorded later, knows nothing of it.
    early = trial.decide(asked(index=7, at=BEGIN - timedelta(hours=3)))
    assert float.fromhex(trial.decision(early.value["decision_id"])[1]["dose"]) == 0.0
    assert trial.replay().same
    trial.close()


def test_withdrawal_and_removal_can_be_traced_and_replay_says_removed(trial, tmp_path):
    walked(trial)
    walked(trial, "p02")
    trial.update(reason="test")
    walked(trial, "p02", range(4, 6))
    trial.event("p01", "pause", at=BEGIN + timedelta(days=3), reason="holiday")
    with pytest.raises(NotActive, match="paused") as paused:
        trial.decide(asked(index=9))
    assert paused.value.status == "paused"
    with pytest.raises(NotActive):
        trial.event("p01", "pause", at=BEGIN + timedelta(days=4))
    trial.event("p01", "resume", at=BEGIN + timedelta(days=4))
    assert trial.decide(asked(index=10)).new
    trial.event("p01", "withdraw", at=BEGIN + timedelta(days=5), reason="moved")
    with pytest.raises(NotActive, match="withdrawn") as gone:
        trial.decide(asked(index=12))
    assert gone.value.status == "withdrawn"
    assert trial.decide(asked(index=10)).repeated  # what was decided stays known
    done = trial.remove("p02", reason="asked for it", by="ann")
    assert done.new
    assert done.payloads > 6
    with pytest.raises(UnknownName):
        trial.remove("p09", reason="x")
    replayed = trial.replay()
    assert (replayed.removed, replayed.different, replayed.equal) == (6, 0, 5)
    assert "6 were removed" in str(replayed)
    assert trial.verify().sound
    assert trial.update(reason="after").state == "empty"


def test_a_protocol_is_frozen_and_its_changes_are_versions_with_reason_and_name(trial, time):
    walked(trial)
    changed = agreed(burden={"delta": 0.25})
    with pytest.raises(TrialError, match="needs a reason"):
        trial.freeze(changed)
    before = trial.decide(asked(index=5))
    assert trial.freeze(changed, reason="too many prompts", by="ann").new
    assert trial.freeze(changed).repeated
    after = trial.decide(asked(index=6))
    key = "protocol_hash"
    assert trial.decision(before.value["decision_id"])[1][key] == agreed().hash
    assert trial.decision(after.value["decision_id"])[1][key] == changed.hash == trial.protocol.hash
    assert trial.replay().exact == 6


def test_a_trial_in_which_a_lower_outcome_is_better_replays_and_so_does_what_came_before(trial):
    walked(trial)
    trial.update(reason="by hand")
    before = trial.decide(asked(index=5, hour=9.0))
    assert trial.freeze(agreed(better="lower"), reason="it is stress", by="ann").new
    after = trial.decide(asked(index=6, hour=9.0))
    first, second = (trial.decision(each.value["decision_id"])[1] for each in (before, after))
    assert "better" not in trial.snapshot().protocols[0].payload["protocol"]["reward"]
    assert second["advantage_parts"] == first["advantage_parts"]
    assert abs(second["advantage"]["mean"]) > 0.01
    up = float.fromhex(second["probability"]) > float.fromhex(first["probability"])
    assert up == (second["advantage"]["mean"] < 0.0)
    trial.update(reason="again")
    replayed = trial.replay()
    assert (replayed.exact, replayed.different) == (6, 0)
    assert trial.verify().sound
    assert trial.status().better == "lower"


def test_nobody_decides_outside_their_time(trial):
    for at, status in ((BEGIN - timedelta(days=2), "early"), (BEGIN + timedelta(days=100), "ended")):
        with pytest.raises(NotActive) as refused:
            trial.decide(asked(index=3, at=at))
        assert refused.value.status == status


def test_decisions_over_a_change_of_clocks_are_on_the_participants_clock(trial, time):
    # In Zurich clocks go forward on 29 March 2026 at 02:00.
    for index, day in enumerate((28, 29, 30)):
        time.now = datetime(2026, 3, day, 7, tzinfo=UTC)
        record = trial.decision(trial.decide(asked(index=index, at=time.now)).value["decision_id"])[1]
        assert (
            record["decided_at"]
            == f"2026-03-{day}T{'08' if day == 28 else '09'}:00:00+{'01' if day == 28 else '02'}:00"
        )
    assert trial.replay().exact == 3


def test_what_is_drawn_ahead_stands(trial):
    requests = [asked(index=i) for i in range(3)]
    drawn = trial.schedule(requests)
    assert [each.new for each in drawn] == [True] * 3
    assert [each.body for each in trial.schedule(requests)] == [each.body for each in drawn]
    online = trial.decide(asked(index=1, steps=333.0))
    assert (online.body, online.repeated) == (drawn[1].body, True)
    assert trial.replay().exact == 3
    with pytest.raises(KeyConflict, match="ask for the others alone"):
        trial.schedule([asked(index=2), asked(index=4)])
    with pytest.raises(NotActive):  # all or nothing
        trial.schedule([asked(index=5), asked(index=6, at=BEGIN + timedelta(days=200))])
    assert len(trial.participant("p01").decisions) == 3
    assert trial.schedule([asked(index=4)])[0].new


def test_what_the_app_drew_is_recorded_with_its_probability(trial):
    answer = trial.report(asked(), action=1, probability=0.5, reason="not recorded")
    assert (answer.value["rung"], answer.value["drawn_by"], answer.value["action"]) == ("fixed", "app", 1)
    assert trial.report(asked(), action=1, probability=0.5, reason="not recorded").repeated
    with pytest.raises(KeyConflict):
        trial.report(asked(), action=0, probability=0.5, reason="not recorded")
    with pytest.raises(DecisionError, match="limits"):
        trial.report(asked(index=1), action=1, probability=0.9, reason="x")
    trial.outcomes([outcome(answer, 2.0)])
    assert trial.update(reason="test").rows == 1
    assert (trial.replay().not_here, trial.replay().same) == (1, True)


def test_enrolment_has_revisions(trial):
    facts = {"timezone": "Europe/Zurich", "starts_on": date(2026, 3, 1), "ends_on": date(2026, 6, 1)}
    first = trial.enrol("p01", **facts)
    assert (first.repeated, trial.participant("p01").revision) == (True, first.sequence)
    longer = {**facts, "ends_on": date(2026, 7, 1)}
    with pytest.raises(RevisionNeeded):
        trial.enrol("p01", **longer)
    second = trial.enrol("p01", **longer, revision=first.sequence)
    assert (second.new, trial.participant("p01").revision) == (True, second.sequence)
    with pytest.raises(StaleRevision):
        trial.enrol("p01", **facts, revision=first.sequence)
    with pytest.raises(StaleRevision):
        trial.enrol("p09", **facts, revision=1)
    for wrong in ({"timezone": "Zurich"}, {"ends_on": date(2026, 1, 1)}, {"starts_on": "2026-03-01"}):
        with pytest.raises(DataError):
            trial.enrol("p09", **{**facts, **wrong})
    assert trial.decide(asked(index=200)).new  # a day in June that only the longer time has


def test_observations_are_kept_as_they_came(trial):
    item = {"client_id": "w1", "participant": "p01", "observed_at": "2026-03-01T12:00:00Z", "values": {"weight": 71.5}}
    assert [each.status for each in trial.observe([item, item, {**item, "values": {"weight": float("nan")}}])] == [
        "stored", "duplicate", "refused",
    ]  # fmt: skip
    assert trial.participant("p01").observations[0].payload["values"] == {"weight": 71.5}
    trial.remove("p01", reason="asked")
    assert [each.status for each in trial.observe([{**item, "client_id": "w2"}])] == ["refused"]
    with pytest.raises(ParticipantRemoved):
        trial.decide(asked())
    with pytest.raises(ParticipantRemoved):
        trial.enrol("p01", timezone="UTC", starts_on=date(2026, 3, 1))


def test_a_call_that_has_waited_too_long_is_answered_by_the_ladder(trial):
    late = trial.decide(asked(), began=monotonic() - trial.protocol.deadline_ms / 1000.0)
    assert late.value["rung"] == "fixed"
    assert late.value["probability"] == trial.protocol.fallback.fixed
    assert trial.decide(asked(index=1), began=monotonic()).value["rung"] == "policy"


def test_a_key_may_expire_at_a_time_with_a_zone(trial):
    made = trial.create_key(["app"], expires_at=BEGIN + timedelta(days=30))
    assert trial.key_of(made.token).payload["expires_at"] == (BEGIN + timedelta(days=30)).isoformat()
    with pytest.raises(DataError, match="needs a time zone"):
        trial.create_key(["app"], expires_at=datetime(2026, 3, 1))


def test_a_trial_before_its_first_decision_is_stated(trial):
    words = lines(trial.status())
    assert any(line.startswith("Decisions in 24 hours: none") for line in words)


@pytest.mark.parametrize("name", [".", ".."])
def test_a_participant_whose_name_leads_elsewhere_in_an_address_is_not_enrolled(trial, name):
    with pytest.raises(DataError, match="take another id"):
        enrol(trial, name)
    enrol(trial, "...", f"{name}a")
    assert name not in trial.snapshot().participants

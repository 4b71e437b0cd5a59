"""What entries come to: by naive oracles, and the same whether one goes on or begins anew."""

import copy
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.errors import KeyConflict, LedgerError, ParticipantRemoved
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.copies import backup, restore
from kerneltrail.trial.ledger.folds import Folded, State, fold
from kerneltrail.trial.ledger.participant import Outcome, sifted
from trial.ledger.examples import decision, delivery, enrolled, outcome, put


@pytest.fixture
def ledger(tmp_path, clock):
    """Folds know nothing of databases, so that one will do."""
    with Ledger(tmp_path / "ledger.db", "walking", clock=clock) as opened:
        yield opened


def state_of(ledger):
    return fold(ledger.trial, ledger.entries())


class TestOutcomes:
    def test_a_decision_is_joined_with_its_outcome_in_the_order_of_time(self, ledger):
        for index in (3, 1, 2):
            put(ledger, decision(index=index))
        put(ledger, outcome(index=2, value=7))
        put(ledger, outcome(index=3, value=None))
        inputs = state_of(ledger).participants["p1"].inputs()
        assert [(each.decision.payload["index"], each.outcome and each.outcome.value) for each in inputs] == [
            (1, None),
            (2, 7.0),
            (3, None),
        ]
        assert inputs[0].outcome is None  # nothing came
        assert inputs[2].outcome is not None  # somebody looked, and it was missing

    def test_a_correction_counts_also_if_it_came_first(self, ledger):
        put(ledger, decision())
        put(ledger, outcome(key="late-correction", value=5, supersedes="original"))
        put(ledger, outcome(key="original", value=4))
        person = state_of(ledger).participants["p1"]
        assert list(person.current()) == ["late-correction"]
        assert person.left_out() == {"original": "superseded by late-correction"}

    def test_of_two_for_one_decision_the_one_recorded_last_counts(self, ledger):
        put(ledger, outcome(key="a", value=4))
        put(ledger, outcome(key="b", value=5))
        person = state_of(ledger).participants["p1"]
        assert [each.value for each in person.current().values()] == [5]
        assert person.left_out() == {"a": "recorded before b, for the same decision"}

    def test_outcomes_of_no_decision_all_count(self, ledger):
        for key in "ab":
            put(ledger, outcome(key=key, decision=None))
        assert list(state_of(ledger).participants["p1"].current()) == ["a", "b"]

    def test_nobody_can_supersede_another_participant_s_outcome(self, ledger):
        put(ledger, outcome("p1", key="a"))
        put(ledger, outcome("p2", key="b", supersedes="a"))
        assert list(state_of(ledger).participants["p1"].current()) == ["a"]

    @given(
        st.lists(st.tuples(st.sampled_from([None, "d1", "d2"]), st.sampled_from([None, 0, 1, 2, 3, 4, 5])), max_size=6),
        st.randoms(use_true_random=False),
    )
    def test_the_rule_in_plain_loops(self, drawn, random):
        outcomes = [
            Outcome(n, f"o{n}", "", "", goal, float(n), None if old is None else f"o{old}")
            for n, (goal, old) in enumerate(drawn)
        ]
        expected = set()
        for one in outcomes:
            corrected = any(other.supersedes == one.key and other is not one for other in outcomes)
            later = False
            for other in outcomes:
                if other.decision == one.decision is not None and other.sequence > one.sequence:
                    later |= not any(third.supersedes == other.key and third is not other for third in outcomes)
            if not corrected and not later:
                expected.add(one.key)
        shuffled = list(outcomes)
        random.shuffle(shuffled)
        current, left = sifted(shuffled)
        assert set(current) == expected
        assert set(left) == {one.key for one in outcomes} - expected


class TestParticipants:
    def test_deliveries_the_last_report_counts_and_none_is_not_zero(self, ledger):
        put(ledger, delivery(action=None))
        words, named = delivery(action=0)
        ledger.append(words[0], "a second report", words[2], **named)
        person = state_of(ledger).participants["p1"]
        assert [each.action for each in person.deliveries["p1/walk/1"]] == [None, 0]
        assert person.delivery("p1/walk/1").action == 0
        assert person.delivery("p1/walk/2") is None

    def test_status_over_time_by_the_times_that_events_name(self, ledger):
        put(ledger, enrolled())
        day = {"pause": 5, "resume": 8, "withdraw": 20}
        for kind in ("withdraw", "pause", "resume"):  # reported out of order
            payload = {"kind": kind, "at": f"2026-03-{day[kind]:02d}T00:00:00Z", "reason": "asked"}
            ledger.append("event", f"p1/{kind}", payload, participant="p1")
        ledger.append("event", "p1/again", {"kind": "resume", "at": "2026-03-25T00:00:00Z"}, participant="p1")
        person = state_of(ledger).participants["p1"]
        days = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (1, 6, 10, 22, 26)]
        assert [person.status(each) for each in days] == ["active", "paused", "active", "withdrawn", "withdrawn"]
        assert person.status(datetime(2026, 2, 1, tzinfo=UTC)) == "unknown"
        assert person.status() == "withdrawn"

    def test_a_changed_participant_has_a_new_revision(self, ledger):
        put(ledger, enrolled())
        ledger.append("participant", "p1/2", {"timezone": "UTC"}, participant="p1")
        person = state_of(ledger).participants["p1"]
        assert (person.enrolled, person.revision) == ({"timezone": "UTC"}, 2)

    def test_of_removed_data_it_is_known_that_there_were_some(self, ledger):
        put(ledger, enrolled())
        put(ledger, decision())
        put(ledger, outcome())
        ledger.append("incident", "1", {"kind": "silence"}, participant="p1")
        ledger.remove("p1")
        state = state_of(ledger)
        person = state.participants["p1"]
        assert (person.status(), person.removed, person.enrolled, person.outcomes, person.inputs()) == (
            "removed", 5, None, {}, [],
        )  # fmt: skip
        assert [(each.key, each.payload) for each in person.decisions.values()] == [("p1/walk/1", None)]
        assert (state.incidents["1"].is_open, state.incidents["1"].payload) == (True, None)


class TestTrial:
    def test_the_active_policy_is_the_last_one_activated_a_rollback_too(self, ledger):
        assert state_of(ledger).active_policy is None
        for n, version in enumerate([1, 2, 1]):
            ledger.append("policy-activated", str(n), {"version": version, "reason": "update"})
        state = state_of(ledger)
        assert (state.active_policy.version, [each.version for each in state.activations]) == (1, [1, 2, 1])

    def test_updates_that_run_have_finished_or_were_killed(self, ledger):
        ledger.append("update-started", "u1", {"as_of": 3})
        assert state_of(ledger).running_update.id == "u1"
        ledger.append("update-finished", "u1", {"state": "finished", "used": [1]})
        assert state_of(ledger).running_update is None
        assert state_of(ledger).updates["u1"].result == {"state": "finished", "used": [1]}

    def test_incidents_are_open_until_acknowledged(self, ledger):
        ledger.append("acknowledgement", "1", {"incident": "b", "by": "ann"})
        for key in "ab":
            ledger.append("incident", key, {"kind": "silence"})
        assert {key: each.is_open for key, each in state_of(ledger).incidents.items()} == {"a": True, "b": False}
        ledger.append("acknowledgement", "2", {"incident": "a", "by": "ann"})
        assert not state_of(ledger).incidents["a"].is_open

    def test_keys_are_revoked(self, ledger):
        for key in "ab":
            ledger.append("key-created", key, {"scopes": ["app"], "sha256": "0" * 64})
        ledger.append("key-revoked", "a", {})
        assert {key: each.revoked_at is None for key, each in state_of(ledger).keys.items()} == {"a": False, "b": True}

    def test_the_protocol_in_force_is_the_last_version(self, ledger):
        for version in (1, 2):
            ledger.append("protocol", str(version), {"version": version, "hash": "0" * 64})
        assert (state_of(ledger).protocol.version, len(state_of(ledger).protocols)) == (2, 2)

    def test_an_entry_out_of_turn_is_refused(self, ledger):
        put(ledger, decision())
        put(ledger, decision(index=2))
        with pytest.raises(LedgerError, match="entry 2 does not follow entry 0"):
            fold("walking", ledger.entries(after=1))


class TestFolded:
    def test_it_is_brought_up_to_date(self, ledger):
        folded = Folded(ledger)
        put(ledger, decision())
        assert folded.state().sequence == 1
        put(ledger, outcome())
        assert folded.state() == state_of(ledger)

    def test_a_removal_leaves_what_is_found_by_reading_anew(self, ledger):
        folded = Folded(ledger)
        for call in (enrolled(), decision(), delivery(), outcome(), decision("p2"), outcome("p2")):
            put(ledger, call)
        for person in ("p1", "p2"):
            ledger.append("incident", person, {"kind": "silence"}, participant=person)
            ledger.append("observation", person, {"observed_at": "2026-03-01T00:00:00Z"}, participant=person)
        ledger.append("event", "1", {"kind": "pause", "at": "2026-03-01T00:00:00Z"}, participant="p1")
        assert folded.state() == state_of(ledger)
        ledger.remove("p1")
        assert folded.state() == state_of(ledger)
        assert [each.payload is None for each in folded.state().incidents.values()] == [True, False]

    def test_a_chain_that_was_restored_is_read_anew(self, ledger, tmp_path):
        put(ledger, decision())
        backup(ledger, tmp_path / "copy.jsonl")
        put(ledger, decision(index=2))
        folded = Folded(ledger)
        assert folded.state().sequence == 2
        restore(tmp_path / "copy.jsonl", tmp_path / "again.db")
        with Ledger(tmp_path / "again.db", "walking") as again:
            put(again, decision(index=3))
            put(again, decision(index=4))
            folded.ledger = again
            assert folded.state() == state_of(again)

    def test_a_chain_that_became_shorter_is_noticed(self, ledger, tmp_path):
        put(ledger, decision())
        backup(ledger, tmp_path / "copy.jsonl")
        put(ledger, decision(index=2))
        folded = Folded(ledger)
        assert folded.state().sequence == 2
        restore(tmp_path / "copy.jsonl", tmp_path / "again.db")
        with Ledger(tmp_path / "again.db", "walking") as again:
            folded.ledger = again
            assert folded.state().sequence == 1

    def test_a_database_that_is_away_costs_no_state(self, ledger, monkeypatch):
        put(ledger, decision())
        folded = Folded(ledger)
        before = folded.state()

        def away(*_):
            raise LedgerError("away")

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "following", away)
            with pytest.raises(LedgerError, match="away"):
                folded.state()
        assert folded.state() is before


PEOPLE = st.sampled_from(["p1", "p2"])
NUMBERS = st.integers(0, 3)
CALLS = st.one_of(
    st.tuples(st.just(enrolled), PEOPLE),
    st.tuples(st.just(decision), PEOPLE, NUMBERS),
    st.tuples(st.just(delivery), PEOPLE, NUMBERS),
    st.builds(
        lambda person, index, key, value, old: (outcome, person, index, f"{person}{key}", value, old and person + old),
        PEOPLE, NUMBERS, st.sampled_from("abcd"), st.sampled_from([None, 1.5]), st.sampled_from([None, *"abcd"]),
    ),
    st.tuples(st.just("incident"), PEOPLE | st.none(), NUMBERS),
    st.tuples(st.just("acknowledgement"), NUMBERS),
    st.tuples(st.just("policy-activated"), NUMBERS),
    st.tuples(st.just("remove"), PEOPLE),
)  # fmt: skip


def done(ledger, call):
    match call:
        case ("incident", person, number):
            ledger.append("incident", str(number), {"kind": "silence"}, participant=person)
        case ("acknowledgement", number):
            ledger.append("acknowledgement", str(number), {"incident": str(number)})
        case ("policy-activated", number):
            ledger.append("policy-activated", str(number), {"version": number, "reason": "update"})
        case ("remove", person):
            ledger.remove(person)
        case (make, person, index, key, value, old):
            put(ledger, make(person, index, key, value, supersedes=old))
        case (make, *words):
            put(ledger, make(*words))


@settings(max_examples=150)
@given(st.lists(st.tuples(CALLS, st.booleans()), max_size=15))
def test_going_on_comes_to_the_same_as_beginning_anew(calls):
    ticks = count()
    with tempfile.TemporaryDirectory() as folder:
        clock = lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))  # noqa: E731
        with Ledger(Path(folder) / "ledger.db", "walking", clock=clock) as ledger:
            folded = Folded(ledger)
            for call, looks in calls:
                with suppress(KeyConflict, ParticipantRemoved):
                    done(ledger, call)
                if looks:
                    folded.state()
            anew = fold("walking", ledger.entries(), State("walking"))
            assert copy.deepcopy(folded.state()) == anew

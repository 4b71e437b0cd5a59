"""Appending, repeating, conflicting, removing: on SQLite and on PostgreSQL."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from kerneltrail.errors import DataError, KeyConflict, LedgerError, ParticipantRemoved
from kerneltrail.trial.ledger import Ledger, exact
from kerneltrail.trial.ledger.chain import verify
from trial.ledger.examples import decision, delivery, enrolled, outcome, put


class TestAppend:
    def test_an_entry_comes_back_as_it_was_written(self, ledger):
        (kind, key, payload), named = decision()
        new = ledger.append(kind, key, payload, **named, request_hash="a" * 64, response=b'{"action": 1}\xff')
        assert new.new
        assert (new.entry.sequence, new.entry.kind, new.entry.key, new.entry.participant) == (1, kind, key, "p1")
        assert new.entry.received_at == "2026-03-01T00:00:00.000000Z"
        (read,) = ledger.entries()
        assert read == new.entry == ledger.get(kind, key)
        assert read.payload == payload
        assert read.response == b'{"action": 1}\xff'

    def test_each_entry_names_the_one_before(self, ledger):
        made = [put(ledger, decision(index=index)).entry for index in range(4)]
        assert [entry.sequence for entry in made] == [1, 2, 3, 4]
        assert [entry.previous for entry in made[1:]] == [entry.hash for entry in made[:-1]]
        assert (ledger.head().sequence, ledger.head().hash) == (4, made[-1].hash)

    def test_the_hash_can_be_computed_from_the_documented_spelling_alone(self, ledger):
        entry = put(ledger, decision(), request_hash="b" * 64, response=b"yes").entry
        names = ("kind", "key", "participant", "payload_hash", "previous", "received_at", "request_hash")
        values = {name: getattr(entry, name) for name in (*names, "response_hash", "sequence", "trial")}
        spelt = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert entry.hash == hashlib.sha256(spelt.encode()).hexdigest()
        assert entry.payload_hash == hashlib.sha256(entry.salt + entry.content).hexdigest()
        assert entry.request_hash == hashlib.sha256(entry.salt + b"b" * 64).hexdigest()
        assert entry.response_hash == hashlib.sha256(entry.salt + b"yes").hexdigest()
        assert entry.previous == hashlib.sha256(b"kerneltrail ledger 1\nwalking").hexdigest()

    def test_the_same_request_gets_the_first_answer(self, ledger):
        (kind, key, payload), named = decision()
        old = ledger.append(kind, key, payload, **named, request_hash="a", response=b"first").entry
        again = ledger.append(kind, key, {**payload, "action": 0}, **named, request_hash="a", response=b"second")
        assert (again.new, again.entry, again.entry.response) == (False, old, b"first")
        assert len(list(ledger.entries())) == 1
        assert (old.answers("a"), old.answers("b")) == (True, False)
        ledger.remove("p1")
        assert not ledger.get(kind, key).answers("a")

    def test_without_a_request_the_payload_is_compared_whatever_its_order(self, ledger):
        ledger.append("incident", "1", {"kind": "silence", "hours": 3})
        assert not ledger.append("incident", "1", {"hours": 3.0, "kind": "silence"}).new

    def test_another_payload_with_the_same_key_names_both(self, ledger):
        put(ledger, decision(), request_hash="a")
        with pytest.raises(
            KeyConflict, match=r"the decision 'p1/walk/1' is taken: entry 1 of 2026-.*differ in action, context"
        ) as told:
            put(ledger, decision(action=0, context={}), request_hash="b")
        assert (told.value.sequence, told.value.kind, told.value.key) == (1, "decision", "p1/walk/1")
        assert "10.5" not in str(told.value)  # what was observed does not belong in a log
        with pytest.raises(KeyConflict, match="their requests differ"):
            put(ledger, decision(), request_hash="c")
        ledger.append("incident", "1", {"kind": "silence"})
        with pytest.raises(KeyConflict, match="differ in kind"):
            ledger.append("incident", "1", {"kind": "noise"})

    def test_a_key_may_come_again_in_another_kind_and_in_another_trial(self, ledger, location):
        put(ledger, decision())
        assert put(ledger, delivery()).entry.sequence == 2
        with Ledger(location, "running") as other:
            assert put(other, decision()).entry.sequence == 1
        assert verify(ledger).sound

    def test_several_are_recorded_together_or_not_at_all(self, ledger):
        put(ledger, enrolled())
        with ledger.transaction() as writer:
            assert [put(writer, outcome(index=index)).entry.sequence for index in range(3)] == [2, 3, 4]
            assert not put(writer, outcome(index=1)).new
            with pytest.raises(KeyConflict):
                put(writer, outcome(index=1, value=7))
            put(writer, outcome(index=9))
        with pytest.raises(KeyConflict), ledger.transaction() as writer:  # noqa: PT012
            put(writer, outcome(index=10))
            put(writer, outcome(index=1, value=7))
        assert [entry.key for entry in ledger.entries(after=3)] == ["p1/steps/2", "p1/steps/9"]
        assert verify(ledger).sound

    @pytest.mark.parametrize(
        ("kind", "key", "payload", "participant", "words"),
        [
            ("decisions", "1", {}, "p1", "no kind of entry"),
            ("incident", "", {"kind": "x"}, None, "the key of an entry of kind incident is ''"),
            ("incident", "a\x00b", {"kind": "x"}, None, "without control characters"),
            ("incident", "é" * 251, {"kind": "x"}, None, "1 to 500 bytes"),
            ("incident", "\ud800", {"kind": "x"}, None, "1 to 500 bytes"),
            ("incident", "1", {"kind": None}, None, "'kind': None, expected a text"),
            ("incident", "1", [1], None, "expected names with values"),
            ("incident", "1", {"kind": "x", "at": float("nan")}, None, "at is nan, and JSON has finite numbers only"),
            ("incident", "1", {"kind": "x", "at": 2**53}, None, "above 2\\^53"),
            (
                "outcome",
                "1",
                {"decision": None, "value": 1, "observed_at": "2026-01-01T00:00:00Z"},
                None,
                "must be named",
            ),
            ("outcome", "1", {"decision": None, "observed_at": "2026-01-01T00:00:00Z"}, "p1", "has no 'value'"),
            ("outcome", "1", {"decision": None, "value": 1, "observed_at": "2026-01-01T00:00:00"}, "p1", "has no zone"),
            (
                "outcome",
                "1",
                {"decision": None, "value": True, "observed_at": "2026-01-01T00:00:00Z"},
                "p1",
                "no number",
            ),
            ("event", "1", {"kind": "leave", "at": "2026-01-01T00:00:00Z"}, "p1", "one of pause, resume, withdraw"),
            ("decision", "1", decision(probability=1.5)[0][2], "p1", "1.5 is no probability"),
            ("decision", "1", decision(action=2)[0][2], "p1", "expected 0 or 1"),
            ("decision", "1", decision(available=1)[0][2], "p1", "expected true or false"),
            ("key-created", "1", {"scopes": ["app"], "sha256": "0"}, "p1", "not about one participant"),
        ],
    )
    def test_what_cannot_be_recorded_is_refused_before_anything_is_written(
        self, tmp_path, kind, key, payload, participant, words
    ):
        with Ledger(tmp_path / "ledger.db", "walking") as ledger:
            with pytest.raises(DataError, match=words):
                ledger.append(kind, key, payload, participant=participant)
            assert list(ledger.entries()) == []

    def test_names_in_any_script_are_kept(self, ledger):
        made = ledger.append("incident", "Zürich/東京/🏃", {"kind": "größer", "🏃": "\u2028\x00"}).entry
        assert next(ledger.entries()).payload == {"kind": "größer", "🏃": "\u2028\x00"}
        assert ledger.get("incident", "Zürich/東京/🏃") == made

    def test_the_longest_names_are_kept(self, location):
        with Ledger(location, "東" * 166, patience=1) as ledger:
            key, person = "🏃" * 125, "é" * 250
            assert ledger.append("incident", key, {"kind": "x"}, participant=person).new
            assert ledger.get("incident", key).participant == person

    def test_entries_can_be_asked_for_in_part(self, ledger):
        for person in ("p1", "p2", "p1"):
            put(ledger, outcome(person, ledger.head().sequence if ledger.head() else 0))
        assert [entry.sequence for entry in ledger.entries(after=1)] == [2, 3]
        assert [entry.sequence for entry in ledger.entries(until=2)] == [1, 2]
        assert [entry.sequence for entry in ledger.entries(participant="p1")] == [1, 3]

    def test_asking_makes_no_database(self, tmp_path):
        with Ledger(tmp_path / "ledger.db", "walking") as ledger:
            assert (list(ledger.entries()), ledger.head(), ledger.get("event", "1")) == ([], None, None)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("place", ["mysql://host/db", "sqlite://", "sqlite:///:memory:"])
    def test_a_place_that_cannot_hold_a_ledger_is_refused(self, place):
        with pytest.raises(LedgerError, match="ledger"):
            Ledger(place, "walking")


class TestAppendOnly:
    @pytest.mark.parametrize("table", ["ledger_entries", "ledger_payloads"])
    def test_the_database_refuses_changes(self, ledger, table):
        put(ledger, decision())
        commands = [f"UPDATE {table} SET trial = 'x'", f"DELETE FROM {table}"]
        if not ledger.database.is_sqlite:
            commands.append(f"TRUNCATE {table} CASCADE")
        for command in commands:
            with (
                pytest.raises(DBAPIError, match=r"never|append-only|only after"),
                ledger.database.engine.begin() as raw,
            ):
                raw.execute(text(command))
        assert verify(ledger).sound
        assert len(list(ledger.entries())) == 1

    @pytest.mark.parametrize("table", ["ledger_entries", "ledger_payloads"])
    def test_sqlite_replaces_nothing_either(self, tmp_path, table):
        with Ledger(tmp_path / "ledger.db", "walking") as ledger:
            put(ledger, decision())
            put(ledger, decision(index=2))
            for change in ("", "SET sequence = 9", "SET key = 'x'"):
                raw = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
                raw.execute(f"CREATE TEMP TABLE copied AS SELECT * FROM {table} LIMIT 1")
                if change and table == "ledger_entries":
                    raw.execute(f"UPDATE copied {change}")
                with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
                    raw.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM copied")
                raw.close()
            assert verify(ledger).sound


class TestRemoval:
    def test_payloads_and_answers_go_and_nothing_else(self, ledger):
        for person in ("p1", "p2"):
            put(ledger, enrolled(person))
            put(ledger, decision(person), request_hash="a", response=b"answer")
        ledger.append("incident", "1", {"kind": "silence"}, participant="p1")
        before = list(ledger.entries())
        done = ledger.remove("p1", {"reason": "asked by letter"})
        assert (done.new, done.payloads, done.overwritten) == (True, 3, True)
        after = list(ledger.entries())
        assert [entry.removed for entry in after] == [True, True, False, False, True, False]
        assert [entry.response for entry in after] == [None, None, None, b"answer", None, None]
        assert [entry.hash for entry in after[:5]] == [entry.hash for entry in before]
        assert after[5].payload == {"reason": "asked by letter", "payloads": 3}
        assert str(verify(ledger)) == "the ledger of walking is sound: 6 entries, 3 of them with their payload removed"
        with pytest.raises(DataError, match="payload was removed"):
            after[0].payload  # noqa: B018

    def test_a_second_removal_is_a_repeat_and_nothing_more_is_recorded_of_them(self, ledger):
        put(ledger, decision(), request_hash="a", response=b"answer")
        first = ledger.remove("p1").entry
        again = ledger.remove("p1", {"reason": "once more"})
        assert (again.new, again.entry, again.payloads) == (False, first, 0)
        with pytest.raises(ParticipantRemoved, match="participant 'p1' were removed \\(entry 2 of 2026-"):
            put(ledger, outcome())
        repeat = put(ledger, decision(), request_hash="other")
        assert (repeat.new, repeat.entry.removed, repeat.entry.response) == (False, True, None)
        assert verify(ledger).sound

    def test_nothing_of_it_is_left_on_the_disk(self, tmp_path):
        with Ledger(tmp_path / "ledger.db", "walking") as ledger:
            put(ledger, decision(context={"note": "unmistakable-context"}), response=b"unmistakable-answer" * 500)
            put(ledger, decision("p2"))
            assert any(b"unmistakable" in path.read_bytes() for path in tmp_path.iterdir())
            assert ledger.remove("p1").overwritten
            assert not any(b"unmistakable" in path.read_bytes() for path in tmp_path.iterdir())

    def test_while_somebody_reads_it_says_that_traces_are_left(self, tmp_path):
        with Ledger(tmp_path / "ledger.db", "walking", patience=0.2) as ledger:
            put(ledger, decision())
            put(ledger, decision("p2"))
            reader = ledger.entries()
            next(reader)
            assert not ledger.remove("p1").overwritten
            reader.close()


def test_numbers_of_which_every_bit_matters_survive(ledger):
    value = 0.1 + 0.2
    ledger.append("incident", "1", {"kind": "x", "u": exact(value), "plain": value})
    payload = next(ledger.entries()).payload
    assert float.fromhex(payload["u"]) == payload["plain"] == value


def test_the_base_does_not_need_what_the_ledger_needs():
    source = Path(__file__).parents[3] / "src" / "kerneltrail"
    users = {path for path in source.rglob("*.py") if "from sqlalchemy" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(source).parts[:2] for path in users} == {("trial", "ledger")}

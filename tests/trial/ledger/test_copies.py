"""Copies: from either database into either, verified on the way, and nothing left of a damaged one."""

import json
import sqlite3

import pytest

from kerneltrail.errors import LedgerError
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.chain import verify
from kerneltrail.trial.ledger.copies import backup, restore
from trial.ledger.examples import decision, enrolled, outcome, put


@pytest.fixture
def filled(ledger):
    for person in ("p1", "p2"):
        put(ledger, enrolled(person))
        put(ledger, decision(person), request_hash="a", response=b"yes\xff\n")
        put(ledger, outcome(person))
    ledger.append("incident", "Zürich\u2028", {"kind": "größer"})
    ledger.remove("p1", {"reason": "asked"})
    return ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def goal(request, tmp_path):
    return tmp_path / "restored.db" if request.param == "sqlite" else request.getfixturevalue("schemas")()


@pytest.fixture
def lines(tmp_path, clock):
    """A copy as JSON lines, of a ledger in SQLite."""
    with Ledger(tmp_path / "source.db", "walking", clock=clock) as ledger:
        for index in range(3):
            put(ledger, decision(index=index))
        backup(ledger, tmp_path / "copy.jsonl")
    return tmp_path / "copy.jsonl"


def test_a_copy_restored_anywhere_is_the_same_ledger(filled, tmp_path, goal):
    copy = tmp_path / "copy.jsonl"
    assert backup(filled, copy) == verify(filled)
    assert restore(copy, goal) == [verify(filled)]
    with Ledger(goal, "walking") as other:
        assert list(other.entries()) == list(filled.entries())
        assert verify(other) == verify(filled)
        assert put(other, decision("p3")).entry.sequence == 9  # and it goes on


def test_one_line_is_one_entry_that_any_language_reads(lines):
    head, *entries, end = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
    assert head == {"format": "kerneltrail-ledger", "version": 1, "trial": "walking"}
    assert [entry["sequence"] for entry in entries] == [1, 2, 3]
    assert json.loads(entries[0]["content"])["context"] == {"temperature": 10.5, "place": "home"}
    assert end == {"entries": 3, "head": entries[-1]["hash"]}


def test_a_sqlite_file_is_copied_whole_while_somebody_writes(tmp_path, clock):
    with Ledger(tmp_path / "ledger.db", "walking", clock=clock) as ledger:
        put(ledger, decision())
        with Ledger(ledger.database, "running").transaction() as writer:
            put(writer, decision("q1"))
        put(ledger, decision(index=2), response=b"unmistakable")
        put(ledger, decision("p2"))
        ledger.remove("p1")
        with ledger.transaction() as writer:
            put(writer, decision("p2", 2))
            assert backup(ledger, tmp_path / "folder" / "copy.db").entries == 4  # what is not committed is not there
        copied = (tmp_path / "folder" / "copy.db").read_bytes()
        assert b"unmistakable" not in copied
        assert [verdict.trial for verdict in restore(tmp_path / "folder" / "copy.db", tmp_path / "again.db")] == [
            "running",
            "walking",
        ]
        assert (tmp_path / "folder" / "copy.db").read_bytes() == copied  # a copy is not touched by reading it
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["copy.db"]
        with Ledger(tmp_path / "again.db", "walking") as other:
            assert list(other.entries()) == list(ledger.entries(until=4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:-1], "ends too early"),
        (lambda rows: rows[:-2] + rows[-1:], "which is not the last"),
        (lambda rows: [rows[0], *rows[2:]], "entry 1 is missing"),
        (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], "entry 1 is missing"),
        (lambda rows: [rows[0], rows[1], rows[1], *rows[2:]], "entry 1 stands where 2 should"),
        (lambda rows: [*rows[:2], rows[2].replace("home", "hotel"), *rows[3:]], "entry 2 .*its payload was changed"),
        (lambda rows: [*rows[:2], rows[2][:-9], *rows[3:]], "line 3 is damaged$"),
        (lambda rows: [*rows[:2], '{"sequence":2}', *rows[3:]], "line 3 is no entry of a ledger"),
        (lambda rows: [*rows, rows[1]], "goes on after its end"),
        (lambda rows: [rows[0].replace(":1}", ":2}"), *rows[1:]], "has version 2; this kerneltrail reads 1"),
        (lambda rows: rows[1:], "is no copy of a ledger"),
        (lambda rows: [rows[0].replace("walking", "running"), *rows[1:]], "entry 1 .* belongs to the trial walking"),
        (lambda rows: [], "line 1 is damaged, or this is not a file that `kerneltrail trial backup` wrote"),
    ],
)
def test_a_damaged_copy_leaves_nothing(lines, tmp_path, change, words):
    rows = change(lines.read_text(encoding="utf-8").splitlines())
    lines.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    with pytest.raises(LedgerError, match=words):
        restore(lines, tmp_path / "restored.db")
    with Ledger(tmp_path / "restored.db", "walking") as ledger:
        assert list(ledger.entries()) == []


def test_a_trial_that_is_there_is_not_written_over(lines, tmp_path):
    with pytest.raises(LedgerError, match="already has a ledger of the trial walking, 3 entries long"):
        restore(lines, tmp_path / "source.db")


def test_a_ledger_that_is_not_sound_is_not_copied(tmp_path):
    with Ledger(tmp_path / "ledger.db", "walking") as ledger:
        put(ledger, decision())
        raw = sqlite3.connect(tmp_path / "ledger.db")
        raw.executescript("DROP TRIGGER ledger_entries_no_update; UPDATE ledger_entries SET key = 'x'")
        raw.close()
        for name in ("copy.db", "copy.jsonl"):
            with pytest.raises(LedgerError, match=r"entry 1 .* was changed"):
                backup(ledger, tmp_path / "copies" / name)
    assert list((tmp_path / "copies").iterdir()) == []


def test_files_that_are_not_there_or_cannot_be_written_are_named(lines, tmp_path):
    with pytest.raises(LedgerError, match=r"nothing\.jsonl cannot be read"):
        restore(tmp_path / "nothing.jsonl", tmp_path / "restored.db")
    with Ledger(tmp_path / "source.db", "walking") as ledger:
        for name in ("copy.db", "copy.jsonl"):
            with pytest.raises(LedgerError, match="cannot be written"):
                backup(ledger, lines / name)

"""Whatever is changed behind the ledger's back is noticed, and the first bad entry is named."""

import pytest
from sqlalchemy import text

from kerneltrail.trial.ledger import Head
from kerneltrail.trial.ledger.verify import verify, verify_entries
from trial.ledger.examples import decision, enrolled, outcome, put


@pytest.fixture
def filled(ledger):
    put(ledger, enrolled())
    for index in range(1, 4):
        put(ledger, decision(index=index), request_hash="a", response=b"yes")
        put(ledger, outcome(index=index))
    return ledger


def tampered(ledger, *commands):
    """Change what the triggers protect, as somebody could who owns the database."""
    with ledger.database.engine.connect() as raw, raw.begin():
        if ledger.database.is_sqlite:
            raw.execute(text("PRAGMA defer_foreign_keys = ON"))
            names = list(raw.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")))
            for name, _ in names:
                raw.execute(text(f"DROP TRIGGER {name}"))
        else:
            names = []
            raw.execute(text("SET session_replication_role = replica"))  # triggers sleep
        for command in commands:
            raw.execute(text(command))
        for _, made in names:
            raw.exec_driver_sql(made)
        if not ledger.database.is_sqlite:
            raw.execute(text("SET session_replication_role = origin"))
    return verify(ledger)


def test_a_ledger_as_it_was_written_is_sound(filled):
    verdict = verify(filled)
    assert verdict.sound
    assert (verdict.entries, verdict.removed, verdict.head) == (7, 0, filled.head())
    assert str(verdict) == "the ledger of walking is sound: 7 entries"


@pytest.mark.parametrize(
    ("command", "sequence", "words"),
    [
        ("UPDATE ledger_entries SET received_at = '2026-01-01' WHERE sequence = 4", 4, "entry 4 .* was changed"),
        ("UPDATE ledger_entries SET participant = 'p2' WHERE sequence = 2", 2, "entry 2 .* was changed"),
        ("UPDATE ledger_entries SET hash = previous WHERE sequence = 3", 3, "entry 3 .* was changed"),
        ("UPDATE ledger_entries SET previous = hash WHERE sequence = 3", 3, "entry 3 .* does not follow"),
        ("UPDATE ledger_payloads SET content = salt WHERE sequence = 5", 5, "entry 5 .*its payload was changed"),
        ("UPDATE ledger_payloads SET response = salt WHERE sequence = 2", 2, "entry 2 .*answered were changed"),
        ("UPDATE ledger_payloads SET response = NULL WHERE sequence = 2", 2, "entry 2 .*answered are missing"),
        ("UPDATE ledger_payloads SET response = salt WHERE sequence = 1", 1, "entry 1 .*not those of the entry"),
        ("DELETE FROM ledger_payloads WHERE sequence = 3", 3, "entry 3: its payload is missing"),
    ],
)
def test_a_change_is_found(filled, command, sequence, words):
    verdict = tampered(filled, command)
    assert not verdict.sound
    assert verdict.sequence == sequence
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(verdict.problem)


def test_a_missing_entry_is_found(filled):
    verdict = tampered(
        filled, "DELETE FROM ledger_payloads WHERE sequence = 4", "DELETE FROM ledger_entries WHERE sequence = 4"
    )
    assert (verdict.sequence, verdict.problem, verdict.entries) == (4, "entry 4 is missing", 3)


def test_two_entries_that_changed_places_are_found(filled):
    swaps = [
        f"UPDATE {table} SET sequence = {new} WHERE sequence = {old}"
        for table in ("ledger_payloads", "ledger_entries")
        for old, new in ((2, 99), (4, 2), (99, 4))
    ]
    assert tampered(filled, *swaps).sequence == 2


def test_what_was_cut_off_at_the_end_is_found_with_a_head_that_was_noted(filled):
    noted = filled.head()
    assert verify(filled, noted).sound
    put(filled, outcome(index=9))
    assert verify(filled, noted).sound
    cut = [f"DELETE FROM {table} WHERE sequence > 5" for table in ("ledger_payloads", "ledger_entries")]
    assert tampered(filled, *cut).sound  # nobody can tell without the note
    assert verify(filled, noted).problem == "entry 7 was noted, and the chain ends at 5"
    assert "written anew" in verify(filled, Head(5, noted.hash)).problem


def test_a_payload_that_stayed_after_its_removal_is_found(filled):
    kept = list(filled.entries())
    filled.remove("p1")
    (removal,) = filled.entries(after=7)
    assert "entry 7 still has its payload" in verify_entries("walking", [*kept, removal]).problem


def test_a_removal_that_lost_its_own_payload_is_found(filled):
    filled.remove("p1")
    assert tampered(filled, "DELETE FROM ledger_payloads WHERE sequence = 8").sequence == 8


def test_a_trigger_that_was_taken_away_is_found(filled):
    name = "ledger_payloads_no_update"
    with filled.database.engine.begin() as raw:
        raw.execute(text(f"DROP TRIGGER {name}" + ("" if filled.database.is_sqlite else " ON ledger_payloads")))
    assert name in verify(filled).problem

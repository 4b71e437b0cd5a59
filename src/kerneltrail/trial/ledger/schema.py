"""The ledger's two tables, and triggers by which the database itself refuses to change or delete a record."""

from __future__ import annotations

import sqlite3

from sqlalchemy import (
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

metadata = MetaData()

entries = Table(
    "ledger_entries",
    metadata,
    Column("trial", Text, primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("participant", Text),
    Column("received_at", Text, nullable=False),
    Column("payload_hash", Text, nullable=False),
    Column("request_hash", Text),
    Column("response_hash", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("trial", "kind", "key", name="ledger_one_entry_for_a_key"),
)
Index("ledger_entries_of_participant", entries.c.trial, entries.c.participant)

payloads = Table(
    "ledger_payloads",
    metadata,
    Column("trial", Text, primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("salt", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),  # bytes, since their hash must not depend on how a text is kept
    Column("response", LargeBinary),
    ForeignKeyConstraint(["trial", "sequence"], ["ledger_entries.trial", "ledger_entries.sequence"]),
)

# A payload may go only after an entry says that its participant's data are removed.
_REMOVED = """EXISTS (
    SELECT 1 FROM ledger_entries e JOIN ledger_entries r ON r.trial = e.trial AND r.kind = 'removal'
        AND r.key = e.participant AND r.sequence > e.sequence
    WHERE e.trial = OLD.trial AND e.sequence = OLD.sequence)"""

# SQLite's INSERT OR REPLACE deletes the row that is in its way, and fires no trigger for that.
_SQLITE = {
    "ledger_entries_no_replace": """CREATE TRIGGER ledger_entries_no_replace BEFORE INSERT ON ledger_entries
        WHEN EXISTS (SELECT 1 FROM ledger_entries WHERE trial = NEW.trial AND sequence = NEW.sequence)
            OR EXISTS (SELECT 1 FROM ledger_entries WHERE trial = NEW.trial AND kind = NEW.kind AND key = NEW.key)
        BEGIN SELECT RAISE(ABORT, 'an entry of the ledger is never replaced'); END""",
    "ledger_payloads_no_replace": """CREATE TRIGGER ledger_payloads_no_replace BEFORE INSERT ON ledger_payloads
        WHEN EXISTS (SELECT 1 FROM ledger_payloads WHERE trial = NEW.trial AND sequence = NEW.sequence)
        BEGIN SELECT RAISE(ABORT, 'a payload of the ledger is never replaced'); END""",
    "ledger_entries_no_update": """CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries
        BEGIN SELECT RAISE(ABORT, 'an entry of the ledger is never changed'); END""",
    "ledger_entries_no_delete": """CREATE TRIGGER ledger_entries_no_delete BEFORE DELETE ON ledger_entries
        BEGIN SELECT RAISE(ABORT, 'an entry of the ledger is never deleted'); END""",
    "ledger_payloads_no_update": """CREATE TRIGGER ledger_payloads_no_update BEFORE UPDATE ON ledger_payloads
        BEGIN SELECT RAISE(ABORT, 'a payload of the ledger is never changed'); END""",
    "ledger_payloads_no_delete": f"""CREATE TRIGGER ledger_payloads_no_delete BEFORE DELETE ON ledger_payloads
        WHEN NOT {_REMOVED}
        BEGIN SELECT RAISE(ABORT, 'a payload is deleted only after its participant is removed'); END""",
}

_REFUSE = """CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING MESSAGE = 'the ledger is append-only: ' || TG_OP || ' is refused'; END $$"""
_KEEP = f"""CREATE OR REPLACE FUNCTION ledger_keep() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF {_REMOVED} THEN RETURN OLD; END IF;
        RAISE EXCEPTION 'a payload is deleted only after its participant is removed';
    END $$"""
_POSTGRESQL = {
    "ledger_entries_no_change": """CREATE TRIGGER ledger_entries_no_change BEFORE UPDATE OR DELETE ON ledger_entries
        FOR EACH ROW EXECUTE FUNCTION ledger_refuse()""",
    "ledger_entries_no_truncate": """CREATE TRIGGER ledger_entries_no_truncate BEFORE TRUNCATE ON ledger_entries
        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()""",
    "ledger_payloads_no_update": """CREATE TRIGGER ledger_payloads_no_update BEFORE UPDATE ON ledger_payloads
        FOR EACH ROW EXECUTE FUNCTION ledger_refuse()""",
    "ledger_payloads_no_delete": """CREATE TRIGGER ledger_payloads_no_delete BEFORE DELETE ON ledger_payloads
        FOR EACH ROW EXECUTE FUNCTION ledger_keep()""",
    "ledger_payloads_no_truncate": """CREATE TRIGGER ledger_payloads_no_truncate BEFORE TRUNCATE ON ledger_payloads
        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()""",
}


def is_there(connection: Connection) -> bool:
    """Whether the database has the tables of a ledger."""
    return inspect(connection).has_table(payloads.name)


def create(connection: Connection) -> None:
    """Make tables and triggers where there are none; all in the caller's transaction, so that there are all or none."""
    if is_there(connection):
        return
    metadata.create_all(connection)
    commands = (*_SQLITE.values(),) if connection.dialect.name == "sqlite" else (_REFUSE, _KEEP, *_POSTGRESQL.values())
    for command in commands:
        connection.exec_driver_sql(command)


def cut(connection: sqlite3.Connection, trial: str, until: int) -> None:
    """Leave out of a copy what a trial recorded after an entry; never of a ledger, whose triggers would be missing."""
    guards = ("ledger_entries_no_delete", "ledger_payloads_no_delete")
    connection.execute("PRAGMA secure_delete = ON")
    for name in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for table in (payloads.name, entries.name):
        connection.execute(f"DELETE FROM {table} WHERE trial = ? AND sequence > ?", (trial, until))
    for name in guards:
        connection.execute(_SQLITE[name])


def missing_triggers(connection: Connection) -> list[str]:
    """Names of the triggers that somebody took away or switched off."""
    if connection.dialect.name == "sqlite":
        there = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars()
        return sorted(_SQLITE.keys() - set(there))
    there = connection.execute(
        text(
            "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "WHERE c.relnamespace = current_schema()::regnamespace AND t.tgenabled IN ('O', 'A')"
        )
    ).scalars()
    return sorted(_POSTGRESQL.keys() - set(there))

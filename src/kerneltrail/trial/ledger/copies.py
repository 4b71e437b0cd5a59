"""Copies of a ledger: a SQLite file as it is, or JSON lines that either database can be restored from.

What is restored is verified on the way. A copy that was changed, or that ends too early, leaves nothing behind.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kerneltrail.errors import LedgerError
from kerneltrail.store.atomic import PRIVATE, write
from kerneltrail.store.canonical import canonical
from kerneltrail.trial.ledger import schema
from kerneltrail.trial.ledger.chain import Unsound, Verdict, verify_entries, walked
from kerneltrail.trial.ledger.database import Database
from kerneltrail.trial.ledger.entries import Entry
from kerneltrail.trial.ledger.ledger import Ledger, trials_of
from kerneltrail.trial.ledger.writer import insert_entries

FORMAT = "kerneltrail-ledger"
VERSION = 1
_CHUNK = 500
"""Entries that are written at a time."""
_MAGIC = b"SQLite format 3\0"


def backup(ledger: Ledger, path: str | os.PathLike[str], until: int | None = None) -> Verdict:
    """Copy a ledger while it is in use, and verify the copy.

    A SQLite database is copied whole, with all its trials, unless the path ends in ``.jsonl``. Such a copy, and every
    copy of a PostgreSQL database, has this trial's entries as JSON lines.

    Args:
        ledger: what is copied.
        path: the file to write.
        until: the last entry of this trial that the copy has; None for the end.

    Raises:
        LedgerError: if the ledger is not sound, or the file cannot be written. Nothing is left then.
    """
    goal = Path(path)
    if ledger.database.is_sqlite and goal.suffix != ".jsonl":
        return _copy_file(ledger, goal, until)
    verdicts: list[Verdict] = []
    write(goal, _lines(ledger, verdicts, until), error=LedgerError, mode=PRIVATE)
    return verdicts[0]


def restore(source: str | os.PathLike[str], location: str | os.PathLike[str] | Database) -> list[Verdict]:
    """Write a copy of a ledger into a database that has none of its trials, verified on the way.

    Args:
        source: what `backup` wrote, in either form.
        location: the path of a SQLite file, or a URL.

    Raises:
        LedgerError: if the copy is damaged or the database has the trial already; nothing is written then.
    """
    path = Path(source)
    try:
        with path.open("rb") as file:
            is_sqlite = file.read(len(_MAGIC)) == _MAGIC
    except OSError as problem:
        raise LedgerError(f"{path} cannot be read: {problem.strerror or problem}") from None
    target = location if isinstance(location, Database) else Database(location)
    try:
        if not is_sqlite:
            trial, entries = _read_lines(path)
            return [_write(target, trial, entries, path)]
        with closing(_read_only(path)) as copy:
            return [_write(target, trial, Ledger(copy, trial).entries(), path) for trial in trials_of(copy)]
    finally:
        if target is not location:
            target.close()


def _write(target: Database, trial: str, entries: Iterator[Entry], path: Path) -> Verdict:
    verdicts: list[Verdict] = []
    present = Ledger(target, trial).head()
    if present is not None:
        raise LedgerError(
            f"{target.shown} already has a ledger of the trial {trial}, {present.sequence} entries long; restore "
            f"{path} into an empty database"
        )
    with target.writing(trial) as connection:
        sound = _noting(walked(trial, entries), verdicts)
        while chunk := list(islice(sound, _CHUNK)):
            insert_entries(connection, chunk)
    return verdicts[0]


def _noting(walk: Generator[Entry, None, Verdict], verdicts: list[Verdict]) -> Iterator[Entry]:
    """The entries of a walk; what it came to is appended at its end."""
    verdicts.append((yield from walk))


def _copy_file(ledger: Ledger, goal: Path, until: int | None) -> Verdict:
    beside = goal.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            ledger.database.copy_sqlite(beside)
            if until is not None:
                with closing(sqlite3.connect(beside)) as file_alone, file_alone:
                    schema.cut(file_alone, ledger.trial, until)
            with closing(_read_only(beside)) as copy:
                verdict = verify_entries(ledger.trial, Ledger(copy, ledger.trial).entries())
            if not verdict.sound:
                raise Unsound(verdict)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(goal)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        raise LedgerError(f"{goal} cannot be written: {problem.strerror or problem}") from None
    except sqlite3.Error as problem:
        raise LedgerError(f"{goal} cannot be written: {problem}") from None
    return verdict


def _read_only(path: Path) -> Database:
    """A SQLite file that is read without being touched."""
    return Database(f"sqlite:///file:{quote(str(path.resolve()))}?mode=ro&immutable=1&uri=true")


def _lines(ledger: Ledger, verdicts: list[Verdict], until: int | None) -> Iterator[bytes]:
    yield canonical({"format": FORMAT, "version": VERSION, "trial": ledger.trial}) + b"\n"
    for entry in _noting(walked(ledger.trial, ledger.entries(until=until)), verdicts):
        yield canonical(_as_json(entry)) + b"\n"
    head = verdicts[0].head
    yield canonical({"entries": verdicts[0].entries, "head": None if head is None else head.hash}) + b"\n"


def _as_json(entry: Entry) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
    response = entry.response
    return values | {
        "salt": None if entry.salt is None else entry.salt.hex(),
        "content": None if entry.content is None else entry.content.decode("utf-8"),
        "response": None if response is None else base64.b64encode(response).decode("ascii"),
    }


def _from_json(values: dict[str, Any]) -> Entry:
    salt, content, response = (values[name] for name in ("salt", "content", "response"))
    return Entry(
        **values
        | {
            "salt": None if salt is None else bytes.fromhex(salt),
            "content": None if content is None else content.encode("utf-8"),
            "response": None if response is None else base64.b64decode(response, validate=True),
        }
    )


def _read_lines(path: Path) -> tuple[str, Iterator[Entry]]:
    with path.open("rb") as file:
        head = _parsed(file.readline(), path, 1)
    if head.get("format") != FORMAT or not isinstance(head.get("trial"), str):
        raise LedgerError(f"{path} is no copy of a ledger: its first line does not say so")
    if head.get("version") != VERSION:
        raise LedgerError(f"{path} has version {head.get('version')}; this kerneltrail reads {VERSION}")
    return head["trial"], _entries_of(path)


def _entries_of(path: Path) -> Iterator[Entry]:
    """The entries of a file of JSON lines, which must end with their number and the last hash."""
    last: Entry | None = None
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, 2):
            values = _parsed(line, path, number)
            if "entries" in values:
                noted = (values["entries"], values.get("head"))
                if noted != ((0, None) if last is None else (last.sequence, last.hash)):
                    raise LedgerError(
                        f"{path}, line {number}: its end is noted as entry {noted[0]}, which is not the last"
                    )
                if file.read(1):
                    raise LedgerError(f"{path} goes on after its end in line {number}")
                return
            try:
                last = _from_json(values)
            except (KeyError, TypeError, ValueError, AttributeError) as problem:
                raise LedgerError(f"{path}, line {number} is no entry of a ledger: {problem}") from None
            yield last
    raise LedgerError(f"{path} ends too early: its last line must say how many entries there are")


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        other = ", or this is not a file that `kerneltrail trial backup` wrote" if number == 1 else ""
        raise LedgerError(f"{path}, line {number} is damaged{other}")
    return values

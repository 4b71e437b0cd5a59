"""A database that a ledger lies in, SQLite or PostgreSQL: connections, transactions, and failures as sentences."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Select, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError,
)

from kerneltrail.errors import LedgerError, NotRecorded
from kerneltrail.store.atomic import PRIVATE
from kerneltrail.trial.ledger import schema
from kerneltrail.trial.ledger.turns import Turns

PATIENCE = 5.0
"""Seconds that a writer waits for another one, or for a connection."""
_IDLE = 12
"""A writer that does nothing for so many times the patience loses its turn: others wait. A reader may take its time."""
_OWN, _LEAST = 1.0, 0.1
"""Seconds that an impatient writer waits all the same: for threads of its own process, and for other processes."""
_POOL = 10
"""Connections that are kept: making one takes longer than most of what is done with it."""
_USED = "kerneltrail_used"
_WAITS = "kerneltrail_waits"
_WRITES, _ALONE = "kerneltrail_writes", "kerneltrail_alone"
_TURN = text(
    "SELECT set_config('idle_in_transaction_session_timeout', :idle, true), set_config('lock_timeout', :wait, true), "
    "pg_advisory_xact_lock(:lock)"
)  # in PostgreSQL, until the transaction ends
_THERE = text("SELECT 1")


class Database:
    """One database, by the path of a SQLite file or by a URL such as ``postgresql://user@host/name``.

    Connections are made when they are needed. One that broke meanwhile is replaced before anything is done with it, so
    that a database that was away is found again. The tables are made by the first who writes. Threads that write take
    turns here before they ask the database for theirs: it would let them sleep for longer than need be.
    """

    def __init__(self, location: str | os.PathLike[str], *, patience: float = PATIENCE) -> None:
        self.url = url_of(location)
        self.patience = patience
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        bare = self.url.set(drivername="postgresql", query={})
        self.shown = self.url.database or "" if self.is_sqlite else bare.render_as_string(hide_password=True)
        self._ready = False
        limits = {"timeout": patience} if self.is_sqlite else self._limits()
        self._turns = Turns()
        self.engine: Engine = create_engine(self.url, pool_size=_POOL, pool_timeout=patience, connect_args=limits)
        event.listen(self.engine, "connect", self._settle_sqlite if self.is_sqlite else self._settle_postgresql)
        if self.is_sqlite:
            event.listen(self.engine, "begin", _begin_sqlite)

    def _limits(self) -> dict[str, Any]:
        """How long a server may be silent before it counts as away; what the address says of it goes first."""
        seconds = max(2, round(self.patience))
        limits = {"connect_timeout": seconds, "tcp_user_timeout": 1000 * seconds, "keepalives_idle": seconds}
        return {name: value for name, value in limits.items() if name not in self.url.query}

    def _settle_sqlite(self, connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where a driver guesses
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {round(1000 * self.patience)}")
        if self.url.query.get("mode") != "ro":
            _use_wal(cursor, self.patience)
        cursor.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before anybody is answered
        cursor.execute("PRAGMA fullfsync = ON")  # on macOS; elsewhere it is always so
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten, not only unlinked
        cursor.close()

    def _settle_postgresql(self, connection: Any, _: Any) -> None:
        milliseconds = round(1000 * self.patience)
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {milliseconds}")
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone()[0] == "off":  # a stricter one, which waits for replicas, stays
                cursor.execute("SET synchronous_commit = on")
        connection.commit()

    @contextmanager
    def writing(self, trial: str, patience: float | None = None) -> Iterator[Connection]:
        """A transaction in which nobody else writes to this trial; it commits at the end, or leaves nothing.

        Args:
            trial: whose turn it is.
            patience: seconds to wait for writers of other processes, if less than usual. For threads of this process,
                whose turns are short, it waits a second at least.

        Raises:
            NotRecorded: if the database could not take it, whatever the reason.
        """
        seconds = self.patience if patience is None else min(patience, self.patience)
        end = time.monotonic() + seconds
        with self._translated(NotRecorded, "nothing was recorded"):
            if not self._ready:
                self._prepare()
            if not self._turns.acquire(self.for_threads(patience)):
                raise NotRecorded(
                    f"the database {self.shown} is locked by another writer for too long; nothing was recorded"
                )
            try:
                wait = round(1000 * max(min(_LEAST, self.patience), end - time.monotonic()))
                turn = None if self.is_sqlite else {"lock": _lock_of(trial), "wait": str(wait), "idle": self._idle}
                with self._begun({_WRITES: True, _WAITS: wait}, _TURN, turn) as connection:
                    yield connection
            finally:
                self._turns.release()

    def for_threads(self, patience: float | None) -> float:
        """Seconds that a writer waits for threads of its own process, whose turns are short: a second at least."""
        seconds = self.patience if patience is None else min(patience, self.patience)
        return max(seconds, min(_OWN, self.patience))

    @property
    def _idle(self) -> str:
        return str(round(_IDLE * 1000 * self.patience))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads.

        Raises:
            LedgerError: if the database cannot be read.
        """
        translated = self._translated(LedgerError, "the ledger cannot be read")
        with translated, self._begun({}, _THERE, None if self.is_sqlite else {}) as connection:
            yield connection

    def fetched(self, query: Select[Any], values: Mapping[str, Any]) -> list[Any]:
        """All rows of one query, with as few words to the database as can be.

        Raises:
            LedgerError: if the database cannot be read.
        """
        options = {_ALONE: True} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        with self._translated(LedgerError, "the ledger cannot be read"):
            while True:
                with self.engine.connect().execution_options(**options) as connection:
                    used = _is_used(connection)
                    try:
                        return list(connection.execute(query, values))
                    except DBAPIError as problem:
                        if not (used and problem.connection_invalidated):
                            raise

    @contextmanager
    def _begun(self, options: Mapping[str, Any], first: Any, values: Mapping[str, Any] | None) -> Iterator[Connection]:
        """A transaction after its first statement, which is left out without values.

        If that finds a connection that broke since it was used, another one is made: nothing is lost yet.
        """
        while True:
            with self.engine.connect().execution_options(**options) as connection:
                used = _is_used(connection)
                try:
                    transaction = connection.begin()
                    if values is not None:
                        connection.execute(first, values)
                except DBAPIError as problem:
                    if used and problem.connection_invalidated:
                        continue
                    raise
                with transaction:
                    yield connection
                return

    def is_there(self) -> bool:
        """Whether somebody has written a ledger here; a SQLite file is not made by asking."""
        if not self._ready:
            if self.is_sqlite and not self.url.query and not Path(str(self.url.database)).exists():
                return False
            with self.reading() as connection:
                self._ready = schema.is_there(connection)
        return self._ready

    def overwrite_deleted(self) -> bool:
        """Overwrite what the database keeps of deleted rows for its own purposes; False where it cannot just now."""
        try:
            if self.is_sqlite:  # the log beside the file still has the pages of before
                connection = self.engine.raw_connection()
                try:
                    cursor = connection.cursor()
                    return bool(cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
                finally:
                    connection.close()
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as automatic:
                automatic.exec_driver_sql(f"VACUUM {schema.payloads.name}")
            return True
        except (SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error):
            return False

    def _prepare(self) -> None:
        """Make the tables where there are none. Two that begin at once wait for each other."""
        if self.is_sqlite and not self.url.query:
            file = Path(str(self.url.database))
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(mode=PRIVATE)  # what it will hold is personal
            except OSError as problem:
                words = f"the file {file} cannot be made ({problem.strerror or problem})"
                raise NotRecorded(f"{words}; nothing was recorded") from None
        with self.engine.connect() as connection, connection.begin():
            there = schema.is_there(connection)
        if not there:
            with self.engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
                if not self.is_sqlite:
                    wait = str(round(1000 * self.patience))
                    connection.execute(_TURN, {"lock": _lock_of(""), "wait": wait, "idle": "0"})
                schema.create(connection)
        self._ready = True

    @contextmanager
    def _translated(self, error: type[LedgerError], consequence: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as problem:
            raise error(f"{self._reason(problem)}; {consequence}") from problem

    def _reason(self, problem: Exception) -> str:
        """What happened to the database, in words."""
        original = getattr(problem, "orig", None) or problem
        words = str(original).strip().split("\n")[0]
        code = getattr(original, "sqlstate", None) or getattr(original, "sqlite_errorname", None) or ""
        for beginnings, sentence in _REASONS.items():
            if code.startswith(beginnings):
                return f"the database {self.shown} {sentence} ({words})"
        if isinstance(problem, IntegrityError):
            return f"another writer was faster in the database {self.shown} ({words})"
        if isinstance(problem, OperationalError | InterfaceError | TimeoutError):
            return f"the database {self.shown} cannot be reached ({words})"
        return f"the database {self.shown} refused ({words})"

    def copy_sqlite(self, goal: Path) -> None:
        """Copy a SQLite database as it is at one moment, while others write; deleted rows are not in the copy."""
        with self._translated(LedgerError, f"it was not copied to {goal}"):
            goal.touch(mode=PRIVATE)
            connection = self.engine.raw_connection()
            try:
                connection.cursor().execute("VACUUM INTO ?", (str(goal),))
            except self.engine.dialect.loaded_dbapi.Error as problem:
                raise LedgerError(f"{self._reason(problem)}; it was not copied to {goal}") from problem
            finally:
                connection.close()

    def close(self) -> None:
        """Give back all connections; the next use makes new ones."""
        self.engine.dispose()


_REASONS: dict[tuple[str, ...], str] = {
    ("SQLITE_FULL", "53100"): "has no room left: its disk is full",
    ("SQLITE_READONLY", "25006"): "can only be read",
    ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"): "is locked by another writer for too long",
    ("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002"): "is damaged, or is no database",
    ("SQLITE_CANTOPEN",): "cannot be opened",
    ("SQLITE_IOERR", "58030"): "cannot be read or written: its disk failed",
    ("53300",): "has too many connections",
    ("57P", "08", "3D000", "28"): "cannot be reached",
    ("42501",): "does not let this user do it",
}
"""Beginnings of SQLite's and PostgreSQL's codes, and what they mean for people."""


def url_of(location: str | os.PathLike[str]) -> URL:
    """A location as SQLAlchemy has it: a path is a SQLite file, PostgreSQL is reached with psycopg.

    >>> str(url_of("trial/ledger.db")), url_of("postgres://ann@host/study").drivername
    ('sqlite:///trial/ledger.db', 'postgresql+psycopg')
    """
    shown = os.fspath(location)
    if "://" not in shown:
        return URL.create("sqlite", database=shown)
    try:
        url = make_url("postgresql" + shown[8:] if shown.startswith("postgres:") else shown)
    except ArgumentError:
        raise LedgerError(
            "the ledger's address cannot be read: expected postgresql://user@host/name or a path"
        ) from None
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise LedgerError(f"a ledger lies in SQLite or PostgreSQL, not in {url.get_backend_name()}")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise LedgerError("a ledger must outlive its process: name a file, such as sqlite:///ledger.db")
    return url


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its turn when it begins: if it read first and then wrote, another could come in between."""
    options = connection.get_execution_options()
    if options.get(_ALONE, False):  # a single query needs no transaction
        return
    if _WAITS in options:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {options[_WAITS]}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_WRITES, False) else "BEGIN")


def _is_used(connection: Connection) -> bool:
    """Whether a connection was used before, and may have broken since."""
    used = _USED in connection.info
    connection.info[_USED] = True
    return used


def _use_wal(cursor: Any, patience: float) -> None:
    """Readers and a writer beside each other. Changing to it needs the file alone, for which SQLite does not wait."""
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return

    def change() -> bool:
        try:
            return bool(cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except Exception as problem:
            if getattr(problem, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                return False
            raise

    _until(change, patience)


def _until(done: Callable[[], bool], patience: float) -> None:
    end = time.monotonic() + patience
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


def _lock_of(trial: str) -> int:
    """The number of PostgreSQL's lock for a trial; a signed one of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"kerneltrail ledger {trial}".encode()).digest()[:8], "big", signed=True)

"""The ledger of a trial: one append-only record, from which everything else is derived.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = Ledger(f"{folder.name}/ledger.db", "walking")
>>> ledger.append("incident", "1", {"kind": "clock-skew"}).new
True
>>> ledger.append("incident", "1", {"kind": "clock-skew"}).new  # a repeat is answered from the record
False
>>> [entry.payload["kind"] for entry in ledger.entries()]
['clock-skew']
>>> ledger.close(); folder.cleanup()
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Select, and_, bindparam, delete, func, insert, or_, select

from kerneltrail.errors import KeyConflict, ParticipantRemoved
from kerneltrail.store.canonical import canonical, digest, parsed
from kerneltrail.trial.ledger import schema
from kerneltrail.trial.ledger.database import PATIENCE, Database
from kerneltrail.trial.ledger.entries import Entry, Kind, check_entry, check_name, first, stamp

_ENTRIES, _PAYLOADS = schema.entries, schema.payloads
_COLUMNS = (*(_ENTRIES.c[name] for name in Entry.__dataclass_fields__ if name in _ENTRIES.c),)
_BESIDE = (_PAYLOADS.c.salt, _PAYLOADS.c.content, _PAYLOADS.c.response)
_CHUNK = 1000
"""Rows that are fetched at a time."""

# Statements are built once: building one takes longer than SQLite needs to answer it.
_WITH_PAYLOADS = select(*_COLUMNS, *_BESIDE).select_from(
    _ENTRIES.outerjoin(
        _PAYLOADS, and_(_PAYLOADS.c.trial == _ENTRIES.c.trial, _PAYLOADS.c.sequence == _ENTRIES.c.sequence)
    )
)
_OF_TRIAL = _ENTRIES.c.trial == bindparam("of")
_OF_KEY = and_(_ENTRIES.c.kind == bindparam("sought"), _ENTRIES.c.key == bindparam("named"))
_OF_REMOVED = and_(_ENTRIES.c.kind == str(Kind.REMOVAL), _ENTRIES.c.key == bindparam("whom"))
_FIND = _WITH_PAYLOADS.where(_OF_TRIAL, _OF_KEY)
# Made once: every decision reads what is new several times, and making the query took longer than running it.
_AFTER = _WITH_PAYLOADS.where(_OF_TRIAL, _ENTRIES.c.sequence > bindparam("after")).order_by(_ENTRIES.c.sequence)
_FIND_OR_REMOVED = _WITH_PAYLOADS.where(_OF_TRIAL, or_(_OF_KEY, _OF_REMOVED))
_LAST = select(_ENTRIES.c.sequence, _ENTRIES.c.hash).where(_OF_TRIAL).order_by(_ENTRIES.c.sequence.desc()).limit(1)
_BY_THEN = select(func.max(_ENTRIES.c.sequence)).where(_OF_TRIAL, _ENTRIES.c.received_at <= bindparam("then"))
_INSERT_ENTRY, _INSERT_PAYLOAD = insert(_ENTRIES), insert(_PAYLOADS)
_ENTRY_NAMES, _PAYLOAD_NAMES = list(_ENTRIES.c.keys()), list(_PAYLOADS.c.keys())


@dataclass(frozen=True)
class Appended:
    """What became of an entry.

    Attributes:
        entry: as the ledger has it.
        new: False if it was there before; then the entry is the one that was recorded first.
    """

    entry: Entry
    new: bool


@dataclass(frozen=True)
class Head:
    """The end of a chain. Kept elsewhere, it proves later that nothing was cut off."""

    sequence: int
    hash: str


@dataclass(frozen=True)
class Removal:
    """What became of a request to remove a participant's data.

    Attributes:
        entry: the entry that says so.
        new: False if they had been removed before.
        payloads: how many payloads were deleted.
        overwritten: whether the database has also overwritten what it kept of them; it cannot while somebody reads.
    """

    entry: Entry
    new: bool
    payloads: int
    overwritten: bool = False


class Ledger:
    """The record of one trial in a database.

    Args:
        location: the path of a SQLite file, or a URL (``postgresql://user@host/name``).
        trial: the trial's name; a database may hold several, each with its own chain.
        clock: what says when an entry is received; None is the machine's clock.
        salts: where salts come from: bytes that nobody can guess; None is the operating system.
        patience: seconds that a writer waits for another one.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | Database,
        trial: str,
        *,
        clock: Callable[[], datetime] | None = None,
        salts: Callable[[], bytes] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.database = location if isinstance(location, Database) else Database(location, patience=patience)
        self.trial = check_name(trial, "the trial")
        self.clock = clock or partial(datetime.now, UTC)
        self.salts = salts or partial(secrets.token_bytes, 16)

    def append(
        self,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        *,
        participant: str | None = None,
        request_hash: str | None = None,
        response: bytes | None = None,
    ) -> Appended:
        """Record one entry; when this returns, it is on the disk.

        The same key again is a repeat if the request's hash is the same, or without one the payload: the entry that was
        recorded first comes back, with the bytes that were answered.

        Args:
            kind: one of `Kind`.
            key: what is unique among the trial's entries of this kind.
            payload: what happened, as JSON can have it; `exact` writes numbers of which every bit matters.
            participant: whom it is about.
            request_hash: a hash of the request as it came in.
            response: the bytes that will be answered.

        Raises:
            KeyConflict: if the key is taken by something else.
            ParticipantRemoved: if the participant's data were removed.
            NotRecorded: if the database could not take it.
        """
        with self.transaction() as writer:
            return writer.append(
                kind, key, payload, participant=participant, request_hash=request_hash, response=response
            )

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Several entries that are recorded together or not at all.

        A `KeyConflict` that the caller catches inside leaves the others as they are. Only the writer may be used
        inside: `append` of the ledger itself would wait for this very transaction.
        """
        with self.database.writing(self.trial) as connection:
            yield Writer(connection, self)

    def remove(self, participant: str, payload: Mapping[str, Any] | None = None) -> Removal:
        """Delete all that was recorded of a participant, and record that it was done, by `payload` why and for whom.

        Payloads, answers and salts go; entries with their hashes stay, so that the chain still verifies.
        """
        with self.transaction() as writer:
            done = writer.remove(participant, payload or {})
        return replace(done, overwritten=self.database.overwrite_deleted()) if done.new else done

    def entries(self, after: int = 0, until: int | None = None, participant: str | None = None) -> Iterator[Entry]:
        """Entries in their order, with payloads, as they were at one moment.

        Args:
            after: the sequence after which to begin.
            until: the last sequence, or None for the end.
            participant: only entries about this one.
        """
        if not self.database.is_there():
            return
        query, which = _AFTER, {"of": self.trial, "after": after}
        if until is not None:
            query = query.where(_ENTRIES.c.sequence <= until)
        if participant is not None:
            query = query.where(_ENTRIES.c.participant == participant)
        with (
            self.database.reading() as connection,
            connection.execution_options(yield_per=_CHUNK).execute(query, which) as streamed,
        ):
            for row in streamed:
                yield Entry(*row)

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry of a kind with a key, or None."""
        if not self.database.is_there():
            return None
        with self.database.reading() as connection:
            found = _select(connection, _FIND, {"of": self.trial, "sought": str(kind), "named": key})
        return found[0] if found else None

    def head(self) -> Head | None:
        """The last entry's number and hash, or None where nothing was recorded yet."""
        if not self.database.is_there():
            return None
        with self.database.reading() as connection:
            return _head(connection, self.trial)

    def last_by(self, time: datetime) -> int:
        """The number of the last entry that was received by a time; 0 for none."""
        if not self.database.is_there():
            return 0
        with self.database.reading() as connection:  # times of entries are texts of one length, in UTC
            return connection.execute(_BY_THEN, {"of": self.trial, "then": stamp(time)}).scalar_one() or 0

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Writer:
    """Records entries within one transaction; see `Ledger.transaction`."""

    def __init__(self, connection: Connection, ledger: Ledger) -> None:
        self._connection = connection
        self._ledger = ledger
        self._trial = ledger.trial
        self._last: Head | None = None

    def append(
        self,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        *,
        participant: str | None = None,
        request_hash: str | None = None,
        response: bytes | None = None,
    ) -> Appended:
        """As `Ledger.append`, but it is on the disk only when the transaction ends."""
        known = check_entry(kind, key, payload, participant)
        content = canonical(payload)
        stored = self._stored(known, key, participant)
        if stored is not None:
            _check_repeat(stored, content, participant, request_hash)
            return Appended(stored, new=False)
        salt = self._ledger.salts()
        last = self._last or _head(self._connection, self._trial) or Head(0, first(self._trial))
        draft = Entry(
            sequence=last.sequence + 1,
            trial=self._trial,
            kind=str(known),
            key=key,
            participant=participant,
            received_at=stamp(self._ledger.clock()),
            payload_hash=digest(salt, content),
            request_hash=None if request_hash is None else digest(salt, request_hash.encode()),
            response_hash=None if response is None else digest(salt, response),
            previous=last.hash,
            hash="",
            salt=salt,
            content=content,
            response=response,
        )
        entry = replace(draft, hash=draft.sealed())
        insert_entries(self._connection, [entry])
        self._last = Head(entry.sequence, entry.hash)
        return Appended(entry, new=True)

    def remove(self, participant: str, payload: Mapping[str, Any]) -> Removal:
        """As `Ledger.remove`; the database may keep traces of what was deleted until it tidies up."""
        about = and_(_ENTRIES.c.trial == self._trial, _ENTRIES.c.participant == participant)
        stored = self._stored(Kind.REMOVAL, participant, None)
        if stored is not None:
            return Removal(stored, new=False, payloads=0)
        count = self._connection.execute(select(func.count()).select_from(_ENTRIES).where(about)).scalar_one()
        done = self.append(Kind.REMOVAL, participant, {**payload, "payloads": count}, participant=participant)
        theirs = select(_ENTRIES.c.sequence).where(about, _ENTRIES.c.sequence < done.entry.sequence)
        gone = self._connection.execute(
            delete(_PAYLOADS).where(_PAYLOADS.c.trial == self._trial, _PAYLOADS.c.sequence.in_(theirs))
        )
        return Removal(done.entry, new=True, payloads=gone.rowcount)

    def _stored(self, kind: Kind, key: str, participant: str | None) -> Entry | None:
        """The entry with this key; where there is none, a participant whose data were removed is refused."""
        wanted = {"of": self._trial, "sought": str(kind), "named": key}
        if participant is None:
            rows = _select(self._connection, _FIND, wanted)
        else:
            rows = _select(self._connection, _FIND_OR_REMOVED, {**wanted, "whom": participant})
        for entry in rows:
            if entry.kind == kind and entry.key == key:
                return entry
        if rows:
            raise ParticipantRemoved(
                f"the data of participant {participant!r} were removed (entry {rows[0].sequence} of "
                f"{rows[0].received_at}): the {kind} {key!r} is not recorded"
            )
        return None


def insert_entries(connection: Connection, new: list[Entry]) -> None:
    """Write entries and their payloads as they are."""
    connection.execute(_INSERT_ENTRY, [{name: getattr(entry, name) for name in _ENTRY_NAMES} for entry in new])
    beside = [{name: getattr(entry, name) for name in _PAYLOAD_NAMES} for entry in new if not entry.removed]
    if beside:
        connection.execute(_INSERT_PAYLOAD, beside)


def trials_of(database: Database) -> list[str]:
    """Names of the trials that a database has a ledger of."""
    if not database.is_there():
        return []
    with database.reading() as connection:
        return list(connection.execute(select(_ENTRIES.c.trial).distinct().order_by(_ENTRIES.c.trial)).scalars())


def _select(connection: Connection, query: Select[Any], values: Mapping[str, str]) -> list[Entry]:
    return [Entry(*row) for row in connection.execute(query, values)]


def _head(connection: Connection, trial: str) -> Head | None:
    row = connection.execute(_LAST, {"of": trial}).one_or_none()
    return None if row is None else Head(*row)


def _check_repeat(stored: Entry, content: bytes, participant: str | None, request_hash: str | None) -> None:
    """Refuse what has the key of an entry but is not the same; of one whose payload was removed nobody can tell."""
    if stored.salt is None:
        return
    if request_hash is not None and stored.request_hash is not None:
        same = stored.answers(request_hash)
    else:
        same = stored.content == content
    if same and stored.participant == participant:
        return
    offered: Mapping[str, Any] = parsed(content)
    differing = sorted(
        name for name in stored.payload.keys() | offered.keys() if stored.payload.get(name) != offered.get(name)
    )
    if stored.participant != participant:
        differing.insert(0, f"the participant ({stored.participant} and {participant})")
    words = (  # names of fields, never their values: this may end up in a log
        f"the {stored.kind} {stored.key!r} is taken: entry {stored.sequence} of {stored.received_at} has the payload "
        f"{stored.payload_hash[:12]}…, and what came now is {digest(stored.salt, content)[:12]}…"
    )
    detail = f"; they differ in {', '.join(differing)}" if differing else "; their requests differ"
    raise KeyConflict(words + detail, stored.sequence, stored.kind, stored.key)

"""Who writes into a ledger: entries within one transaction, chained to those before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, func, select

from kerneltrail.errors import KeyConflict, ParticipantRemoved
from kerneltrail.store.canonical import canonical, digest, parsed
from kerneltrail.trial.ledger import queries
from kerneltrail.trial.ledger.entries import Entry, Kind, check_entry, first, stamp


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
class Draft:
    """An entry that can be recorded, checked and spelt; make one with `Draft.of`, as `Ledger.append` describes it."""

    kind: Kind
    key: str
    content: bytes
    participant: str | None
    request_hash: str | None = None
    response: bytes | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        participant: str | None = None,
        request_hash: str | None = None,
        response: bytes | None = None,
    ) -> Draft:
        """A draft; what cannot be recorded is refused, naming the field."""
        known = check_entry(kind, key, payload, participant)
        return cls(known, key, canonical(payload), participant, request_hash, response)


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


class Writer:
    """Records entries within one transaction; see `Ledger.transaction`."""

    def __init__(
        self, connection: Connection, trial: str, clock: Callable[[], datetime], salts: Callable[[], bytes]
    ) -> None:
        self._connection, self._trial = connection, trial
        self._clock, self._salts = clock, salts
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
        return self.record(Draft.of(kind, key, payload, participant, request_hash, response))

    def record(self, draft: Draft) -> Appended:
        """As `append`, of an entry that is spelt."""
        stored = self._stored(draft.kind, draft.key, draft.participant)
        if stored is not None:
            _check_repeat(stored, draft)
            return Appended(stored, new=False)
        entry = self._sealed(draft)
        insert_entries(self._connection, [entry])
        return Appended(entry, new=True)

    def extend(self, drafts: Sequence[Draft]) -> list[Appended | KeyConflict | ParticipantRemoved]:
        """Record several entries of one kind; for each what became of it, which for some may be why it was refused."""
        if not drafts:
            return []
        (kind,) = {draft.kind for draft in drafts}
        keys = [draft.key for draft in drafts]
        people = list({draft.participant for draft in drafts if draft.participant is not None})
        wanted = {"of": self._trial, "sought": str(kind), "several": keys, "people": people}
        rows = [Entry(*row) for row in self._connection.execute(queries.FIND_SEVERAL, wanted)]
        known = {entry.key: entry for entry in rows if entry.kind == kind}
        removed = {entry.key: entry for entry in rows if entry.kind == Kind.REMOVAL}
        results: list[Appended | KeyConflict | ParticipantRemoved] = []
        new: list[Entry] = []
        for draft in drafts:
            stored = known.get(draft.key)
            if stored is not None:
                try:
                    _check_repeat(stored, draft)
                    results.append(Appended(stored, new=False))
                except KeyConflict as conflict:
                    results.append(conflict)
            elif draft.participant in removed:
                results.append(_gone(removed[draft.participant], draft.kind, draft.key))
            else:
                entry = known[draft.key] = self._sealed(draft)
                new.append(entry)
                results.append(Appended(entry, new=True))
        if new:
            insert_entries(self._connection, new)
        return results

    def _sealed(self, draft: Draft) -> Entry:
        """The next entry of the chain."""
        salt = self._salts()
        last = self._last or _head(self._connection, self._trial) or Head(0, first(self._trial))
        open_entry = Entry(
            sequence=last.sequence + 1,
            trial=self._trial,
            kind=str(draft.kind),
            key=draft.key,
            participant=draft.participant,
            received_at=stamp(self._clock()),
            payload_hash=digest(salt, draft.content),
            request_hash=None if draft.request_hash is None else digest(salt, draft.request_hash.encode()),
            response_hash=None if draft.response is None else digest(salt, draft.response),
            previous=last.hash,
            hash="",
            salt=salt,
            content=draft.content,
            response=draft.response,
        )
        entry = replace(open_entry, hash=open_entry.sealed())
        self._last = Head(entry.sequence, entry.hash)
        return entry

    def remove(self, participant: str, payload: Mapping[str, Any]) -> Removal:
        """As `Ledger.remove`; the database may keep traces of what was deleted until it tidies up."""
        about = and_(queries.ENTRIES.c.trial == self._trial, queries.ENTRIES.c.participant == participant)
        stored = self._stored(Kind.REMOVAL, participant, None)
        if stored is not None:
            return Removal(stored, new=False, payloads=0)
        count = self._connection.execute(select(func.count()).select_from(queries.ENTRIES).where(about)).scalar_one()
        done = self.append(Kind.REMOVAL, participant, {**payload, "payloads": count}, participant=participant)
        theirs = select(queries.ENTRIES.c.sequence).where(about, queries.ENTRIES.c.sequence < done.entry.sequence)
        gone = self._connection.execute(
            delete(queries.PAYLOADS).where(
                queries.PAYLOADS.c.trial == self._trial, queries.PAYLOADS.c.sequence.in_(theirs)
            )
        )
        return Removal(done.entry, new=True, payloads=gone.rowcount)

    def _stored(self, kind: Kind, key: str, participant: str | None) -> Entry | None:
        """The entry with this key; where there is none, a participant whose data were removed is refused."""
        wanted = {"of": self._trial, "sought": str(kind), "named": key, "whom": participant}
        stored = removal = None
        for row in self._connection.execute(queries.BEFORE_WRITING, wanted):
            entry = Entry(*row)
            if entry.kind == kind and entry.key == key:
                stored = entry
            if participant is not None and entry.kind == Kind.REMOVAL and entry.key == participant:
                removal = entry
            if self._last is None or entry.sequence > self._last.sequence:
                self._last = Head(entry.sequence, entry.hash)
        if stored is None and removal is not None:
            raise _gone(removal, kind, key)
        return stored


def _gone(removal: Entry, kind: Kind, key: str) -> ParticipantRemoved:
    return ParticipantRemoved(
        f"the data of participant {removal.key!r} were removed (entry {removal.sequence} of {removal.received_at}): "
        f"the {kind} {key!r} is not recorded"
    )


def insert_entries(connection: Connection, new: list[Entry]) -> None:
    """Write entries and their payloads as they are."""
    rows = [{name: getattr(entry, name) for name in queries.ENTRY_NAMES} for entry in new]
    beside = [{name: getattr(entry, name) for name in queries.PAYLOAD_NAMES} for entry in new if not entry.removed]
    if len(new) == len(beside) == 1 and connection.dialect.name == "postgresql":
        connection.execute(queries.INSERT_BOTH, rows[0] | beside[0])
        return
    connection.execute(queries.INSERT_ENTRY, rows)
    if beside:
        connection.execute(queries.INSERT_PAYLOAD, beside)


def _head(connection: Connection, trial: str) -> Head | None:
    row = connection.execute(queries.LAST, {"of": trial}).one_or_none()
    return None if row is None else Head(*row)


def _check_repeat(stored: Entry, draft: Draft) -> None:
    """Refuse what has the key of an entry but is not the same; of one whose payload was removed nobody can tell."""
    content, participant, request_hash = draft.content, draft.participant, draft.request_hash
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

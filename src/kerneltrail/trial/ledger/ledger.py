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
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

from sqlalchemy import select

from kerneltrail.trial.ledger import queries
from kerneltrail.trial.ledger.database import PATIENCE, Database
from kerneltrail.trial.ledger.entries import Entry, check_name, stamp
from kerneltrail.trial.ledger.together import Together
from kerneltrail.trial.ledger.writer import Appended, Draft, Head, Removal, Writer


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
        self._together = Together(self.transaction)

    def append(
        self,
        kind: str,
        key: str,
        payload: Mapping[str, Any],
        *,
        participant: str | None = None,
        request_hash: str | None = None,
        response: bytes | None = None,
        patience: float | None = None,
    ) -> Appended:
        """Record one entry; when this returns, it is on the disk. What several threads append may be one commit.

        The same key again is a repeat if the request's hash is the same, or without one the payload: the entry that was
        recorded first comes back, with the bytes that were answered.

        Args:
            kind: one of `Kind`.
            key: what is unique among the trial's entries of this kind.
            payload: what happened, as JSON can have it; `exact` writes numbers of which every bit matters.
            participant: whom it is about.
            request_hash: a hash of the request as it came in.
            response: the bytes that will be answered.
            patience: seconds to wait for other writers, if less than usual.

        Raises:
            KeyConflict: if the key is taken by something else.
            ParticipantRemoved: if the participant's data were removed.
            NotRecorded: if the database could not take it.
        """
        draft = Draft.of(kind, key, payload, participant, request_hash, response)
        return self._together.record(draft, patience, self.database.for_threads(patience))

    @contextmanager
    def transaction(self, patience: float | None = None) -> Iterator[Writer]:
        """Several entries that are recorded together or not at all; `patience` as in `append`.

        A `KeyConflict` that the caller catches inside leaves the others as they are. Only the writer may be used
        inside: `append` of the ledger itself would wait for this very transaction.
        """
        with self.database.writing(self.trial, patience) as connection:
            yield Writer(connection, self.trial, self.clock, self.salts)

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
        query, which = queries.AFTER, {"of": self.trial, "after": after}
        if until is not None:
            query = query.where(queries.ENTRIES.c.sequence <= until)
        if participant is not None:
            query = query.where(queries.ENTRIES.c.participant == participant)
        with (
            self.database.reading() as connection,
            connection.execution_options(yield_per=queries.CHUNK).execute(query, which) as streamed,
        ):
            for row in streamed:
                yield Entry(*row)

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry of a kind with a key, or None."""
        if not self.database.is_there():
            return None
        found = self.database.fetched(queries.FIND, {"of": self.trial, "sought": str(kind), "named": key})
        return Entry(*found[0]) if found else None

    def following(self, after: int) -> list[Entry]:
        """The next entries after a number, a thousand at most: quicker than `entries` where there are few."""
        if not self.database.is_there():
            return []
        return [Entry(*row) for row in self.database.fetched(queries.NEXT, {"of": self.trial, "after": after})]

    def head(self) -> Head | None:
        """The last entry's number and hash, or None where nothing was recorded yet."""
        if not self.database.is_there():
            return None
        rows = self.database.fetched(queries.LAST, {"of": self.trial})
        return Head(*rows[0]) if rows else None

    def last_by(self, time: datetime) -> int:
        """The number of the last entry that was received by a time; 0 for none."""
        if not self.database.is_there():
            return 0
        ((last,),) = self.database.fetched(queries.BY_THEN, {"of": self.trial, "then": stamp(time)})
        return last or 0  # times of entries are texts of one length, in UTC

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def trials_of(database: Database) -> list[str]:
    """Names of the trials that a database has a ledger of."""
    if not database.is_there():
        return []
    with database.reading() as connection:
        return list(
            connection.execute(select(queries.ENTRIES.c.trial).distinct().order_by(queries.ENTRIES.c.trial)).scalars()
        )

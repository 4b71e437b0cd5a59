"""Entries of the ledger: their kinds, what each must say, and the hash that chains one to the one before.

An entry never holds what was observed of a person. That is in its payload, which lies beside it with a random salt; the
entry keeps only the hash of both. Once payload and salt are deleted nobody can find out by guessing what they were, and
the chain still verifies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import quote

from kerneltrail.errors import DataError
from kerneltrail.store.canonical import canonical, digest, parsed, real

FORMAT = "kerneltrail ledger 1"
"""What the first entry of a chain stands on, with the name of the trial."""
LONGEST = 500
"""The longest name of a trial, a participant or a key, in bytes of UTF-8: PostgreSQL's indexes have a limit."""


class Kind(StrEnum):
    """What an entry records."""

    PROTOCOL = "protocol"
    PARTICIPANT = "participant"
    EVENT = "event"
    REMOVAL = "removal"
    DECISION = "decision"
    DELIVERY = "delivery"
    OBSERVATION = "observation"
    OUTCOME = "outcome"
    UPDATE_STARTED = "update-started"
    UPDATE_FINISHED = "update-finished"
    POLICY_ACTIVATED = "policy-activated"
    INCIDENT = "incident"
    ACKNOWLEDGEMENT = "acknowledgement"
    KEY_CREATED = "key-created"
    KEY_REVOKED = "key-revoked"
    LOOK = "look"


EVENTS = ("pause", "resume", "withdraw")
"""What an event can say; that data were removed is a kind of its own, because the database itself must see it."""
PERSONAL = frozenset(
    {Kind.PARTICIPANT, Kind.EVENT, Kind.REMOVAL, Kind.DECISION, Kind.DELIVERY, Kind.OBSERVATION, Kind.OUTCOME}
)
"""Kinds that are about one participant, who must be named, so that their payloads can be removed."""


@dataclass(frozen=True)
class Field:
    """A field of a payload: its type (text, time, number, share, action, flag, event, any).

    Attributes:
        type: what its value must be.
        missing: whether null is allowed: nothing was observed, nothing was delivered.
        optional: whether the field may be left out.
    """

    type: str
    missing: bool = False
    optional: bool = False


REQUIRED: Mapping[Kind, Mapping[str, Field]] = {
    Kind.PROTOCOL: {"version": Field("any"), "hash": Field("text")},
    Kind.EVENT: {"kind": Field("event"), "at": Field("time")},
    Kind.DECISION: {
        "kind": Field("text"),
        "index": Field("any"),
        "decided_at": Field("time"),
        "available": Field("flag"),
        "action": Field("action"),
        "probability": Field("share"),
    },
    Kind.DELIVERY: {
        "decision": Field("text"),
        "status": Field("text"),
        "at": Field("time", missing=True),
        "delivered_action": Field("action", missing=True),
    },
    Kind.OBSERVATION: {"observed_at": Field("time")},
    Kind.OUTCOME: {
        "decision": Field("text", missing=True),
        "value": Field("number", missing=True),
        "observed_at": Field("time"),
        "supersedes": Field("text", missing=True, optional=True),
    },
    Kind.UPDATE_FINISHED: {"state": Field("text")},
    Kind.POLICY_ACTIVATED: {"version": Field("any"), "reason": Field("text")},
    Kind.INCIDENT: {"kind": Field("text")},
    Kind.ACKNOWLEDGEMENT: {"incident": Field("text")},
    Kind.KEY_CREATED: {"scopes": Field("any"), "sha256": Field("text")},
    Kind.LOOK: {"by": Field("text"), "what": Field("text")},
}
"""What folds and exports read of each kind, and therefore must be there; a payload may say more."""


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger, with its payload if that was not removed.

    Attributes:
        sequence: 1 for the first entry of a trial, and one more for each after it.
        trial: whose ledger it is.
        kind: what it records, one of `Kind`.
        key: its natural key, unique among the trial's entries of this kind.
        participant: whom it is about, or None.
        received_at: when it was recorded, in UTC to the microsecond.
        payload_hash: SHA-256 of salt and payload.
        request_hash: SHA-256 of salt and the hash of the request that led to it, or None.
        response_hash: SHA-256 of salt and the bytes that were answered, or None.
        previous: the hash of the entry before.
        hash: SHA-256 of all of the above.
        salt: random bytes, or None where the payload was removed.
        content: the payload as canonical JSON, or None where it was removed.
        response: the bytes that were answered, or None.
    """

    sequence: int
    trial: str
    kind: str
    key: str
    participant: str | None
    received_at: str
    payload_hash: str
    request_hash: str | None
    response_hash: str | None
    previous: str
    hash: str
    salt: bytes | None = None
    content: bytes | None = None
    response: bytes | None = None

    @property
    def removed(self) -> bool:
        """Whether its payload is no longer there."""
        return self.content is None

    @cached_property
    def payload(self) -> Mapping[str, Any]:
        """What was recorded; asking for one that was removed is an error."""
        if self.content is None:
            raise DataError(f"entry {self.sequence} ({self.kind} {self.key!r}): its payload was removed")
        return parsed(self.content)

    def answers(self, request_hash: str) -> bool:
        """Whether it was recorded for this very request; of one whose payload was removed nobody can tell: False."""
        return self.salt is not None and digest(self.salt, request_hash.encode()) == self.request_hash

    def sealed(self) -> str:
        """The hash that it must have."""
        return digest(
            canonical(
                {
                    "sequence": self.sequence,
                    "trial": self.trial,
                    "kind": self.kind,
                    "key": self.key,
                    "participant": self.participant,
                    "received_at": self.received_at,
                    "payload_hash": self.payload_hash,
                    "request_hash": self.request_hash,
                    "response_hash": self.response_hash,
                    "previous": self.previous,
                }
            )
        )


def first(trial: str) -> str:
    """What stands for the hash before a trial's first entry."""
    return digest(f"{FORMAT}\n{trial}".encode())


def key_of(*parts: str | int) -> str:
    """A key from its parts, whatever signs they have: no two lists of parts have the same.

    >>> key_of("p/1", "walk", 3)
    'p%2F1/walk/3'
    """
    return "/".join(quote(str(part), safe=" @:+,;=") for part in parts)


def stamp(time: datetime) -> str:
    """A time as entries have it; one without a zone is refused.

    >>> stamp(datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    '2026-03-01T09:30:00.000000Z'
    """
    if time.tzinfo is None:
        raise DataError(f"the time {time} has no zone, so nobody can say when it was")
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str) -> datetime:
    """A time from a payload: ISO 8601 with a zone."""
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise DataError(f"{text!r} is no time: expected one such as 2026-03-01T09:30:00+01:00") from None
    if time.tzinfo is None:
        raise DataError(f"the time {text!r} has no zone: expected one such as 2026-03-01T09:30:00+01:00")
    return time


_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_name(text: Any, what: str) -> str:
    """A name of a trial, a participant or a key, as every database can keep it; else refused."""
    if not isinstance(text, str) or _CONTROL.search(text) or not 0 < len(text.encode("utf-8")) <= LONGEST:
        raise DataError(f"{what} is {text!r}: expected a text of 1 to {LONGEST} bytes without control characters")
    return text


def check_entry(kind: str, key: str, payload: Any, participant: str | None) -> Kind:
    """The kind, if an entry can be recorded so; else an error that names the field and what was expected."""
    try:
        known = Kind(kind)
    except ValueError:
        raise DataError(f"{kind!r} is no kind of entry; there are {', '.join(Kind)}") from None
    check_name(key, f"the key of an entry of kind {known}")
    if participant is not None:
        check_name(participant, "the participant")
        if known not in PERSONAL and known != Kind.INCIDENT:
            raise DataError(
                f"an entry of kind {known} is not about one participant: name them in its payload, if at all"
            )
    elif known in PERSONAL:
        raise DataError(
            f"an entry of kind {known} is about a participant, who must be named so that data can be removed"
        )
    if not isinstance(payload, Mapping):
        raise DataError(f"the payload of {known} {key!r} is a {type(payload).__name__}: expected names with values")
    for name, field in REQUIRED.get(known, {}).items():
        if name not in payload:
            if field.optional:
                continue
            raise DataError(f"the payload of {known} {key!r} has no {name!r}")
        value = payload[name]
        if not (value is None and field.missing):
            try:
                _check_value(value, field.type)
            except DataError as problem:
                raise DataError(f"the payload of {known} {key!r}, {name!r}: {problem}") from None
    return known


def _check_value(value: Any, kind: str) -> None:
    expected = {"text": "a text", "flag": "true or false", "action": "0 or 1", "event": f"one of {', '.join(EVENTS)}"}
    if kind == "time":
        instant(value)
    elif kind in ("number", "share"):
        amount = real(value)
        if kind == "share" and not 0 <= amount <= 1:
            raise DataError(f"{value!r} is no probability")
    elif (
        (kind == "text" and not isinstance(value, str))
        or (kind == "flag" and not isinstance(value, bool))
        or (kind == "action" and (isinstance(value, bool) or value not in (0, 1)))
        or (kind == "event" and value not in EVENTS)
        or value is None
    ):
        raise DataError(f"{value!r}, expected {expected.get(kind, 'a value')}")

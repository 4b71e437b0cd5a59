"""What a ledger's entries come to: a state that is a function of the entries alone, and can be thrown away.

A state goes on from where it stands, or begins at the first entry: both come to the same.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kerneltrail.errors import LedgerError
from kerneltrail.trial.ledger.entries import Entry, Kind, first
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.ledger.participant import Participant

FEW = 500
"""After fewer new entries than that nobody looks whether there are more: they came while these were read."""


class OutOfTurn(LedgerError):
    """An entry that does not follow the one before it in this chain."""


@dataclass(frozen=True)
class Protocol:
    """A version of the protocol as it was frozen."""

    sequence: int
    received_at: str
    version: Any
    hash: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Activation:
    """A policy that began to serve; after a rollback the same version comes again."""

    sequence: int
    received_at: str
    version: Any
    reason: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Update:
    """An update of the policy: what it began with and what it ended with; an end of None: it runs, or was killed."""

    id: str
    started: int
    started_at: str
    request: Mapping[str, Any]
    finished: int | None = None
    finished_at: str | None = None
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Incident:
    """Something that somebody has to look at; its payload is None where its participant's data were removed."""

    id: str
    sequence: int
    received_at: str
    participant: str | None
    payload: Mapping[str, Any] | None
    acknowledged: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # when, and what was written, each time

    @property
    def is_open(self) -> bool:
        """Whether nobody has acknowledged it."""
        return not self.acknowledged


@dataclass(frozen=True)
class Key:
    """A key to the service: its scopes, the hash of its secret, and when it was revoked, if it was."""

    id: str
    created_at: str
    payload: Mapping[str, Any]
    revoked_at: str | None = None


@dataclass(frozen=True)
class Look:
    """Somebody saw outcomes by action: when, with which key, of what, and why."""

    sequence: int
    received_at: str
    by: str
    payload: Mapping[str, Any]


@dataclass
class State:
    """A trial as its entries so far have it.

    Attributes:
        trial: its name.
        sequence: the last entry that was taken in, and
        hash: its hash.
        protocols: versions in the order they were frozen; the last is in force.
        participants: by identifier.
        activations: of policies, in their order; the last one serves.
        updates: by identifier, in the order they were started.
        incidents: by identifier, in the order they were recorded.
        keys: by identifier.
        looks: at outcomes by action, in the order they were recorded.
    """

    trial: str
    sequence: int = 0
    hash: str = ""
    protocols: list[Protocol] = field(default_factory=list)
    participants: dict[str, Participant] = field(default_factory=dict)
    activations: list[Activation] = field(default_factory=list)
    updates: dict[str, Update] = field(default_factory=dict)
    incidents: dict[str, Incident] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    # Acknowledgements of incidents that are not recorded yet.
    _early: dict[str, list[tuple[str, Mapping[str, Any]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hash = self.hash or first(self.trial)

    @property
    def protocol(self) -> Protocol | None:
        """The version in force, or None before one was frozen."""
        return self.protocols[-1] if self.protocols else None

    @property
    def active_policy(self) -> Activation | None:
        """The policy that serves, or None before the first."""
        return self.activations[-1] if self.activations else None

    @property
    def running_update(self) -> Update | None:
        """The newest update that was started and has not finished."""
        return next((update for update in reversed(self.updates.values()) if update.finished is None), None)

    def apply(self, entry: Entry) -> None:
        """Take in the next entry; any other is refused."""
        if entry.sequence != self.sequence + 1 or entry.previous != self.hash:
            raise OutOfTurn(f"entry {entry.sequence} does not follow entry {self.sequence} of the trial {self.trial}")
        if entry.kind == Kind.INCIDENT:
            self._open(entry)
        elif entry.kind == Kind.REMOVAL:
            self.participants[entry.key] = self._person(entry.key).forgotten(entry)
            theirs = {name: each for name, each in self.incidents.items() if each.participant == entry.key}
            self.incidents |= {name: replace(each, payload=None) for name, each in theirs.items()}
        elif entry.participant is not None:
            self._person(entry.participant).apply(entry)
        else:
            self._take(entry, entry.payload)
        self.sequence, self.hash = entry.sequence, entry.hash

    def _person(self, name: str) -> Participant:
        return self.participants.setdefault(name, Participant(name))

    def _open(self, entry: Entry) -> None:
        payload = None if entry.removed else entry.payload
        said = tuple(self._early.pop(entry.key, ()))
        person = entry.participant
        self.incidents[entry.key] = Incident(entry.key, entry.sequence, entry.received_at, person, payload, said)

    def _take(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        where = (entry.sequence, entry.received_at)
        match entry.kind:
            case Kind.PROTOCOL:
                self.protocols.append(Protocol(*where, payload["version"], payload["hash"], payload))
            case Kind.POLICY_ACTIVATED:
                self.activations.append(Activation(*where, payload["version"], payload["reason"], payload))
            case Kind.UPDATE_STARTED:
                self.updates[entry.key] = Update(entry.key, *where, payload)
            case Kind.UPDATE_FINISHED if entry.key in self.updates:
                self.updates[entry.key] = replace(
                    self.updates[entry.key], finished=entry.sequence, finished_at=entry.received_at, result=payload
                )
            case Kind.ACKNOWLEDGEMENT:
                name, said = payload["incident"], (entry.received_at, payload)
                if name in self.incidents:
                    incident = self.incidents[name]
                    self.incidents[name] = replace(incident, acknowledged=(*incident.acknowledged, said))
                else:
                    self._early.setdefault(name, []).append(said)
            case Kind.KEY_CREATED:
                self.keys[entry.key] = Key(entry.key, entry.received_at, payload)
            case Kind.KEY_REVOKED if entry.key in self.keys:
                self.keys[entry.key] = replace(self.keys[entry.key], revoked_at=entry.received_at)
            case Kind.LOOK:
                self.looks.append(Look(*where, payload["by"], payload))


def fold(trial: str, entries: Iterable[Entry], state: State | None = None) -> State:
    """The state that entries come to: from the first one, or going on from a state."""
    state = State(trial) if state is None else state
    for entry in entries:
        state.apply(entry)
    return state


class Folded:
    """A ledger's state, kept in memory and brought up to date when it is asked for.

    The state is one object that changes in the next call of `state`: threads that share it hold `lock` meanwhile.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lock = threading.RLock()
        self._state = State(ledger.trial)
        self._read = -math.inf

    def state(self, since: float | None = None) -> State:
        """With all entries that are recorded by now; or with all that were recorded by `since`, and perhaps later ones.

        A time is one of `time.monotonic`. What was read after it need not be read again: a call that came in at that
        time has all that anybody had been told of by then, by whichever process.
        """
        with self.lock:
            if since is not None and self._read >= since:
                return self._state
            began = time.monotonic()
            try:
                fold(self.ledger.trial, self._new(), self._state)
            except OutOfTurn:  # not the chain that it was: restored from a copy, say
                self._state = State(self.ledger.trial)
                fold(self.ledger.trial, self._new(), self._state)
            self._read = began
            return self._state

    def _new(self) -> Iterator[Entry]:
        """Entries after the last one, which must still be there."""
        last = self._state
        while True:
            entries = self.ledger.following(max(0, last.sequence - 1))
            if last.sequence and (not entries or entries[0].hash != last.hash):
                raise OutOfTurn(f"entry {last.sequence} of the trial {last.trial} is not the one that was read before")
            new = entries[1:] if last.sequence else entries
            if not new:
                return
            yield from new
            if len(new) < FEW:
                return

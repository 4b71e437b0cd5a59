"""What all parts of a trial's conduct share: the ledger with its fold, the models, the draws, and what is in memory."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kerneltrail import gp
from kerneltrail.data import Cohort
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import KeyPublished, ParticipantRemoved, TrialError, UnknownName
from kerneltrail.store.canonical import digest, parsed
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.decision import Policy
from kerneltrail.trial.draw import PUBLISHED, Draws
from kerneltrail.trial.keeping import Keeping
from kerneltrail.trial.ledger import canonical
from kerneltrail.trial.ledger.entries import Entry, Kind
from kerneltrail.trial.ledger.folds import Folded, State
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.ledger.writer import Appended, Draft, Writer
from kerneltrail.trial.models import Models
from kerneltrail.trial.points import Pasts
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Answer
from kerneltrail.trial.rows import Row, rows_of
from kerneltrail.trial.states import States
from kerneltrail.trial.versions import Version, Versions

Clock = Callable[[], datetime]


class _OneThread:
    """One BLAS thread in this process, as long as any trial is open."""

    def __init__(self) -> None:
        self._open = 0
        self._lock = threading.Lock()
        self._limit = ExitStack()

    def acquire(self) -> None:
        with self._lock:
            if not self._open:
                self._limit.enter_context(one_blas_thread())
            self._open += 1

    def release(self) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                self._limit.close()


_ONE_THREAD = _OneThread()


@dataclass
class Core:
    """The parts of a trial. What it holds beside ledger, key and models is a cache."""

    ledger: Ledger
    draws: Draws
    models: Models
    clock: Clock
    backups: Path | None = None
    pilot: Cohort | None = None
    states: States = field(default_factory=States)
    keep: Keeping = field(default_factory=Keeping)
    demonstration: bool = False  # nobody takes part, so it may draw with a key that is public
    pasts: Pasts = field(default_factory=Pasts)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)  # of this process, so that a later one is another
    flights: set[str] = field(default_factory=set)  # decisions that threads of this process are making
    working: set[str] = field(default_factory=set)  # updates that threads of this process are at
    landed: threading.Condition = field(default_factory=threading.Condition)
    beside: list[threading.Thread] = field(default_factory=list)  # that work beside decisions, and
    ending: threading.Event = field(default_factory=threading.Event)  # that they should come to an end

    def __post_init__(self) -> None:
        self._folded = Folded(self.ledger)
        self._last: State | None = None
        self._protocols: dict[str, Protocol] = {}
        self._ids: tuple[int, dict[str, tuple[str, str]]] = (0, {})
        self._versions: tuple[State, int, Versions] | None = None
        # The last bits of sums depend on the number of BLAS threads, and on who compiled the code.
        _ONE_THREAD.acquire()
        self._closed = False
        gp.compilation.ensure_compiled()

    def close(self) -> None:
        """Wait for a running update, end threads, and give back connections."""
        self.ending.set()
        for thread in self.beside:
            thread.join()
        self.states.close()
        self.ledger.close()
        if not self._closed:
            self._closed = True
            _ONE_THREAD.release()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Close everything if the block fails: nobody gets the trial then, who could close it."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self, since: float | None = None) -> Iterator[State]:
        """The ledger's state with all that is recorded by now, or was by `since` (`Folded.state`).

        It does not change within.
        """
        with self._folded.lock:
            state = self._folded.state(since)
            if state is not self._last:  # another chain: the ledger was restored from a copy
                self.states.forget()
                self.pasts.clear()
                self._last, self._ids = state, (0, {})
            yield state

    def snapshot(self) -> State:
        """A copy of the state, for whoever reads for long: decisions need not wait until they are done."""
        with self.reading() as state:
            people = {name: _copy(person) for name, person in state.participants.items()}
            return replace(
                state,
                protocols=list(state.protocols),
                participants=people,
                activations=list(state.activations),
                updates=dict(state.updates),
                incidents=dict(state.incidents),
                keys=dict(state.keys),
                looks=list(state.looks),
            )

    def protocol(self, state: State, hash: str | None = None) -> Protocol:
        """The protocol in force, or the one with a hash."""
        if state.protocol is None:
            raise TrialError(f"the trial {state.trial} has no protocol yet: freeze one first")
        wanted = state.protocol.hash if hash is None else hash
        if wanted not in self._protocols:
            for each in state.protocols:
                if each.hash == wanted:
                    self._protocols[wanted] = Protocol.from_json(each.payload["protocol"])
                    break
            else:
                raise UnknownName(f"no protocol with the hash {wanted[:12]}… was frozen")
        return self._protocols[wanted]

    def versions(self, state: State) -> Versions:
        """All versions that have served, kept until another one serves; a version is recorded with its turn."""
        count, kept = len(state.activations), self._versions
        if kept is None or kept[0] is not state or kept[1] != count:
            kept = self._versions = (state, count, Versions(state))
        return kept[2]

    def check_secret(self, state: State) -> None:
        """Refuse to draw with a key that everybody may have, but for a demonstration.

        Raises:
            KeyPublished: with what to do.
        """
        known = state.incidents.get(PUBLISHED)
        if known is not None and not self.demonstration:
            raise KeyPublished(
                f"nothing is drawn in the trial {state.trial} any more, because {(known.payload or {}).get('words')}: "
                "stop its servers and revoke their keys (`kerneltrail trial key revoke`). To go on deciding, begin a "
                "trial with a key of its own in another folder (`kerneltrail trial init`)"
            )

    def person(self, state: State, participant: str) -> Participant:
        """A participant, if they are enrolled and their data are there."""
        person = state.participants.get(participant)
        if person is not None and person.removed is not None:
            raise ParticipantRemoved(
                f"the data of participant {participant!r} were removed (entry {person.removed}): nothing more is "
                "recorded of them"
            )
        if person is None or person.enrolled is None:
            # Others' study ids are nobody's business who does not know them, so none is offered as the nearest.
            raise UnknownName(f"no participant {participant!r} is enrolled: look at the spelling, or enrol them first")
        return person

    def find(self, state: State, name: str) -> tuple[str, str]:
        """The participant and the key of a decision, by its id or its key.

        Raises:
            UnknownName: if there is none; of one that was removed only the key is known.
        """
        until, ids = self._ids
        if until < state.sequence:
            for person in state.participants.values():
                for key, decision in reversed(person.decisions.items()):
                    if decision.sequence <= until:  # they stand in the order they were recorded
                        break
                    ids[key] = (person.id, key)
                    if decision.payload is not None:
                        ids[decision.payload["decision_id"]] = (person.id, key)
            self._ids = (state.sequence, ids)
        if name not in ids:
            raise UnknownName(f"there is no decision {name!r}")
        return ids[name]

    def gather(self, person: Participant, batches: tuple[tuple[int, ...], ...]) -> Callable[[int], list[list[Row]]]:
        """How to get the rows of batches, from one of them on; the participant's entries are looked up when asked."""

        def rows(begin: int) -> list[list[Row]]:
            with self._folded.lock:
                return rows_of(person, batches[begin:])

        return rows

    def policy(self, protocol: Protocol, version: Version) -> Policy:
        """What decides at a version; a model that is missing is an `UnknownName`."""
        return Policy(version.version, self.models.get(version.model_id), version.model_id, protocol.rule)

    def user(
        self,
        person: Participant,
        versions: Versions,
        version: Version,
        states: States | None = None,
        *,
        compute: bool = True,
    ) -> NewUser | None:
        """A participant as followed at a version, computed if need be and told; None for one without rows."""
        batches = versions.batches(version.version, person.id)
        if not batches:
            return None
        model, states = self.models.get(version.model_id), states or self.states
        followed = states.compute if compute else states.known
        return followed(model, version.model_id, person.id, batches, self.gather(person, batches))

    def answer(self, appended: Appended) -> Answer:
        """What is answered for an entry."""
        return answer_of(appended.entry, new=appended.new)

    def append(
        self,
        kind: Kind,
        key: str,
        payload: Mapping[str, Any],
        answer: Mapping[str, Any],
        *,
        participant: str | None = None,
        request: Mapping[str, Any] | None = None,
        writer: Writer | None = None,
    ) -> Answer:
        """Record an entry with what is answered; with the hash of the request where it is more than the payload."""
        recorder: Ledger | Writer = self.ledger if writer is None else writer
        appended = recorder.append(
            kind,
            key,
            payload,
            participant=participant,
            request_hash=None if request is None else digest(canonical(request)),
            response=canonical(answer),
        )
        return self.answer(appended)

    def incident(
        self,
        kind: str,
        words: str,
        *,
        severity: str = "warning",
        participant: str | None = None,
        key: str | None = None,
        details: Mapping[str, Any] | None = None,
        writer: Writer | None = None,
    ) -> Answer:
        """Record an incident; with a key once, whatever its words then."""
        name = key or uuid.uuid4().hex
        known = self.ledger.get(Kind.INCIDENT, name) if key is not None else None
        if known is not None:
            return answer_of(known, new=False)
        draft = incident_draft(kind, words, severity, participant, name, details or {})
        if writer is not None:
            (appended,) = writer.extend([draft])
        else:
            with self.ledger.transaction() as alone:
                (appended,) = alone.extend([draft])
        if isinstance(appended, Exception):
            raise appended
        return self.answer(appended)


def incident_draft(
    kind: str, words: str, severity: str, participant: str | None, name: str, details: Mapping[str, Any]
) -> Draft:
    """The entry of an incident."""
    payload = {"kind": kind, "severity": severity, "words": words, **details}
    shown = {"incident": name, **payload, "participant": participant}
    request = digest(canonical({"kind": kind}))
    return Draft.of(Kind.INCIDENT, name, payload, participant, request, canonical(shown))


def _copy(person: Participant) -> Participant:
    return replace(
        person,
        changes=list(person.changes),
        decisions=dict(person.decisions),
        deliveries={key: list(several) for key, several in person.deliveries.items()},
        observations=list(person.observations),
        outcomes=dict(person.outcomes),
    )


def answer_of(entry: Entry, *, new: bool) -> Answer:
    """What was answered when an entry was recorded."""
    if entry.response is None:
        raise ParticipantRemoved(
            f"entry {entry.sequence} ({entry.kind} {entry.key!r}) was removed with what was answered to it"
        )
    return Answer(entry.response, new, entry.sequence, parsed(entry.response))


def folder_of_copies(ledger: Ledger, given: str | os.PathLike[str] | None) -> Path | None:
    """Where copies of a ledger are kept: as given, or beside a SQLite file."""
    if given is not None:
        return Path(given)
    return Path(str(ledger.database.url.database)).parent / "backups" if ledger.database.is_sqlite else None

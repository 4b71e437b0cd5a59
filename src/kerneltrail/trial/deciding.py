"""Decisions of a running trial: from a request to an entry of the ledger, and only then to an answer.

The record says of which entries the decision knew (`until`). Others may be recorded while it is made; a replay leaves
them out, and so comes to the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from kerneltrail.errors import DataError, DecisionError, InFlight, KeyConflict, NotActive
from kerneltrail.store.canonical import digest
from kerneltrail.store.validate import plain
from kerneltrail.trial.answer import Decision, Rung
from kerneltrail.trial.core import Core, answer_of
from kerneltrail.trial.decision import Policy, State, begun
from kerneltrail.trial.ladder import Source, decide_by_ladder
from kerneltrail.trial.ledger import canonical, key_of
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.ledger.writer import Writer
from kerneltrail.trial.past import Past
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from kerneltrail.trial.results import Answer
from kerneltrail.trial.versions import Versions

BESIDE = ("until", "computed_ms", "scheduled", "drawn_by")
"""What the ledger keeps of a decision beside `Decision.record`."""

SKEW = 15 * 60
"""Seconds by which the app's clock may differ from the trial's before somebody should look."""

RESERVE = 0.2
"""Part of the deadline that is kept for the other rungs while a state is computed."""


@dataclass(frozen=True)
class Asked:
    """A request with all that the ledger says about it at one moment."""

    request: Request
    key: str
    protocol: Protocol
    person: Participant
    until: int
    past: Past
    sources: Mapping[Rung, Source]


def as_json(request: Request) -> dict[str, Any]:
    """A request as plain values; times as instants, so that the same time in another zone is the same."""

    def shown(at: Any) -> Any:
        return at.astimezone(UTC).isoformat() if isinstance(at, datetime) and at.tzinfo else str(at)

    return {
        "participant": request.participant,
        "kind": request.kind,
        "index": request.index,
        "decided_at": shown(request.decided_at),
        "expires_at": None if request.expires_at is None else shown(request.expires_at),
        "available": request.available,
        "reasons": list(request.reasons),
        "context": plain(dict(request.context)),
    }


def decide(core: Core, request: Request, began: float | None = None) -> Answer:
    """Decide, record, answer; the deadline counts from `began`, and so does what must be known (`Folded.state`)."""
    began = time.monotonic() if began is None else began
    key = key_of(str(request.participant), str(request.kind), str(request.index))
    with core.reading(began) as state:
        limit = core.protocol(state).deadline_ms / 1000.0
    end = began + limit
    with flight(core, key, limit) as waited:
        since = time.monotonic() if waited else began  # whoever was waited for has recorded it
        repeat = repeated(core, request, key, since=since)
        if repeat is not None:
            return repeat
        asked = look(core, request, key, end, since)
        decision = made(core, asked, end)
        taken = time.monotonic() - began
        answer = record(core, asked, decision, patience=limit - taken, computed_ms=round(1000 * taken))
    skew = (request.decided_at - core.clock()).total_seconds()
    if answer.new and abs(skew) > SKEW:
        tell_skew(core, request, skew)
    return answer


def schedule(core: Core, requests: Sequence[Request]) -> list[Answer]:
    """Decide several ahead, in one commit."""
    if len({request.participant for request in requests}) > 1:
        raise DecisionError("a schedule is of one participant")
    answers: list[Answer] = []
    everything = []
    for request in requests:
        key = key_of(str(request.participant), str(request.kind), str(request.index))
        repeat = repeated(core, request, key)
        if repeat is not None:
            answers.append(repeat)
            continue
        asked = look(core, request, key, time.monotonic() + 60.0)
        everything.append((asked, made(core, asked, time.monotonic() + 60.0)))
    if everything and answers:
        taken = answers[0]
        key = key_of(*(taken.value[name] for name in ("participant", "kind", "index")))
        words = f"a part of this schedule was drawn before (the decision {key!r}): ask for the others alone"
        raise KeyConflict(words, taken.sequence, Kind.DECISION, key)
    with core.ledger.transaction() as writer:
        return answers or [record(core, asked, each, writer=writer, scheduled=True) for asked, each in everything]


def report(core: Core, request: Request, action: int, probability: float, reason: str) -> Answer:
    """Record what the app drew."""
    key = key_of(str(request.participant), str(request.kind), str(request.index))
    repeat = repeated(core, request, key, {"action": action, "probability": probability})
    if repeat is not None:
        return repeat
    asked = look(core, request, key, time.monotonic() + 60.0, draws=False)
    start, _ = begun(asked.protocol, asked.request, core.draws, asked.past)
    limits = asked.protocol.bounds
    if type(action) is not int or action not in (0, 1):
        raise DecisionError(f"action must be 0 or 1, got {action!r}")
    if not request.available:
        if action or probability:
            raise DecisionError("action and probability must be 0 where nobody could act")
        return record(core, asked, start, drawn_by="app")
    if not limits.lower <= probability <= limits.upper:
        raise DecisionError(
            f"probability must lie within the protocol's limits {limits.lower} and {limits.upper}, got {probability!r}"
        )
    decision = replace(
        start,
        rung="fixed",
        rung_reason=f"drawn by the app: {reason}",
        probability=float(probability),
        action=action,
        words=f"{asked.protocol.reward.action}: {'yes' if action else 'no'}, drawn by the app ({reason}).",
    )
    more = {"action": action, "probability": probability}
    return record(core, asked, decision, drawn_by="app", more=more)


@contextmanager
def flight(core: Core, key: str, limit: float) -> Iterator[bool]:
    """Make a decision alone: who asks for the same waits until it is recorded, or the deadline has passed.

    Yields whether another one was waited for.
    """
    with core.landed:
        waited = key in core.flights
        if not core.landed.wait_for(lambda: key not in core.flights, limit):
            raise InFlight(f"the decision {key!r} is being made just now: ask again")
        core.flights.add(key)
    try:
        yield waited
    finally:
        with core.landed:
            core.flights.discard(key)
            core.landed.notify_all()


def repeated(
    core: Core, request: Request, key: str, more: Mapping[str, Any] | None = None, since: float | None = None
) -> Answer | None:
    """What was answered to the same request before, or None; another request for the same decision is a conflict."""
    with core.reading(since) as state:
        known = state.participants.get(str(request.participant))
        stored = None if known is None else known.decisions.get(key)
    entry = None if stored is None else core.ledger.get(Kind.DECISION, key)
    if entry is None:
        return None
    if entry.removed or entry.salt is None:
        return answer_of(entry, new=False)  # which says that it was removed
    if entry.payload.get("scheduled"):
        return answer_of(entry, new=False)
    try:
        same = digest(entry.salt, _hash(request, more).encode()) == entry.request_hash
    except DataError:
        same = False
    if same:
        return answer_of(entry, new=False)
    words = f"the decision {key!r} is taken: entry {entry.sequence} of {entry.received_at} was asked for otherwise"
    differing = _differing(entry.payload, request)
    words += f"; they differ in {', '.join(differing)}" if differing else ""
    conflict = KeyConflict(words, entry.sequence, entry.kind, key)
    tell_conflict(core, conflict, str(request.participant))
    raise conflict


def tell_conflict(core: Core, conflict: KeyConflict, participant: str) -> None:
    """Record an incident of the same key with another payload, once a day for each key."""
    name = f"conflict/{conflict.kind}/{conflict.sequence}/{core.clock().astimezone(UTC).date()}"
    details = {"entry": conflict.sequence}
    core.incident("conflict", conflict.words, participant=participant, key=name, details=details)


def tell_skew(core: Core, request: Request, skew: float) -> None:
    """Record an incident of a clock that goes wrong, once a day for each participant."""
    way = "ahead of" if skew > 0 else "behind"
    name = f"clock-skew/{digest(request.participant.encode())[:16]}/{core.clock().astimezone(UTC).date()}"
    core.incident(
        "clock-skew",
        f"a decision of {request.participant} was made {abs(skew) / 60:.0f} minutes {way} the trial's clock",
        participant=request.participant,
        key=name,
    )


def _hash(request: Request, more: Mapping[str, Any] | None = None) -> str:
    return digest(canonical({**as_json(request), **(more or {})}))


def _differing(record: Mapping[str, Any], request: Request) -> list[str]:
    asked, there = as_json(request), as_json(requested(record))
    return [name for name, value in asked.items() if there[name] != value]


def look(
    core: Core, request: Request, key: str, end: float, since: float | None = None, *, draws: bool = True
) -> Asked:
    """A request with what the ledger says; refused where nothing is decided for the participant now.

    What the app drew itself (not `draws`) is recorded even if the key of the draws is public.
    """
    with core.reading(since) as state:
        if draws:
            core.check_secret(state)
        protocol = core.protocol(state)
        request.check(protocol)
        person = core.person(state, request.participant)
        enrolled: Mapping[str, Any] = person.enrolled or {}
        local = request.decided_at.astimezone(ZoneInfo(enrolled["timezone"]))
        check_active(person, enrolled, local)
        request = replace(request, decided_at=local)
        past = core.pasts.at(protocol, person, state.sequence, local)
        sources = _sources(core, protocol, core.versions(state), person, end)
        return Asked(request, key, protocol, person, state.sequence, past, sources)


def check_active(person: Participant, enrolled: Mapping[str, Any], local: datetime) -> None:
    """Refuse a time at which nothing is decided for a participant."""
    ends, day = enrolled.get("ends_on"), local.date()
    status = person.status(local)
    if status in ("paused", "withdrawn"):
        words = "is paused" if status == "paused" else "has withdrawn"
        raise NotActive(f"participant {person.id!r} {words}, so nothing is decided for them", status)
    if day < date.fromisoformat(enrolled["starts_on"]):
        raise NotActive(f"participant {person.id!r} begins on {enrolled['starts_on']}, not by {day}", "early")
    if ends is not None and day > date.fromisoformat(ends):
        raise NotActive(f"participant {person.id!r} ended on {ends}, before {day}", "ended")


def _sources(core: Core, protocol: Protocol, versions: Versions, person: Participant, end: float) -> dict[Rung, Source]:
    """Where each rung's policy and the participant's state come from; batches are looked up now."""
    active, before = versions.active, versions.before
    sources: dict[Rung, Source] = {}
    limit = protocol.deadline_ms / 1000.0

    def source(version: Any, wait: bool) -> Source:
        batches = versions.batches(version.version, person.id)
        gather = core.gather(person, batches)

        def answer() -> tuple[Policy, State]:
            policy = core.policy(protocol, version)
            if not batches:
                return policy, None
            left = end - RESERVE * limit - time.monotonic() if wait else 0.0
            user = core.states.within(left, policy.model, policy.model_id, person.id, batches, gather)
            return policy, user

        return answer

    if active is not None:
        sources["policy"] = source(active, wait=True)
        sources["group_prior"] = lambda: (core.policy(protocol, active), None)
    if before is not None:
        sources["last_good"] = source(before, wait=False)
    return sources


def made(core: Core, asked: Asked, end: float) -> Decision:
    """The decision of the first rung that can answer."""
    return decide_by_ladder(
        asked.protocol,
        asked.request,
        asked.sources,
        draws=core.draws,
        past=asked.past,
        in_time=lambda: time.monotonic() < end,
    )


def record(
    core: Core,
    asked: Asked,
    decision: Decision,
    *,
    writer: Writer | None = None,
    more: Mapping[str, Any] | None = None,
    patience: float | None = None,
    **beside: Any,
) -> Answer:
    """Write a decision into the ledger; what is answered is what was recorded first.

    Raises:
        NotRecorded: if it cannot be written, or not within `patience`.
    """
    payload = {**decision.record(), "until": asked.until, **beside}
    shown = {**decision.answer(), **{key: beside[key] for key in ("drawn_by",) if key in beside}}
    facts: dict[str, Any] = {
        "participant": decision.participant,
        "request_hash": _hash(asked.request, more),
        "response": canonical(shown),
    }
    if writer is not None:
        return core.answer(writer.append(Kind.DECISION, asked.key, payload, **facts))
    try:
        return core.answer(core.ledger.append(Kind.DECISION, asked.key, payload, **facts, patience=patience))
    except KeyConflict:  # another process was faster: what it drew ahead stands, and another payload is a conflict
        repeat = repeated(core, asked.request, asked.key, more)
        if repeat is None:
            raise
        return repeat


def requested(record: Mapping[str, Any]) -> Request:
    """The request of a recorded decision."""
    expires = record["expires_at"]
    return Request(
        record["participant"],
        record["kind"],
        record["index"],
        datetime.fromisoformat(record["decided_at"]),
        record["available"],
        tuple(record["reasons"]),
        record["context"],
        None if expires is None else datetime.fromisoformat(expires),
    )

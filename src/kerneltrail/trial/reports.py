"""What is reported after a decision: deliveries, observations and outcomes, item by item."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kerneltrail.data.arrays import LARGEST
from kerneltrail.errors import DataError, KerneltrailError, KeyConflict, LedgerError, ParticipantRemoved
from kerneltrail.names import nearest, shortened
from kerneltrail.store.validate import short
from kerneltrail.trial.core import Core
from kerneltrail.trial.deciding import tell_conflict
from kerneltrail.trial.ledger import canonical, key_of
from kerneltrail.trial.ledger.entries import Kind, instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.writer import Draft
from kerneltrail.trial.results import Answer, Item

STATUSES = ("sent", "delivered", "seen", "dismissed", "failed", "not_delivered", "unknown")
"""What can be reported of a decision."""

_LOOK = 100
"""Items that are looked up in the state at a time."""

Entry = tuple[str, dict[str, Any]]
"""Key and payload."""


def deliver(core: Core, decision: str, status: str, at: datetime | None, delivered_action: int | None) -> Answer:
    """Record what became of a decision on the phone."""
    with core.reading() as state:
        participant, key = core.find(state, decision)
        core.person(state, participant)
        record: Any = state.participants[participant].decisions[key].payload
    if status not in STATUSES:
        raise DataError(f"status {status!r} is not known; {nearest(str(status), STATUSES, 'there are')}")
    if at is not None and at.tzinfo is None:
        raise DataError(f"at must be a time with its time zone, or nothing, got {at!r}")
    if delivered_action is not None and (type(delivered_action) is not int or delivered_action not in (0, 1)):
        raise DataError(f"delivered_action must be 0, 1 or nothing, got {delivered_action!r}")
    payload = {
        "decision": key,
        "status": status,
        "at": None if at is None else at.isoformat(),
        "delivered_action": delivered_action,
    }
    shown = {**payload, "decision": record["decision_id"], "assigned_action": record["action"]}
    name = f"{key}/{status}"
    try:
        with core.ledger.transaction() as writer:
            answer = core.append(Kind.DELIVERY, name, payload, shown, participant=participant, writer=writer)
            if answer.new and delivered_action == 1 and record["action"] == 0:
                core.incident(
                    "delivered-otherwise",
                    f"an action reached {participant} that was not assigned (decision {key})",
                    severity="error",
                    participant=participant,
                    key=f"delivered-otherwise/{answer.sequence}",
                    writer=writer,
                )
    except KeyConflict as conflict:
        tell_conflict(core, conflict, participant)
        raise
    return answer


def outcomes(core: Core, items: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Record outcomes."""
    return _stored(core, Kind.OUTCOME, items, _outcome)


def observations(core: Core, items: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Record covariates that arrive on their own."""
    return _stored(core, Kind.OBSERVATION, items, _observation)


def _stored(core: Core, kind: Kind, items: Sequence[Any], read: Callable[[Core, State, Any], Entry]) -> list[Item]:
    """Record items in one commit; one that is refused keeps none of the others.

    All that can be done before is: decisions wait while it is committed, and while the state is looked at.
    """
    began = time.monotonic()
    results: list[Item | None] = []
    drafts: list[tuple[int, Draft]] = []
    for begin in range(0, len(items), _LOOK):
        with core.reading(began) as state:
            for number, item in enumerate(items[begin : begin + _LOOK], begin):
                name = str(item.get("client_id", "")) if isinstance(item, Mapping) else ""
                results.append(None)
                try:
                    key, payload = read(core, state, item)
                    drafts.append((number, Draft.of(kind, key, payload, item["participant"])))
                except LedgerError as problem:
                    if not isinstance(problem, ParticipantRemoved):
                        raise
                    results[number] = Item(name, "refused", str(problem))
                except KerneltrailError as problem:
                    results[number] = Item(name, "refused", str(problem))
    conflicts: list[tuple[KeyConflict, str]] = []
    with core.ledger.transaction() as writer:
        for (number, draft), done in zip(drafts, writer.extend([draft for _, draft in drafts]), strict=True):
            name = str(items[number]["client_id"])
            if isinstance(done, KeyConflict):
                conflicts.append((done, str(draft.participant)))
                results[number] = Item(name, "refused", done.words)
            elif isinstance(done, ParticipantRemoved):
                results[number] = Item(name, "refused", str(done))
            else:
                results[number] = Item(name, "stored" if done.new else "duplicate", "", done.entry.sequence)
    for each, participant in conflicts:
        tell_conflict(core, each, participant)
    return [item for item in results if item is not None]


def _checked(item: Any, needed: Sequence[str], optional: Sequence[str] = ()) -> None:
    if not isinstance(item, Mapping):
        raise DataError(f"an item must hold fields with values, got {short(item)}")
    for name in item:
        if name not in needed and name not in optional:
            raise DataError(f"unknown field {name!r}; {nearest(str(name), (*needed, *optional))}")
    for name in needed:
        if name not in item:
            raise DataError(f"the field {name} is missing; an item has {shortened(needed)}")
    for name in ("client_id", "participant"):
        if not isinstance(item[name], str) or not item[name]:
            raise DataError(f"{name} must be a text that is not empty, got {short(item[name])}")
    instant(item["observed_at"])


def _outcome(core: Core, state: State, item: Mapping[str, Any]) -> Entry:
    _checked(item, ("client_id", "participant", "decision", "value", "observed_at"), ("supersedes",))
    person = core.person(state, item["participant"])
    if not isinstance(item["decision"], str):
        raise DataError(f"decision must be a decision_id or a key, got {short(item['decision'])}")
    whom, decision = core.find(state, item["decision"])
    if whom != person.id:
        raise DataError(f"decision {item['decision']!r} is not of participant {person.id!r}")
    value = item["value"]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DataError(f"value must be a number, or null where it is missing, got {short(value)}")
    if value is not None and not -LARGEST <= value <= LARGEST:  # which NaN does not, either
        raise DataError(f"value must be a finite number of at most {LARGEST:g}; what is missing is null")
    payload = {"decision": decision, "value": value, "observed_at": item["observed_at"]}
    if item.get("supersedes") is not None:
        if not isinstance(item["supersedes"], str) or item["supersedes"] == item["client_id"]:
            raise DataError(f"supersedes must be the client_id of another item, got {short(item['supersedes'])}")
        payload["supersedes"] = key_of(person.id, item["supersedes"])
    return key_of(person.id, item["client_id"]), payload


def _observation(core: Core, state: State, item: Mapping[str, Any]) -> Entry:
    _checked(item, ("client_id", "participant", "observed_at", "values"))
    person = core.person(state, item["participant"])
    if not isinstance(item["values"], Mapping):
        raise DataError(f"values must hold fields with values, got {short(item['values'])}")
    canonical(item["values"])  # refuses what JSON does not have, before anything is written
    return key_of(person.id, item["client_id"]), {"observed_at": item["observed_at"], "values": dict(item["values"])}

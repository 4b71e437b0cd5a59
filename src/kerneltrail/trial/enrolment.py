"""Who takes part: enrolments, their changes, pauses, withdrawals, and the removal of data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from kerneltrail.errors import DataError, KeyConflict, NotActive, RevisionNeeded, StaleRevision, UnknownName
from kerneltrail.store.canonical import parsed
from kerneltrail.trial.core import Core, answer_of
from kerneltrail.trial.draw import checked_id
from kerneltrail.trial.ledger import canonical, key_of
from kerneltrail.trial.ledger.entries import EVENTS, Kind, stamp
from kerneltrail.trial.ledger.participant import STATUSES
from kerneltrail.trial.results import Answer, Removed


def enrol(core: Core, participant: str, facts: Mapping[str, Any], revision: int | None) -> Answer:
    """Enrol somebody, or change what is known of them."""
    checked_id(participant, "participant")
    payload = _checked(participant, facts)
    with core.reading() as state:
        core.protocol(state)
        person = state.participants.get(participant)
        if person is not None and person.removed is not None:
            core.person(state, participant)  # which refuses
        known, current = (None, None) if person is None else (person.enrolled, person.revision)
    if known is not None and parsed(canonical(payload)) == known:
        entry = next(each for each in core.ledger.entries(participant=participant) if each.sequence == current)
        return answer_of(entry, new=False)
    if known is None and participant in (".", ".."):
        raise DataError(
            f"a participant's id stands in addresses, where {participant!r} leads elsewhere: take another id"
        )
    if known is None and revision is not None:
        raise StaleRevision(f"participant {participant!r} is not enrolled, so there is no revision {revision}")
    if known is not None and revision is None:
        raise RevisionNeeded(
            f"participant {participant!r} is enrolled: a change must name the revision that it changes"
        )
    if known is not None and revision != current:
        raise StaleRevision(f"participant {participant!r} is at revision {current}, not at {revision}")
    key = key_of(participant, current or 0)
    try:
        shown = {"participant": participant, **payload, "changes": current}
        return core.append(Kind.PARTICIPANT, key, payload, shown, participant=participant)
    except KeyConflict:
        raise StaleRevision(f"participant {participant!r} was changed by somebody else at the same time") from None


def _checked(participant: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    zone, starts, ends, attributes = (facts[name] for name in ("timezone", "starts_on", "ends_on", "attributes"))
    who = f"participant {participant!r}"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        raise DataError(f"{who}: timezone {zone!r} is not known; expected one such as Europe/Zurich") from None
    for name, day in (("starts_on", starts), ("ends_on", ends)):
        if not (isinstance(day, date) and not isinstance(day, datetime)) and not (name == "ends_on" and day is None):
            raise DataError(f"{who}: {name} must be a date such as 2026-03-01, got {day!r}")
    if ends is not None and ends < starts:
        raise DataError(f"{who}: ends_on must not be before starts_on, got {ends} and {starts}")
    return {
        "timezone": zone,
        "starts_on": starts.isoformat(),
        "ends_on": None if ends is None else ends.isoformat(),
        "attributes": dict(attributes or {}),
    }


def event(core: Core, participant: str, kind: str, at: datetime, reason: str) -> Answer:
    """Pause, resume or withdraw a participant."""
    if kind not in EVENTS:
        raise DataError(f"an event is one of {', '.join(EVENTS)}, got {kind!r}; data are removed by a call of its own")
    if at.tzinfo is None:
        raise DataError(f"at must be a time with its time zone, got {at!r}")
    key = key_of(participant, kind, stamp(at))
    payload = {"kind": kind, "at": at.isoformat(), "reason": reason}
    with core.reading() as state:
        person = core.person(state, participant)
        repeat = core.ledger.get(Kind.EVENT, key)
        status = person.status(at)
        if status == "unknown":  # from before they were enrolled
            status = "active"
        possible = {"pause": ("active",), "resume": ("paused",), "withdraw": ("active", "paused")}[kind]
        if repeat is None and status not in possible:
            raise NotActive(f"participant {participant!r} is {status} at that time, so {kind} cannot be", status)
    shown = {"participant": participant, **payload, "status": STATUSES[kind]}
    return core.append(Kind.EVENT, key, payload, shown, participant=participant)


def remove(core: Core, participant: str, reason: str, by: str) -> Removed:
    """Delete all that was recorded of a participant."""
    with core.reading() as state:
        if participant not in state.participants:
            raise UnknownName(f"no participant {participant!r} is known")
    done = core.ledger.remove(participant, {"reason": reason, "by": by})
    core.states.forget(participant)
    core.pasts.forget(participant)
    return Removed(
        participant, done.entry.sequence, done.new, done.payloads, done.overwritten, tuple(copies(core.backups))
    )


def copies(folder: Path | None) -> list[Path]:
    """Copies of the ledger in a folder, oldest first; with what is left of copies that were broken off."""
    if folder is None or not folder.is_dir():
        return []
    return [*sorted(folder.glob("ledger-*")), *sorted(folder.glob(".*.tmp"))]


def copy_name(core: Core, before: str) -> str:
    """The name of a copy, with the time at which it is made."""
    ending = ".db" if core.ledger.database.is_sqlite else ".jsonl"
    return f"ledger-{core.clock().astimezone(UTC):%Y%m%dT%H%M%S}-{before}{ending}"

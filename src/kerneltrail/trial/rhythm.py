"""When things are due: updates by the protocol's schedule, and decisions by its times on each participant's clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from kerneltrail.kernels.phrases import counted
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State, Update
from kerneltrail.trial.ledger.participant import Outcome, Participant
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.sections import DAYS

NOT_BEGUN = "not begun"
"""What somebody is who was enrolled, but takes part only from a later day on."""
ENDED = "ended"
"""What somebody is whose last day is over, and who did not withdraw before."""
UNDONE = ("failed", "killed", "superseded")
"""States of an update that did not do what was due."""


def on_clock(when: datetime, zone: str = "UTC") -> str:
    """A time as people read it, with the clock that it is on.

    >>> on_clock(datetime(2026, 3, 3, 18, 30, tzinfo=UTC), "Europe/Zurich")
    'Tue 3 Mar 2026, 19:30 (Europe/Zurich)'
    """
    local = when.astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M} ({zone})"


def due(state: State, protocol: Protocol, now: datetime, dead: Update | None = None) -> str:
    """Why an update is due at a time, or nothing; one that is `dead` was begun and does not count."""
    done = [each for each in state.updates.values() if each is not dead]
    return _by_count(state, protocol, done) or _by_clock(state, now, done)


def overdue(state: State, protocol: Protocol, now: datetime, grace: timedelta) -> str:
    """Why an update should have been made by now: after a time of grace, or after twice as many outcomes.

    One is not missed that would have had nothing to learn from: no outcome came between the last one and its time.
    """
    done = list(state.updates.values())
    by_count, planned = _by_count(state, protocol, done, 2), _planned(state, now - grace)
    if by_count or planned is None or not any(instant(each.received_at) <= planned for each in _new(state, done)):
        return by_count
    return _by_clock(state, now - grace, done)


def _new(state: State, updates: list[Update]) -> Iterator[Outcome]:
    """Outcomes that came since the last update."""
    last = max((int(each.request["until"]) for each in updates if counts(each)), default=0)
    for person in state.participants.values():
        yield from (each for each in person.outcomes.values() if each.sequence > last)


def _by_count(state: State, protocol: Protocol, updates: list[Update], times: int = 1) -> str:
    every = protocol.updates.every
    if every is None:
        return ""
    new = sum(1 for _ in _new(state, updates))
    words = f"{counted(new, 'outcome')} came since the last update, and the protocol says {every}"
    return words if new >= times * every else ""


def counts(update: Update) -> bool:
    """Whether an update did what was due, or is at it."""
    return update.result is None or update.result["state"] not in UNDONE


def _by_clock(state: State, now: datetime, updates: list[Update]) -> str:
    planned = _planned(state, now)
    if planned is None or any(counts(update) and instant(update.started_at) >= planned for update in updates):
        return ""
    return f"the protocol says an update at {on_clock(planned, str(planned.tzinfo))}"


def _planned(state: State, now: datetime) -> datetime | None:
    """The newest time up to `now` at which the protocol that was in force then wanted an update."""
    until = now
    for version in reversed(state.protocols):
        begun = instant(version.received_at)
        planned = last_planned(Protocol.from_json(version.payload["protocol"]), until)
        if planned is not None and planned > begun:
            return planned
        until = min(until, begun)
    return None


def last_planned(protocol: Protocol, now: datetime) -> datetime | None:
    """The newest time up to `now` at which the protocol wants an update; None where it names no time."""
    updates = protocol.updates
    clock = updates.daily or (updates.weekly or "").partition(" ")[2]
    if not clock:
        return None
    weekday = None if updates.weekly is None else DAYS.index(updates.weekly.partition(" ")[0])
    zone = ZoneInfo(updates.timezone)
    day = now.astimezone(zone).date() + timedelta(days=1)
    while True:
        planned = at(day, clock, zone)
        if planned <= now and weekday in (None, day.weekday()):
            return planned
        day -= timedelta(days=1)


def at(day: date, clock: str, zone: ZoneInfo) -> datetime:
    """A time of the day in a zone. One that a change of clocks leaves out is moved by what is left out."""
    local = datetime.combine(day, time(int(clock[:2]), int(clock[3:])), tzinfo=zone)
    return local.astimezone(UTC).astimezone(zone)


def takes_part(person: Participant, now: datetime) -> bool:
    """Whether a day lies within a participant's time."""
    facts = person.enrolled
    if facts is None:
        return False
    day = now.astimezone(ZoneInfo(facts["timezone"])).date().isoformat()
    return bool(facts["starts_on"] <= day and (facts["ends_on"] is None or day <= facts["ends_on"]))


def status_at(person: Participant, now: datetime) -> str:
    """What a participant is at a time, in a word.

    It is as the events have it, but `NOT_BEGUN` until the first day of somebody active, and `ENDED` after the last day
    of somebody active or paused.
    """
    status, facts = person.status(now), person.enrolled
    if status not in ("active", "paused") or facts is None:
        return status
    today = now.astimezone(ZoneInfo(facts["timezone"])).date().isoformat()
    if facts["ends_on"] is not None and today > facts["ends_on"]:
        return ENDED
    return NOT_BEGUN if status == "active" and today < facts["starts_on"] else status


def expected_points(
    protocol: Protocol, person: Participant, start: datetime, end: datetime
) -> Iterator[tuple[str, datetime]]:
    """Decision points of a participant by the protocol's times, after `start` and up to `end`, while active."""
    facts = person.enrolled
    if facts is None:
        return
    zone = ZoneInfo(facts["timezone"])
    first = max(start.astimezone(zone).date(), date.fromisoformat(facts["starts_on"]))
    last = end.astimezone(zone).date()
    if facts["ends_on"] is not None:
        last = min(last, date.fromisoformat(facts["ends_on"]))
    enrolled = instant(str(person.enrolled_at))
    for offset in range((last - first).days + 1):
        for kind, section in protocol.decisions.items():
            for clock in section.times:
                point = at(first + timedelta(days=offset), clock, zone)
                if start < point <= end and point >= enrolled and person.status(point) == "active":
                    yield kind, point


def own_point(protocol: Protocol, kind: str, decided_at: datetime, zone: ZoneInfo) -> datetime | None:
    """The protocol's time to which a call belongs: the nearest one, be the call early or late; None without times."""
    section, day = protocol.decisions.get(kind), decided_at.astimezone(zone).date()
    if section is None:
        return None
    days = [day + timedelta(days=offset) for offset in (-1, 0, 1)]
    points = (at(each, clock, zone) for each in days for clock in section.times)
    return min(points, key=lambda point: abs(point - decided_at), default=None)


def missed_points(protocol: Protocol, person: Participant, start: datetime, end: datetime) -> list[datetime]:
    """Decision points after `start` and up to `end` that the app did not ask for, nor before their time."""
    points = list(expected_points(protocol, person, start, end))
    if not points:
        return []
    zone, first = ZoneInfo((person.enrolled or {})["timezone"]), (points[0][1] - timedelta(days=2)).date().isoformat()
    calls = (each.payload for each in person.decisions.values() if each.payload is not None)
    asked = {
        (call["kind"], own_point(protocol, call["kind"], instant(call["decided_at"]), zone))
        for call in calls
        if call["decided_at"] >= first
    }
    return [point for kind, point in points if (kind, point) not in asked]

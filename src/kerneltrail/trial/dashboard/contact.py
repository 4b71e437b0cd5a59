"""Who needs a call: participants whom somebody on the team should ring up, with the reason, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from kerneltrail.kernels.phrases import counted
from kerneltrail.trial.alarms import GRACE, SILENCE, WAIT, last_call, last_sign
from kerneltrail.trial.dashboard.kept import PointsOf
from kerneltrail.trial.dashboard.texts import age, dated
from kerneltrail.trial.decided import Point, points_of, present
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rhythm import missed_points, status_at

ROW = 5
"""Decisions one after the other without an outcome, or messages without a delivery, that are worth a call."""
LONG_PAUSE = timedelta(days=7)
"""After which a pause should be asked about."""
NOW, SOON, LATER = "today", "soon", "when there is time"
URGENCY = (NOW, SOON, LATER)
"""How urgent a call is, the most urgent first."""


@dataclass(frozen=True)
class Reason:
    """Why somebody should be called: how urgent, in two or three words, and in a sentence."""

    urgency: str
    title: str
    words: str


@dataclass(frozen=True)
class Contact:
    """A participant who needs a call, with all reasons, the most urgent first, and what time it is there."""

    participant: str
    reasons: tuple[Reason, ...]
    local_time: str
    since: datetime

    @property
    def urgency(self) -> str:
        """Of the most urgent reason."""
        return self.reasons[0].urgency


def contacts(state: State, protocol: Protocol, now: datetime, points: PointsOf = points_of) -> list[Contact]:
    """Everybody who needs a call, most urgent first; of those alike, who has been waiting longest."""
    everybody = (contact_of(person, points(person, now), protocol, now) for person in present(state))
    listed = [each for each in everybody if each is not None]
    return sorted(listed, key=lambda each: (URGENCY.index(each.urgency), each.since, each.participant))


def contact_of(person: Participant, points: list[Point], protocol: Protocol, now: datetime) -> Contact | None:
    """Why a participant needs a call; None if they do not."""
    if person.enrolled is None:
        return None
    reasons = sorted(_reasons(person, points, protocol, now), key=lambda each: URGENCY.index(each.urgency))
    if not reasons:
        return None
    since = last_call(person) or instant(str(person.enrolled_at))
    clock = f"{now.astimezone(ZoneInfo(person.enrolled['timezone'])):%H:%M}"
    return Contact(person.id, tuple(reasons), clock, since)


def _reasons(person: Participant, points: list[Point], protocol: Protocol, now: datetime) -> Iterator[Reason]:
    status = status_at(person, now)
    if status == "paused":
        yield _paused(person, now)
    if status != "active":
        return
    yield from _silent(person, protocol, now)
    yield from _no_outcomes([each for each in points if each.available], (person.enrolled or {})["timezone"], now)
    yield from _not_delivered([each for each in points if each.action], person)


def _silent(person: Participant, protocol: Protocol, now: datetime) -> Iterator[Reason]:
    """The app has asked for nothing for so long, though it should have."""
    zone = (person.enrolled or {})["timezone"]
    last, since = last_call(person), last_sign(person, now)
    free = not any(section.times for section in protocol.decisions.values())
    missed = len(missed_points(protocol, person, since, now - GRACE))
    times = f" It should have asked {counted(missed, 'time')} since." if missed else ""
    if last is None:
        words = f"The app has never asked for a decision, since {dated(since, zone)} ({age(now - since)}).{times}"
    elif since > last:
        words = (
            f"The app has not asked for a decision since they came back on {dated(since, zone)} "
            f"({age(now - since)}); it last did on {dated(last, zone)}.{times}"
        )
    else:
        words = f"The app last asked for a decision {age(now - last)} ago, on {dated(last, zone)}.{times}"
    if now - since >= SILENCE and (free or missed):
        yield Reason(NOW, "never started" if last is None else "silent", words)
    elif missed >= 2 and now - since >= timedelta(days=1):
        yield Reason(SOON, "not started yet" if last is None else "silent for a day", words)


def _no_outcomes(points: list[Point], zone: str, now: datetime) -> Iterator[Reason]:
    """The newest decisions whose outcome should be there have none."""
    due = [each for each in points if not each.waits(now)]
    number = 0
    for each in reversed(due):
        if each.outcome is not None:
            break
        number += 1
    if number >= ROW:
        last = (
            f"The last one is of {dated(due[-number - 1].at, zone)}." if number < len(due) else "There was never one."
        )
        words = f"The last {number} decisions have no outcome, though each is older than {age(WAIT)}. {last}"
        yield Reason(SOON, "no outcomes", words)


def _not_delivered(sent: list[Point], person: Participant) -> Iterator[Reason]:
    """The newest messages did not arrive."""
    number = 0
    for each in reversed(sent):
        if not each.lost:
            break
        number += 1
    if number >= ROW - 2:
        words = f"The last {number} messages that were sent did not arrive: is the telephone on, are messages allowed?"
        yield Reason(SOON, "not delivered", words)


def _paused(person: Participant, now: datetime) -> Reason:
    zone = (person.enrolled or {})["timezone"]
    pauses = [each for each in person.changes if each.status == "paused" and instant(each.at) <= now]
    last = max(pauses, key=lambda each: instant(each.at))
    since = instant(last.at)
    reason = f" The reason given: {last.reason}." if last.reason else " No reason was given."
    words = f"Paused since {dated(since, zone)} ({age(now - since)}).{reason}"
    return Reason(SOON if now - since >= LONG_PAUSE else LATER, "paused", words)

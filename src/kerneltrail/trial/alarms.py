"""Alerts: what somebody should look at, computed from the ledger, and recorded as incidents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from math import sqrt
from typing import Any
from zoneinfo import ZoneInfo

from kerneltrail.errors import ParticipantRemoved, UnknownName
from kerneltrail.kernels.phrases import counted
from kerneltrail.store.canonical import digest
from kerneltrail.trial.checks import LEVEL
from kerneltrail.trial.core import Core
from kerneltrail.trial.draw import PUBLISHED
from kerneltrail.trial.ledger.entries import Kind, instant
from kerneltrail.trial.ledger.folds import Incident, State
from kerneltrail.trial.ledger.participant import Decision, Participant
from kerneltrail.trial.past import slot_of
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Alert, Answer, Severity
from kerneltrail.trial.rhythm import at, expected_points, missed_points, on_clock, overdue, status_at

DAY = timedelta(days=1)
GRACE = timedelta(hours=2)
"""What an app, or an update, may be late."""
SILENCE = timedelta(days=2)
"""Without a call from an active participant."""
WAIT = timedelta(days=1)
"""What an outcome may take before it counts as missing."""
DUE_WORDS = "one should be there a day after each decision at which somebody could act"
"""Which outcomes are counted as missing where they are not there, wherever such a number is shown."""
FEW = 10
"""Below so many, a share says nothing."""
MISSED, FALLBACK, MISSING = 0.2, 0.05, 0.3
"""Shares of decision points without a call, of decisions by another rung than the policy, and of outcomes that are
missing, above which somebody should look."""
STUCK = 20
"""Decisions in a row at the same limit."""
REACH = 3.3
"""Standard errors by which coverage may miss its level: a false alarm in a thousand times."""
RECENT = timedelta(days=7)
"""Whose decisions and updates are looked at for shares."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The worst first."""

Find = Callable[[State, Protocol, datetime], Iterator[Alert]]


def recent(state: State, now: datetime, span: timedelta = DAY) -> list[tuple[str, Decision]]:
    """Decisions that were recorded in a time up to now, with their participants; removed ones are left out."""
    return [
        (person.id, each)
        for person in state.participants.values()
        for each in person.decisions.values()
        if each.payload is not None and now - span < instant(each.received_at) <= now
    ]


def calls(state: State, protocol: Protocol, now: datetime, span: timedelta = DAY) -> dict[str, tuple[int, int]]:
    """For each participant, how many decision points the protocol's times came to, and how many were asked for.

    The newest two hours are left out: an app may be a little late.
    """
    end, counts = now - GRACE, {}
    for person in state.participants.values():
        points = list(expected_points(protocol, person, end - span, end))
        if points:
            days = {point.date().isoformat() for _, point in points}  # to be compared with the text: most are others
            asked = {
                (slot_of(protocol, record["kind"], at), at.date())
                for each in person.decisions.values()
                if (record := each.payload) is not None and record["decided_at"][:10] in days
                if record["kind"] in protocol.decisions
                for at in [datetime.fromisoformat(record["decided_at"])]
            }
            hit = sum((slot_of(protocol, kind, point), point.date()) in asked for kind, point in points)
            counts[person.id] = (len(points), hit)
    return counts


def _missed_calls(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    counts = calls(state, protocol, now)
    expected, hit = (sum(each[i] for each in counts.values()) for i in (0, 1))
    if expected and 1.0 - hit / expected > MISSED:
        words = f"of {counted(expected, 'decision point')} in a day, {expected - hit} were not asked for"
        yield Alert("missed-calls", "error" if hit == 0 else "warning", "trial", words)


def _missed_update(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    reason = overdue(state, protocol, now, GRACE)
    if reason and state.running_update is None:
        yield Alert("missed-update", "warning", "trial", f"no update was made: {reason}")


def _fallbacks(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    made: list[Any] = [each.payload for _, each in recent(state, now)]
    rungs = [record["rung"] for record in made if record["available"]]
    other = sum(rung != "policy" for rung in rungs)
    if len(rungs) >= FEW and other / len(rungs) > FALLBACK:
        severity: Severity = "error" if other / len(rungs) > 0.5 else "warning"
        words = f"{other} of {len(rungs)} decisions in a day were made by a fallback"
        yield Alert("fallback-rate", severity, "trial", words)


def outcomes_due(state: State, now: datetime, span: timedelta | None = None) -> tuple[int, int]:
    """How many outcomes are missing at a time, and how many should be there (`DUE_WORDS`); pages count the same.

    Args:
        state: of the ledger.
        now: the time.
        span: counts only decisions of this time up to now; all of them if None.
    """
    first = "" if span is None else (now - span - 2 * DAY).date().isoformat()  # of any zone; the others need no look
    total = missing = 0
    for person in state.participants.values():
        there: set[str | None] | None = None
        for key, each in person.decisions.items():
            record = each.payload
            if record is None or not record["available"] or record["decided_at"] < first:
                continue
            at = instant(record["decided_at"])
            if at <= now - WAIT and (span is None or now - span < at):
                if there is None:
                    there = {outcome.decision for outcome in person.current().values() if outcome.value is not None}
                total += 1
                missing += key not in there
    return missing, total


def _missingness(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    missing, total = outcomes_due(state, now, RECENT)
    if total >= FEW and missing / total > MISSING:
        words = (
            f"of the decisions of the last {RECENT.days} days alone, {missing} of {total} outcomes that should be "
            f"there are missing ({DUE_WORDS})"
        )
        yield Alert("missing-outcomes", "warning", "trial", words)


def _stuck(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    for person in state.participants.values():
        every: list[Any] = [each.payload for each in person.decisions.values() if each.payload is not None]
        last = [record["clipped"] for record in every if record["rung"] == "policy"][-STUCK:]
        if len(last) == STUCK and last[0] is not None and len(set(last)) == 1:
            words = f"the last {STUCK} probabilities of {person.id} stand at their {last[0]} limit"
            yield Alert("stuck-at-limit", "warning", person.id, words, person.id)


def _calibration(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    rows = hits = 0
    for update in state.updates.values():
        result = update.result
        if result is not None and update.finished_at is not None and instant(update.finished_at) > now - 2 * RECENT:
            for name, each in result.get("calibration", {}).items():
                if name in state.participants and state.participants[name].removed is None:
                    rows, hits = rows + each["rows"], hits + each["inside"]
    if rows >= 3 * FEW and abs(hits / rows - LEVEL) > REACH * sqrt(LEVEL * (1 - LEVEL) / rows):
        words = f"{hits} of {rows} outcomes lay in their {LEVEL:.0%} predictive interval"
        yield Alert("calibration", "warning", "trial", words)


def _silence(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    free = not any(section.times for section in protocol.decisions.values())  # apps ask whenever they want
    for person in state.participants.values():
        if status_at(person, now) != "active":
            continue
        since = last_sign(person, now)
        if since <= now - SILENCE and (free or missed_points(protocol, person, since, now - GRACE)):
            words = (
                f"the app of {person.id} has asked for nothing for more than {SILENCE.days} days, since "
                f"{on_clock(since)}"
            )
            yield Alert("silence", "warning", person.id, words, person.id, since)


def last_sign(person: Participant, now: datetime) -> datetime:
    """From when on silence is counted: the app last asked, or they enrolled, began, or came back from a pause."""
    begun = [instant(str(person.enrolled_at))]
    if person.enrolled is not None:
        first = at(date.fromisoformat(person.enrolled["starts_on"]), "00:00", ZoneInfo(person.enrolled["timezone"]))
        begun.append(min(first, now))
    back = (instant(each.at) for each in person.changes if each.status == "active")
    return max(*begun, *(each for each in back if each <= now), *([last] if (last := last_call(person)) else []))


def last_call(person: Participant) -> datetime | None:
    """When the app last asked for a decision; None if it never did."""
    return max((instant(each.received_at) for each in person.decisions.values()), default=None)


def _public_key(state: State, protocol: Protocol, now: datetime) -> Iterator[Alert]:
    """That the key of the draws was published; acknowledging that does not make it secret again."""
    for each in state.incidents.values():
        if each.payload is not None and each.payload["kind"] == PUBLISHED:
            yield Alert(PUBLISHED, "error", "trial", each.payload["words"], recorded=True)
            return


ALERTS: tuple[Find, ...] = (
    _missed_calls, _missed_update, _fallbacks, _missingness, _stuck, _calibration, _silence, _public_key,
)  # fmt: skip
"""All that is looked for."""


def alerts(state: State, protocol: Protocol, now: datetime) -> list[Alert]:
    """What somebody should look at, worst first: what is found now, and incidents that nobody has acknowledged."""
    current = [alert for find in ALERTS for alert in find(state, protocol, now)]
    return sorted([*current, *_open(state, current)], key=lambda alert: SEVERITIES.index(alert.severity))


def _open(state: State, current: Sequence[Alert]) -> Iterator[Alert]:
    """Open incidents of which no other alert speaks, those of a kind and severity together."""
    spoken = {(alert.kind, alert.participant, alert.severity) for alert in current}
    kinds: dict[tuple[str, Severity], list[Incident]] = {}
    for each in state.incidents.values():
        if each.is_open and each.payload is not None and each.payload["kind"] != PUBLISHED:
            kind, severity = each.payload["kind"], each.payload.get("severity", "warning")
            if (kind, each.participant, severity) not in spoken:
                kinds.setdefault((kind, severity), []).append(each)
    for (kind, severity), several in kinds.items():
        last: Any = several[-1].payload
        words, number = str(last.get("words", "")).rstrip("."), len(several)
        text = f"an incident ({kind}) is open: {words}"
        if number > 1:
            text = f"{number} incidents ({kind}) are open, the last one: {words}"
        yield Alert(kind, severity, "trial", text, several[-1].participant, recorded=True)


def watch(core: Core, alerted: Sequence[Alert]) -> list[Incident]:
    """Record alerts as incidents, and return the new ones; those that are incidents already stay.

    Each is recorded once a day. What has a beginning (`Alert.at`), such as a participant's silence, is one incident for
    as long as it lasts, and another one only if it ended and begins again.
    """
    day = core.clock().astimezone(UTC).date()
    new = []
    for alert in alerted:
        if alert.recorded:
            continue
        subject = "trial" if alert.participant is None else digest(alert.participant.encode())[:16]
        begin = day.isoformat() if alert.at is None else alert.at.astimezone(UTC).isoformat()
        key = f"{alert.kind}/{subject}/{begin}"
        with suppress(ParticipantRemoved):
            answer = core.incident(
                alert.kind, alert.words, severity=alert.severity, participant=alert.participant, key=key
            )
            if answer.new:
                new.append(key)
    with core.reading() as state:
        return [state.incidents[key] for key in new]


def acknowledge(core: Core, incident: str, by: str, note: str) -> Answer:
    """Record that somebody has seen an incident."""
    with core.reading() as state:
        if incident not in state.incidents:
            raise UnknownName(f"there is no incident {incident!r}")
        number = len(state.incidents[incident].acknowledged)
    payload = {"incident": incident, "by": by, "note": note}
    return core.append(Kind.ACKNOWLEDGEMENT, f"{incident}/{number}", payload, payload)

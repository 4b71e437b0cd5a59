"""All participants with their headline numbers, to be sorted and searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from kerneltrail.report.model_page.numbers import NONE, fixed, percent
from kerneltrail.trial.alarms import DUE_WORDS, last_call
from kerneltrail.trial.dashboard.contact import URGENCY, Contact, contact_of
from kerneltrail.trial.dashboard.kept import PointsOf
from kerneltrail.trial.dashboard.texts import age, share
from kerneltrail.trial.decided import points_of
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rhythm import status_at

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class PersonRow:
    """A participant in numbers; shares are None where they would be of nothing.

    Attributes:
        id: of the participant.
        status: not begun, active, paused, ended, withdrawn, removed.
        last: when the newest decision was recorded.
        decisions: that were made, those drawn ahead for a later time apart.
        available: share of them at which somebody could act.
        sent: share of those that were sent.
        missing: outcomes that should be there and are not, and
        due: how many should be.
        probability: of sending, mean over decisions at which somebody could act.
        policy: share of those that the policy decided.
        contact: why they need a call, or None.
    """

    id: str
    status: str
    last: datetime | None = None
    decisions: int = 0
    available: float | None = None
    sent: float | None = None
    missing: int = 0
    due: int = 0
    probability: float | None = None
    policy: float | None = None
    contact: Contact | None = None

    @property
    def urgency(self) -> int:
        """Of a call; the least is the most urgent."""
        return len(URGENCY) if self.contact is None else URGENCY.index(self.contact.urgency)


def row_of(person: Participant, protocol: Protocol, now: datetime, points_up_to: PointsOf = points_of) -> PersonRow:
    """A participant's numbers; of one whose data were removed only that."""
    if person.removed is not None:
        return PersonRow(person.id, "removed")
    points = points_up_to(person, now)
    able = [each for each in points if each.available]
    due = [each for each in able if each.is_due(now)]
    return PersonRow(
        id=person.id,
        status=status_at(person, now),
        last=last_call(person),
        decisions=len(points),
        available=len(able) / len(points) if points else None,
        sent=float(np.mean([each.action for each in able])) if able else None,
        missing=sum(each.is_missing(now) for each in due),
        due=len(due),
        probability=float(np.mean([each.probability for each in able])) if able else None,
        policy=sum(each.rung == "policy" for each in able) / len(able) if able else None,
        contact=contact_of(person, points, protocol, now),
    )


def _share(value: float | None) -> str:
    return NONE if value is None else percent(value)


def _call(contact: Contact) -> str:
    return f"{contact.urgency}: {', '.join(reason.title for reason in contact.reasons)}"


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        name: in addresses.
        heading: as people see it.
        meaning: in some words.
        sort: what rows are sorted by.
        orders: what that order is called, and what the other way round.
        text: what stands in it.
        words: whether that is words, not a number.
    """

    name: str
    heading: str
    meaning: str
    sort: Callable[[PersonRow], Any]
    orders: tuple[str, str]
    text: Callable[[PersonRow, datetime], str]
    words: bool = False


LETTERS, SHARES = ("A to Z", "Z to A"), ("lowest share first", "highest share first")
COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column("participant", "Participant", "study id", lambda row: row.id, LETTERS, lambda row, now: row.id),
        Column("status", "Status", "not begun, active, paused, ended, withdrawn or removed", lambda row: row.status,
               LETTERS, lambda row, now: row.status, words=True),
        Column("call", "Needs a call", "how soon somebody should ring them up, and why", lambda row: row.urgency,
               ("most urgent first", "least urgent first"),
               lambda row, now: NONE if row.contact is None else _call(row.contact), words=True),
        Column("last", "Last call", "how long ago the app last asked for a decision",
               lambda row: row.last or LONG_AGO, ("longest ago first", "newest first"),
               lambda row, now: "never" if row.last is None else f"{age(now - row.last, 1)} ago"),
        Column("decisions", "Decisions", "that were made", lambda row: row.decisions, ("fewest first", "most first"),
               lambda row, now: f"{row.decisions:,}"),
        Column("available", "Could act", "share of decisions at which it was possible to act",
               lambda row: -1.0 if row.available is None else row.available, SHARES,
               lambda row, now: _share(row.available)),
        Column("sent", "Sent", "share of those at which a message was sent",
               lambda row: -1.0 if row.sent is None else row.sent, SHARES, lambda row, now: _share(row.sent)),
        Column("missing", "Missing outcomes", f"of those that should be there: {DUE_WORDS}",
               lambda row: row.missing / row.due if row.due else -1.0, SHARES,
               lambda row, now: share(row.missing, row.due)),
        Column("probability", "Mean probability", "of sending, where it was possible to act",
               lambda row: -1.0 if row.probability is None else row.probability, ("lowest first", "highest first"),
               lambda row, now: NONE if row.probability is None else fixed(row.probability)),
        Column("policy", "By the policy", "share of decisions that the policy made itself, not a fallback",
               lambda row: 2.0 if row.policy is None else row.policy, SHARES, lambda row, now: _share(row.policy)),
    )
}  # fmt: skip
"""Of the table, by name, in their order."""


def listed(
    state: State,
    protocol: Protocol,
    now: datetime,
    *,
    sort: str = "participant",
    down: bool = False,
    search: str = "",
    points: PointsOf = points_of,
) -> list[PersonRow]:
    """The rows of those whose id or status contains a text, in an order; those who are alike stand by id."""
    column = COLUMNS.get(sort, COLUMNS["participant"])
    rows = [row_of(person, protocol, now, points) for person in state.participants.values()]
    wanted = search.strip().lower()
    kept = [row for row in rows if wanted in row.id.lower() or wanted == row.status]
    return sorted(sorted(kept, key=lambda row: row.id), key=column.sort, reverse=down)

"""Decisions with what came of them: one small value for each, which pages and analyses read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.store.canonical import real
from kerneltrail.trial.alarms import WAIT
from kerneltrail.trial.answer import AdvantageParts
from kerneltrail.trial.delivered import delivered_action
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Decision, Input, Outcome, Participant
from kerneltrail.trial.rows import context_of


@dataclass(frozen=True, slots=True)
class Point:
    """A decision that was made, with what came of it.

    Attributes:
        participant: whose.
        sequence: of its entry.
        kind: of decision.
        at: when, on the participant's clock.
        day: how many days after the participant's first.
        available: whether somebody could act.
        action: assigned, 1 or 0.
        probability: of the action being 1.
        clipped: the limit at which it stands, `lower` or `upper`, or None.
        rung: what decided.
        version: of the policy, or None.
        composition: the participant's kernel, or None.
        delivered: what reached the participant (`delivered_action`); None if nobody has said.
        lost: whether a message was assigned, and a report says that it did not arrive.
        outcome: that counts; None if there is none, or it is missing.
        looked_for: whether somebody recorded an outcome, be it that it is missing.
        record: all that was recorded.
        settled: the outcome that counted when its day was settled, whatever came since; None if there was none.
    """

    participant: str
    sequence: int
    kind: str
    at: datetime
    day: int
    available: bool
    action: int
    probability: float
    clipped: str | None
    rung: str
    version: str | None
    composition: str | None
    delivered: int | None
    lost: bool
    outcome: float | None
    looked_for: bool
    record: Any
    settled: float | None = None

    @property
    def settles_at(self) -> datetime:
        """When its day is settled: it is over, wherever on earth it was one, and outcomes had their time to come.

        A time zone that is corrected afterwards must not change it.
        """
        return _settles_at(self.at)

    @property
    def context(self) -> Mapping[str, float]:
        """Covariates, what was filled in included; a level as its code."""
        return context_of(self.record)

    def waits(self, now: datetime) -> bool:
        """Whether its outcome may still come: it is too early to call it missing."""
        return self.outcome is None and self.at > now - WAIT

    def is_due(self, now: datetime) -> bool:
        """Whether an outcome should be there by now: whether it is or not, so that shares of these are fair."""
        return self.at <= now - WAIT

    def is_missing(self, now: datetime) -> bool:
        """Whether an outcome should be there by now, and is not."""
        return self.outcome is None and self.is_due(now)

    @property
    def gain(self) -> float | None:
        """What acting was expected to add, in the outcome's unit; None where nothing was computed."""
        mean: float | None = (self.record.get("advantage") or {}).get("mean")
        return mean

    @property
    def advantage(self) -> NormalMixture | None:
        """The same as a distribution."""
        parts = self.record.get("advantage_parts")
        if parts is None:
            return None
        return AdvantageParts(*(tuple(map(real, parts[name])) for name in ("weights", "means", "variances"))).mixture


def points_of(person: Participant, now: datetime | None = None) -> list[Point]:
    """A participant's decisions in the order of their times; of one who was removed there are none.

    Args:
        person: whose.
        now: leaves out those that were drawn ahead for a later time: nobody on the team should know what is coming,
            and nothing came of them yet. None for all that are recorded.
    """
    settled = _settled(person)
    points = [_point(person, each, settled) for each in person.inputs()]
    return [each for each in points if now is None or each.at <= now]


def _settles_at(at: datetime) -> datetime:
    return datetime.combine(at.date() + timedelta(days=1), time(12), UTC) + WAIT


def _settled(person: Participant) -> Callable[[Decision, datetime], float | None]:
    """What says which outcome of a decision counted at a time, by the rule of `sifted`."""
    superseded: dict[str, datetime] = {}
    several: dict[str | None, list[tuple[datetime, Outcome]]] = {}
    for each in sorted(person.outcomes.values(), key=lambda outcome: outcome.sequence):
        came = instant(each.received_at)
        several.setdefault(each.decision, []).append((came, each))
        if each.supersedes is not None and each.supersedes != each.key:
            superseded[each.supersedes] = min(came, superseded.get(each.supersedes, came))

    def settled(decision: Decision, when: datetime) -> float | None:
        for came, each in reversed(several.get(decision.key, [])):
            if came <= when and (each.key not in superseded or superseded[each.key] > when):
                return each.value
        return None

    return settled


def _point(person: Participant, each: Input, settled: Callable[[Decision, datetime], float | None]) -> Point:
    record: Any = each.decision.payload
    arrived = delivered_action(person, each.decision.key)
    at = instant(record["decided_at"])
    first = date.fromisoformat((person.enrolled or {}).get("starts_on", at.date().isoformat()))
    return Point(
        participant=person.id,
        sequence=each.decision.sequence,
        kind=record["kind"],
        at=at,
        day=(at.date() - first).days,
        available=record["available"],
        action=record["action"],
        probability=real(record["probability"]),
        clipped=record.get("clipped"),
        rung=record.get("rung", "policy"),
        version=record.get("policy_version"),
        composition=record.get("composition"),
        delivered=arrived,
        lost=arrived is not None and arrived < record["action"],
        outcome=None if each.outcome is None else each.outcome.value,
        looked_for=each.outcome is not None,
        record=record,
        settled=settled(each.decision, _settles_at(at)),
    )


def present(state: State) -> list[Participant]:
    """Participants who were enrolled and whose data are there."""
    return [each for each in state.participants.values() if each.enrolled is not None and each.removed is None]


def updates_at(state: State) -> list[datetime]:
    """When policies began to serve, the first one apart: the vertical lines of every time axis."""
    return [instant(each.received_at) for each in state.activations[1:]]

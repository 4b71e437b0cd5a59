"""What a ledger's entries come to for one participant: status, decisions, deliveries, and which outcomes count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kerneltrail.store.canonical import real
from kerneltrail.trial.ledger.entries import Entry, Kind, instant

STATUSES = {"pause": "paused", "resume": "active", "withdraw": "withdrawn"}
"""What a participant is after an event."""


@dataclass(frozen=True)
class Decision:
    """A decision as it was recorded; its payload is None where it was removed."""

    sequence: int
    key: str
    received_at: str
    payload: Mapping[str, Any] | None


@dataclass(frozen=True)
class Delivery:
    """What became of a decision on the phone; an action that nobody reported is None, which is not 0."""

    sequence: int
    key: str
    decision: str
    status: str
    at: str | None
    action: int | None


@dataclass(frozen=True)
class Outcome:
    """An observed outcome; a value of None says that it was looked for and is missing, which is not 0."""

    sequence: int
    key: str
    received_at: str
    observed_at: str
    decision: str | None
    value: float | None
    supersedes: str | None


@dataclass(frozen=True)
class Observation:
    """Covariates that arrived on their own."""

    sequence: int
    key: str
    received_at: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class StatusChange:
    """From when on a participant was active, paused, withdrawn or removed, and why."""

    sequence: int
    at: str
    received_at: str
    status: str
    reason: str | None


@dataclass(frozen=True)
class Input:
    """A decision with the outcome that counts for it, if there is one: what a followed user learns from."""

    decision: Decision
    outcome: Outcome | None


def sifted(outcomes: Iterable[Outcome]) -> tuple[dict[str, Outcome], dict[str, str]]:
    """Outcomes of one participant that count, and why each of the others does not.

    The rule is the same in whatever order they came:

    1. An outcome that another one names in ``supersedes`` does not count, also if the correction came first.
    2. Of several that remain for one decision, the one recorded last counts.
    """
    every = sorted(outcomes, key=lambda outcome: outcome.sequence)
    known = {outcome.key for outcome in every}
    left: dict[str, str] = {}
    for outcome in every:
        if outcome.supersedes in known and outcome.supersedes != outcome.key:
            left[str(outcome.supersedes)] = f"superseded by {outcome.key}"
    newest = {outcome.decision: outcome for outcome in every if outcome.key not in left and outcome.decision}
    current = {}
    for outcome in every:
        if outcome.key in left:
            continue
        if outcome.decision and newest[outcome.decision] is not outcome:
            left[outcome.key] = f"recorded before {newest[outcome.decision].key}, for the same decision"
        else:
            current[outcome.key] = outcome
    return current, left


@dataclass
class Participant:
    """A participant as the entries so far have it.

    Attributes:
        id: the study's identifier.
        enrolled: the payload of the newest `participant` entry, or None.
        enrolled_at: when the first one was recorded, or None.
        revision: that entry's sequence: it changes whenever the participant is changed.
        changes: of status, in the order they were recorded.
        decisions: by key, in the order they were recorded.
        deliveries: by the key of the decision, each list in the order recorded.
        observations: in the order recorded.
        outcomes: by key, all of them; `sifted` says which count.
        removed: the sequence of the entry that removed their data, or None.
    """

    id: str
    enrolled: Mapping[str, Any] | None = None
    enrolled_at: str | None = None
    revision: int | None = None
    changes: list[StatusChange] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    deliveries: dict[str, list[Delivery]] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    removed: int | None = None

    def apply(self, entry: Entry) -> None:
        """Take in one entry about this participant."""
        if entry.removed:
            if entry.kind == Kind.DECISION:
                self.decisions[entry.key] = Decision(entry.sequence, entry.key, entry.received_at, None)
        else:
            self._take(entry, entry.payload)

    def _take(self, entry: Entry, payload: Mapping[str, Any]) -> None:
        match entry.kind:
            case Kind.PARTICIPANT:
                self.enrolled_at = self.enrolled_at or entry.received_at
                self.enrolled, self.revision = payload, entry.sequence
            case Kind.EVENT:
                status, reason = STATUSES[payload["kind"]], payload.get("reason")
                self.changes.append(StatusChange(entry.sequence, payload["at"], entry.received_at, status, reason))
            case Kind.DECISION:
                self.decisions[entry.key] = Decision(entry.sequence, entry.key, entry.received_at, payload)
            case Kind.DELIVERY:
                delivery = Delivery(
                    entry.sequence,
                    entry.key,
                    payload["decision"],
                    payload["status"],
                    payload["at"],
                    payload["delivered_action"],
                )
                self.deliveries.setdefault(delivery.decision, []).append(delivery)
            case Kind.OBSERVATION:
                self.observations.append(Observation(entry.sequence, entry.key, entry.received_at, payload))
            case Kind.OUTCOME:
                value = payload["value"]
                self.outcomes[entry.key] = Outcome(
                    entry.sequence,
                    entry.key,
                    entry.received_at,
                    payload["observed_at"],
                    payload["decision"],
                    None if value is None else real(value),
                    payload.get("supersedes"),
                )

    def forgotten(self, entry: Entry) -> Participant:
        """After a removal: of each decision it is known that there was one, as whoever reads the entries anew finds."""
        stubs = {key: Decision(each.sequence, key, each.received_at, None) for key, each in self.decisions.items()}
        removal = StatusChange(entry.sequence, entry.received_at, entry.received_at, "removed", None)
        return Participant(self.id, changes=[removal], decisions=stubs, removed=entry.sequence)

    def current(self) -> dict[str, Outcome]:
        """Outcomes that count, by key."""
        return sifted(self.outcomes.values())[0]

    def left_out(self) -> dict[str, str]:
        """Why each of the other outcomes does not count, by key."""
        return sifted(self.outcomes.values())[1]

    def inputs(self) -> list[Input]:
        """Decisions in the order of their times, each with the outcome that counts; removed ones are left out."""
        by_decision = {outcome.decision: outcome for outcome in self.current().values()}
        known = [each for each in self.decisions.values() if each.payload is not None]
        known.sort(key=lambda each: (instant((each.payload or {})["decided_at"]), each.sequence))
        return [Input(each, by_decision.get(each.key)) for each in known]

    def delivery(self, decision: str) -> Delivery | None:
        """What was reported last of a decision, or None if nothing was."""
        return self.deliveries.get(decision, [None])[-1]

    def status(self, when: datetime | None = None) -> str:
        """What they were at a time, or are by all that is recorded; withdrawn and removed are final.

        Events count from the time they name, whenever they were recorded.
        """
        enrolled = self.enrolled_at is not None and (when is None or instant(self.enrolled_at) <= when)
        status = "active" if enrolled else "unknown"
        for change in sorted(self.changes, key=lambda change: (instant(change.at), change.sequence)):
            if (when is None or instant(change.at) <= when) and status not in ("withdrawn", "removed"):
                status = change.status
        return status

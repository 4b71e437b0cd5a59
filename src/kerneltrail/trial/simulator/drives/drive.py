"""How a simulated trial is driven: what an app and its operator would call, behind one interface.

The same calls go to a policy alone (`quick`), to a `Trial` with its ledger (`recorded`), or to the service over HTTP
(`served`). Decisions are the same, bit for bit; what differs is how much of the machinery is tried, and how long that
takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kerneltrail.errors import NotRecorded
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rhythm import last_planned
from kerneltrail.trial.sections import CovariateSection
from kerneltrail.trial.simulator.policies import Asked, Setting

OUTAGE = "nothing could be recorded"
"""Why an app draws by itself."""


@dataclass(frozen=True)
class Decided:
    """What was decided.

    Attributes:
        action: 1 to act.
        probability: of acting.
        rung: what answered.
        bound: the limit at which the probability stands: none, lower or upper.
        name: by which deliveries and outcomes refer to it.
    """

    action: int
    probability: float
    rung: str = "policy"
    bound: str = "none"
    name: str = ""


@dataclass(frozen=True)
class Reported:
    """An outcome as an app reports it.

    Attributes:
        asked: the decision that it belongs to, and
        decision: its name.
        name: of the report, unique for the participant.
        value: the outcome.
        observed_at: when.
        supersedes: the name of the report that it corrects.
    """

    asked: Asked
    decision: str
    name: str
    value: float
    observed_at: datetime
    supersedes: str | None = None


@dataclass
class Drive(ABC):
    """What a simulated trial calls.

    Attributes:
        setting: what is known before.
        draws: of the trial.
    """

    setting: Setting
    draws: Draws
    outage: bool = field(default=False, init=False)

    @property
    def protocol(self) -> Protocol:
        """Of the trial."""
        return self.setting.protocol

    def begin(self, start: datetime) -> None:  # noqa: B027  some need nothing
        """Enrol everybody."""

    @abstractmethod
    def decide(self, asked: Asked) -> Decided:
        """A decision; raises `NotRecorded` during an outage."""

    @abstractmethod
    def report(self, asked: Asked, action: int, probability: float) -> Decided:
        """Record what the app drew during an outage."""

    def repeat(self, asked: Asked) -> bool:
        """Ask again as an app does whose answer was lost: whether the answer is the same."""
        return True

    @abstractmethod
    def deliver(self, asked: Asked, decided: Decided, action: int, when: datetime) -> None:
        """Report what reached the participant."""

    @abstractmethod
    def outcomes(self, items: Sequence[Reported]) -> None:
        """Report outcomes."""

    def withdraw(self, participant: str, when: datetime) -> None:  # noqa: B027  some need not know
        """Report that somebody has left."""

    @abstractmethod
    def tick(self, now: datetime) -> bool:
        """Run the update that is due; whether one ran."""

    def interrupt(self, outage: bool) -> None:
        """Begin or end an outage."""
        self.outage = outage

    def close(self) -> Mapping[str, Any]:
        """End, and say what is to be known of how it went."""
        return {}

    def number(self, asked: Asked) -> float:
        """The draw of a decision: the same in every drive, and for every policy."""
        slot = asked.slot
        return self.draws.number(self.protocol.trial, asked.participant, slot.kind, slot.index)

    def refuse(self) -> None:
        """Refuse during an outage."""
        if self.outage:
            raise NotRecorded(OUTAGE)


@dataclass
class Due:
    """When an update is due by the protocol's schedule, for drives without a ledger."""

    protocol: Protocol
    start: datetime

    def __post_init__(self) -> None:
        self.last, self.new = self.start, 0

    def is_due(self, now: datetime) -> bool:
        """Whether one is."""
        every = self.protocol.updates.every
        if every is not None:
            return self.new >= every
        planned = last_planned(self.protocol, now)
        return planned is not None and planned > self.start and self.last < planned

    def done(self, now: datetime) -> None:
        """One has run."""
        self.last, self.new = now, 0


def context_fields(protocol: Protocol, asked: Asked, covariates: Sequence[str]) -> dict[str, Any]:
    """A context as an app sends it: by field, levels as texts; the dose is not sent."""
    values = dict(zip(covariates, asked.context.tolist(), strict=True))
    sent = {}
    for name, section in protocol.covariates.items():
        if section.arrives == "context":
            sent[section.field] = _field(section, values[name])
    return sent


def _field(section: CovariateSection, value: float) -> Any:
    return section.levels[int(value)] if section.levels is not None else value

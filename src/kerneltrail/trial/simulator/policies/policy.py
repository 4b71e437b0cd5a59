"""Policies that are compared: each says with which probability to act, and learns when the trial's policy would.

A policy is one class, registered once under its name. It sees what a trial's policy would see: contexts, what was
assigned with which probability, and the outcomes that have arrived. `oracle` alone looks at the truth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels import Array
from kerneltrail.registry import Registry, subclass_of
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.allocation import Allocation
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.simulator.calendar import Calendar, Slot


@dataclass(frozen=True)
class Setting:
    """What everybody knows before a simulated trial.

    Attributes:
        protocol: of the trial.
        model: learnt from the pilot users.
        calendar: its days.
        people: the participants' names.
    """

    protocol: Protocol
    model: LearntGraph
    calendar: Calendar
    people: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A decision that is asked for.

    Attributes:
        participant: who.
        point: the number of the decision point, of all kinds together.
        slot: its kind, index and time.
        context: covariates in the model's order.
        available: whether somebody can act.
        effect: what acting would add in truth; for the oracle.
    """

    participant: str
    point: int
    slot: Slot
    context: Array
    available: bool
    effect: float


@dataclass
class Book:
    """A participant's decisions and the outcomes that have arrived, a row for each decision point; NaN is not there."""

    rows: Array
    action: Array
    probability: Array
    available: Array
    outcome: Array
    day: NDArray[np.int64]

    @classmethod
    def empty(cls, points: int, covariates: int, a_day: int) -> Book:
        """With nothing in it."""
        action, probability, available, outcome = (np.full(points, np.nan) for _ in range(4))
        rows = np.full((points, covariates), np.nan)
        return cls(rows, action, probability, available, outcome, np.arange(points) // a_day)

    def decided(self, asked: Asked, action: int, probability: float) -> None:
        """Write down a decision."""
        row = asked.point
        self.rows[row], self.action[row], self.probability[row] = asked.context, action, probability
        self.available[row] = float(asked.available)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have an outcome by now."""
        return ~np.isnan(self.outcome) & ~np.isnan(self.action)


@dataclass
class TrialPolicy(ABC):
    """A policy in a simulated trial.

    Attributes:
        setting: what is known before.
    """

    setting: Setting
    today: date = field(init=False)
    learnt_on: date | None = field(default=None, init=False)

    name: ClassVar[str]
    about: ClassVar[str] = ""
    randomised: ClassVar[bool] = True
    seldom: ClassVar[int] = 0
    """Days from one time that it learns to the next, whatever the rhythm of the trial's updates; 0 for each of them."""

    @abstractmethod
    def probability(self, asked: Asked) -> float:
        """With which probability to act, where somebody can."""

    def allocated(self, rule: Allocation, advantage: NormalMixture) -> float:
        """The probability that a rule allocates where acting adds that to the outcome."""
        return self.setting.protocol.allocate(rule, advantage).probability

    def update(self, now: datetime, books: Mapping[str, Book]) -> None:
        """An update of the trial: `learn`, if it is the policy's turn."""
        self.today = now.astimezone(ZoneInfo(self.setting.calendar.zone)).date()
        if self.days_since(self.learnt_on) >= self.seldom:
            self.learnt_on = self.today
            self.learn(books)

    def days_since(self, day: date | None) -> int:
        """Days from one to that of the update; None stands for the day before the trial."""
        return (self.today - (day or self.setting.calendar.begin - timedelta(days=1))).days

    def learn(self, books: Mapping[str, Book]) -> None:  # noqa: B027  some policies learn nothing
        """Take in all that has arrived by now."""


POLICIES: Registry[type[TrialPolicy]] = Registry("policy", DataError, subclass_of(TrialPolicy))
"""Policies by name. The trial's own is called `ours`; it is not in here, because it is driven (`drives`)."""

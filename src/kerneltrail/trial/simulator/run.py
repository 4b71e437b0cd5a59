"""One simulated trial, from the first decision to the last outcome: events on a clock, in the order of their times."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import NotRecorded
from kerneltrail.kernels import Array
from kerneltrail.trial.draw import drawn
from kerneltrail.trial.simulator.calendar import Slot
from kerneltrail.trial.simulator.drives import Decided, Drive, Reported
from kerneltrail.trial.simulator.people import Participant
from kerneltrail.trial.simulator.policies import Asked
from kerneltrail.trial.simulator.trouble import ARRIVES, CORRECTED, LATE, SHIFT, Fates, Trouble

DELIVERED = timedelta(seconds=5)
"""From a decision to the report of its delivery."""
BACK, GONE, REPORT, TICK, DECISION = range(5)
"""Kinds of events, in the order in which those of one moment happen."""


@dataclass
class Record:
    """All that happened, a row for each participant and a column for each decision point; NaN is nothing.

    Attributes:
        probability: of acting, as recorded; 0 where nobody could.
        action: as assigned, and
        delivered: as it reached the participant.
        available: whether somebody could act.
        effect: what acting would have added on average.
        outcome: in truth.
        reported: as it was known at the end.
        milliseconds: that the decision took.
        rung, bound: of each decision.
        counts: what went wrong, and what came of it.
        facts: what the drive says of how it went.
    """

    probability: Array
    action: Array
    delivered: Array
    available: Array
    effect: Array
    outcome: Array
    reported: Array
    milliseconds: Array
    rung: NDArray[np.str_]
    bound: NDArray[np.str_]
    counts: dict[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, people: int, points: int) -> Record:
        """With nothing in it."""

        def nothing() -> Array:
            return np.full((people, points), np.nan)

        return cls(
            probability=nothing(),
            action=nothing(),
            delivered=nothing(),
            available=nothing(),
            effect=nothing(),
            outcome=nothing(),
            reported=nothing(),
            milliseconds=nothing(),
            rung=np.full((people, points), "", dtype="U12"),
            bound=np.full((people, points), "", dtype="U12"),
        )

    def count(self, what: str, number: int = 1) -> None:
        """Count what went wrong, or what came of it."""
        self.counts[what] = self.counts.get(what, 0) + number

    def rows(self) -> dict[str, NDArray[Any]]:
        """The columns from which effects are estimated, a row for each decision."""
        there = ~np.isnan(self.action)
        number = np.broadcast_to(np.arange(len(there))[:, None], there.shape)
        return {
            "id": number[there],
            "outcome": self.reported[there],
            "treatment": self.action[there],
            "rand_prob": self.probability[there],
            "availability": self.available[there],
        }


@dataclass
class TrialRun:
    """A trial that is being simulated.

    Attributes:
        drive: what is called.
        people: the participants, drawn, in the order of the setting's names.
        fates: what happens to each one's decision points.
        trouble: what goes wrong besides.
    """

    drive: Drive
    people: Sequence[Participant]
    fates: Sequence[Fates]
    trouble: Trouble

    def __post_init__(self) -> None:
        calendar = self.drive.setting.calendar
        self._slots = calendar.slots()
        self.record = Record.empty(len(self.people), len(self._slots))
        self._queue: list[tuple[datetime, int, int, Any]] = []
        self._number = 0
        self._left: set[int] = set()
        self._unreported: list[tuple[int, Asked, int, float]] = []
        self._held: list[Any] = []
        self._names: dict[tuple[int, int], Decided] = {}

    def run(self) -> Record:
        """Simulate it to its end."""
        drive, calendar = self.drive, self.drive.setting.calendar
        drive.begin(calendar.start)
        for point, slot in enumerate(self._slots):
            for who in range(len(self.people)):
                self._add(slot.at, DECISION, (who, point, slot))
        for tick in calendar.ticks(drive.protocol):
            self._add(tick, TICK, None)
        for begins, ends in self.trouble.times(calendar):
            self._add(begins, GONE, None)
            self._add(ends, BACK, None)
        if calendar.change_of_clocks() is not None:
            self.record.count("days of another length")
        while self._queue:
            now, kind, _, content = heapq.heappop(self._queue)
            if kind == DECISION:
                self._decision(*content)
            elif kind == REPORT:
                self._reports(now, content)
            elif kind == TICK:
                self.record.count("updates", int(drive.tick(now)))
            else:
                self._interruption(now, kind == GONE)
        self.record.facts = drive.close()
        return self.record

    def _add(self, at: datetime, kind: int, content: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (at.astimezone(UTC), kind, self._number, content))

    def _decision(self, who: int, point: int, slot: Slot) -> None:
        if who in self._left:
            return
        person, record, drive = self.people[who], self.record, self.drive
        potential, available = person.potential, person.available
        name = drive.setting.people[who]
        asked = Asked(name, point, slot, person.context, available, potential.effect)
        began = time.perf_counter()
        try:
            decided = drive.decide(asked)
            record.milliseconds[who, point] = 1000.0 * (time.perf_counter() - began)
        except NotRecorded:
            chance = drive.protocol.fallback.fixed if available else 0.0
            decided = Decided(drawn(drive.number(asked), chance), chance, "fixed" if available else "unavailable")
            self._unreported.append((who, asked, decided.action, chance))
            record.count("decisions that the app drew in an outage")
        else:
            if self.fates[who].repeated(point):
                record.count("answers lost and asked for again")
                record.count("repeats answered alike", int(drive.repeat(asked)))
            self._names[who, point] = decided
        arrives = self.fates[who].delivered(point)
        given = decided.action if arrives else 0
        if decided.action and not arrives:
            record.count("prompts that did not arrive")
        if decided.action:
            self._later(slot.at + DELIVERED, ("delivery", who, asked, given))
        _, outcome, left, _, _ = person.step(given)
        record.probability[who, point], record.action[who, point] = decided.probability, decided.action
        record.delivered[who, point], record.available[who, point] = given, float(available)
        record.effect[who, point], record.outcome[who, point] = potential.effect, outcome
        record.rung[who, point], record.bound[who, point] = decided.rung, decided.bound
        self._observe(who, asked, outcome)
        if left:
            self._left.add(who)
            record.count("participants who left")
            self._later(slot.at + DELIVERED, ("left", who, asked, 0))

    def _observe(self, who: int, asked: Asked, outcome: float) -> None:
        """When and how the outcome becomes known."""
        fate, at = self.fates[who].of_outcome(asked.point), asked.slot.at
        if fate != "usual":
            self.record.count(f"outcomes {fate}")
        if fate == "missing":
            return
        name = f"{asked.slot.kind}-{asked.slot.index}"
        if fate == "corrected":
            wrong = outcome + SHIFT * self.drive.protocol.allocation.noise_sd
            self._later(at + ARRIVES, ("outcome", who, asked, (name, wrong, None)))
            self._later(at + CORRECTED, ("outcome", who, asked, (f"{name}-b", outcome, name)))
        else:
            self._later(at + (LATE if fate == "late" else ARRIVES), ("outcome", who, asked, (name, outcome, None)))

    def _later(self, at: datetime, content: Any) -> None:
        self._add(at, REPORT, content)

    def _reports(self, now: datetime, first: Any) -> None:
        """All reports of one moment; during an outage they wait."""
        several = [first]
        while self._queue and self._queue[0][:2] == (now, REPORT):
            several.append(heapq.heappop(self._queue)[3])
        if self.drive.outage:
            self._held.extend(several)
            self.record.count("reports that waited for an outage to end", len(several))
            return
        self._send(now, several)

    def _send(self, now: datetime, several: Sequence[Any]) -> None:
        outcomes = []
        for what, who, asked, content in several:
            if what == "left":
                self.drive.withdraw(asked.participant, asked.slot.at + DELIVERED)
                continue
            decided = self._names[who, asked.point]
            if what == "delivery":
                self.drive.deliver(asked, decided, content, asked.slot.at + DELIVERED)
                continue
            name, value, supersedes = content
            self.record.reported[who, asked.point] = value
            outcomes.append(Reported(asked, decided.name, name, value, asked.slot.at + ARRIVES, supersedes))
        if outcomes:
            self.drive.outcomes(outcomes)

    def _interruption(self, now: datetime, begins: bool) -> None:
        """An outage begins, or ends: then what was drawn is reported, what waited is sent, updates are made."""
        if begins:
            self.record.count("outages")
            self.drive.interrupt(True)
            return
        self.drive.interrupt(False)
        for who, asked, action, chance in self._unreported:
            self._names[who, asked.point] = self.drive.report(asked, action, chance)
        self.record.count("decisions reported after an outage", len(self._unreported))
        self._unreported = []
        held, self._held = self._held, []
        self._send(now, held)
        self.record.count("updates", int(self.drive.tick(now)))

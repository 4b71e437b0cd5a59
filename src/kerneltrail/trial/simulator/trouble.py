"""What goes wrong in trials: outcomes that are missing, late or corrected, prompts that do not arrive, outages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from kerneltrail.errors import DataError
from kerneltrail.trial.rhythm import at
from kerneltrail.trial.simulator.calendar import Calendar

ARRIVES, LATE, CORRECTED = timedelta(minutes=31), timedelta(days=1, minutes=31), timedelta(days=2, minutes=31)
"""From a decision to its outcome: as it should be, late, and corrected."""
SHIFT = 0.5
"""By how many standard deviations of the noise an outcome is off that is corrected afterwards."""


@dataclass(frozen=True)
class Outage:
    """A time in which nothing can be written into the ledger."""

    day: int
    begins: str
    ends: str


@dataclass(frozen=True)
class Trouble:
    """How much goes wrong; shares of outcomes, prompts and answers.

    Attributes:
        missing: outcomes that never come.
        late: outcomes that come a day late.
        corrected: outcomes that are first reported wrongly, and corrected two days later.
        undelivered: prompts that do not arrive.
        repeated: answers that are lost, so that the app asks again.
        outages: when nothing can be written; the app draws by itself then, and reports afterwards.
    """

    missing: float = 0.0
    late: float = 0.0
    corrected: float = 0.0
    undelivered: float = 0.0
    repeated: float = 0.0
    outages: tuple[Outage, ...] = ()

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name != "outages" and not 0.0 <= value <= 1.0:
                raise DataError(f"{name} is a share between 0 and 1, got {value}")
        if self.missing + self.late + self.corrected > 1.0:
            raise DataError("the shares of missing, late and corrected outcomes come to more than 1")

    def fates(self, points: int, *seed: int) -> Fates:
        """What happens to each decision point of a participant; the same for every policy."""
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        outcome, delivery, answer = rng.random((3, points))
        return Fates(self, outcome, delivery, answer)

    def times(self, calendar: Calendar) -> list[tuple[datetime, datetime]]:
        """When outages begin and end; those after the last day are left out."""
        zone = ZoneInfo(calendar.zone)
        return [
            (at(day, each.begins, zone), at(day, each.ends, zone))
            for each in self.outages
            if each.day < calendar.days
            for day in [calendar.begin + timedelta(days=each.day)]
        ]


@dataclass(frozen=True)
class Fates:
    """What happens to each decision point of one participant."""

    trouble: Trouble
    outcome: np.ndarray[tuple[int], np.dtype[np.float64]]
    delivery: np.ndarray[tuple[int], np.dtype[np.float64]]
    answer: np.ndarray[tuple[int], np.dtype[np.float64]]

    def of_outcome(self, point: int) -> str:
        """One of missing, late, corrected and usual."""
        chance = self.outcome[point]
        for name in ("missing", "late", "corrected"):
            share = getattr(self.trouble, name)
            if chance < share:
                return name
            chance -= share
        return "usual"

    def delivered(self, point: int) -> bool:
        """Whether a prompt would arrive."""
        return bool(self.delivery[point] >= self.trouble.undelivered)

    def repeated(self, point: int) -> bool:
        """Whether the answer is lost, so that the app asks again."""
        return bool(self.answer[point] < self.trouble.repeated)


TROUBLES: Mapping[str, Trouble] = {
    "none": Trouble(),
    "usual": Trouble(0.05, 0.05, 0.03, 0.04, 0.02, (Outage(3, "10:00", "16:00"),)),
    "rough": Trouble(
        0.2,
        0.15,
        0.05,
        0.15,
        0.1,
        (Outage(3, "10:00", "16:00"), Outage(6, "00:30", "13:00"), Outage(10, "00:10", "23:50")),
    ),
}
"""How much goes wrong, by name."""

"""When things happen in a simulated trial: decision points on each participant's clock, and looks for updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from kerneltrail.kernels import Array
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rhythm import at

BEGIN = date(2026, 3, 23)
"""A Monday. Clocks in Europe go forward on the Sunday after it, so that every simulated trial has a day of 23 hours."""
ZONE = "Europe/Zurich"
AFTER = timedelta(minutes=5)
"""From the time for which the protocol plans an update to the look at the clock that starts it."""
LOOKS = (0, 4, 8, 12, 16, 20)
"""Hours of the day at which it is looked whether enough outcomes came, where the protocol counts them."""


@dataclass(frozen=True)
class Slot:
    """A decision point: its kind, its number among those of the kind, and its time."""

    kind: str
    index: int
    at: datetime


@dataclass(frozen=True)
class Calendar:
    """The days of a trial.

    Attributes:
        times: decision times by kind, as the protocol has them.
        days: how many.
        begin: the first one.
        zone: of the participants' clocks.
    """

    times: Mapping[str, tuple[str, ...]]
    days: int
    begin: date = BEGIN
    zone: str = ZONE

    @classmethod
    def of(
        cls, protocol: Protocol, days: int, default: tuple[str, ...], begin: date = BEGIN, zone: str = ZONE
    ) -> Calendar:
        """The calendar of a protocol; a kind without times gets the default ones."""
        times = {kind: tuple(section.times) or default for kind, section in protocol.decisions.items()}
        return cls(times, days, begin, zone)

    @property
    def a_day(self) -> int:
        """Decision points a day."""
        return sum(map(len, self.times.values()))

    def slots(self) -> list[Slot]:
        """All decision points of a participant, in the order of their times."""
        zone = ZoneInfo(self.zone)
        counts = dict.fromkeys(self.times, 0)
        listed = []
        for day in range(self.days):
            today = [(clock, kind) for kind, clocks in self.times.items() for clock in clocks]
            for clock, kind in sorted(today):
                moment = at(self.begin + timedelta(days=day), clock, zone)
                listed.append(Slot(kind, counts[kind], moment))
                counts[kind] += 1
        return listed

    def hours(self) -> Array:
        """The clock's hour at each of them."""
        return np.array([slot.at.hour + slot.at.minute / 60.0 for slot in self.slots()])

    @property
    def start(self) -> datetime:
        """Before anything happens."""
        return at(self.begin, "00:00", ZoneInfo(self.zone)).astimezone(UTC)

    @property
    def end(self) -> datetime:
        """When the last day is over."""
        return at(self.begin + timedelta(days=self.days), "00:00", ZoneInfo(self.zone)).astimezone(UTC)

    def ticks(self, protocol: Protocol) -> Iterator[datetime]:
        """When it is looked whether an update is due, up to the end of the last day: nothing is decided after it."""
        updates, zone = protocol.updates, ZoneInfo(protocol.updates.timezone)
        clock = updates.daily or (updates.weekly or "").partition(" ")[2]
        for day in range(-1, self.days + 1):  # the clock of updates may be a day away from the participants'
            today = self.begin + timedelta(days=day)
            looks: list[datetime] = []
            if clock:
                looks = [at(today, clock, zone) + AFTER]
            elif updates.every is not None:
                looks = [at(today, f"{hour:02d}:05", zone) for hour in LOOKS]
            yield from (look.astimezone(UTC) for look in looks if self.start < look < self.end)

    def change_of_clocks(self) -> date | None:
        """The first day on which the clocks are changed, or None."""
        zone = ZoneInfo(self.zone)
        for day in range(self.days):
            today = self.begin + timedelta(days=day)
            ends = [
                datetime.combine(each, datetime.min.time(), zone).utcoffset() for each in (today, today + timedelta(1))
            ]
            if ends[0] != ends[1]:
                return today
        return None

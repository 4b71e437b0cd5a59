"""How a trial went for its participants: who took part, what is missing, how they fared, which kernels they had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from kerneltrail.evaluation.intervals import DRAWS, Interval, mean_over_users, share_over_users
from kerneltrail.trial.analysis.record import Record
from kerneltrail.trial.decided import Point
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.sections import WorstQuarter

WEEK = 7
SHORT = 14
"""Days up to which a study is shown day by day; a longer one is shown week by week."""
ENOUGH = 20
"""Participants below whom an interval of a percentile from resampling them is too narrow."""
NONE_YET = "none yet"
OTHERS = "others"


SILENT = timedelta(days=7)
"""So long after the last entry about anybody, a trial is no longer running."""


@dataclass(frozen=True)
class Flow:
    """How many participants there were at each step.

    Attributes:
        enrolled: of whom an entry says that they take part.
        started: with at least one decision.
        never_started: enrolled without any.
        paused: who paused at some time.
        withdrawn: who withdrew.
        removed: whose data were removed, which leaves nothing to analyse.
        completed: who started, and did not leave until their last day was over.
        ongoing: who have not left, and whose last day was not over when it was analysed, nor a week after the record's
            end: of a trial that was broken off, nobody completes by the calendar.
        nothing_usable: who started, whose data are there, and who are not in the analysis.
        analysed: with at least one decision at which somebody could act and that has an outcome.
    """

    enrolled: int
    started: int
    never_started: int
    paused: int
    withdrawn: int
    removed: int
    completed: int
    ongoing: int
    nothing_usable: int
    analysed: int

    def table(self) -> list[dict[str, str | int]]:
        """A row for each step."""
        return [{"step": name.replace("_", " "), "participants": count} for name, count in vars(self).items()]

    def words(self) -> str:
        """All of it in a sentence or two."""
        parts = [f"{self.enrolled} enrolled", f"{self.started} started", f"{self.completed} completed"]
        parts += [f"{self.withdrawn} withdrew"] if self.withdrawn else []
        parts += [f"the data of {self.removed} were removed"] if self.removed else []
        parts += [f"the last day of {self.ongoing} was not over"] if self.ongoing else []
        return f"Of the participants, {', '.join(parts)}; {self.analysed} are in the analysis."


def flow_of(record: Record) -> Flow:
    """The flow of participants by the end of the record."""
    people = [
        person
        for person in record.state.participants.values()
        if person.enrolled is not None or person.removed is not None
    ]
    usable = {point.participant for point in record.points if point.available and point.outcome is not None}
    state = Counter(_end(person, record) for person in people)
    started = {person.id for person in people if _started(person, record.now)}
    there = sum(person.id in started for person in people if person.removed is None)
    return Flow(
        enrolled=len(people),
        started=len(started),
        never_started=len(people) - len(started),
        paused=sum(any(change.status == "paused" for change in person.changes) for person in people),
        withdrawn=state["withdrawn"],
        removed=state["removed"],
        completed=state["completed"],
        ongoing=state["ongoing"],
        nothing_usable=there - len(usable),
        analysed=len(usable),
    )


def _end(person: Participant, record: Record) -> str:
    if person.removed is not None:
        return "removed"
    if person.status() == "withdrawn":
        return "withdrawn"
    if may_go_on(person, min(record.now, record.until + SILENT)):
        return "ongoing"
    return "completed" if _started(person, record.now) else "never started"


def _started(person: Participant, now: datetime) -> bool:
    """Whether somebody had a decision by a time, and not one drawn ahead; of removed ones the time is not known."""
    records = [each.payload for each in person.decisions.values()]
    return any(each is None or instant(each["decided_at"]) <= now for each in records)


def may_go_on(person: Participant, now: datetime) -> bool:
    """Whether a participant may still have decisions: has not left, and the last day, if there is one, is not over."""
    facts = person.enrolled or {}
    if person.status(now) == "withdrawn" or not facts:
        return False
    ends = facts.get("ends_on")
    return ends is None or now.astimezone(ZoneInfo(facts["timezone"])).date() <= date.fromisoformat(ends)


def waited_for(record: Record) -> int:
    """Decisions at the end of the record whose outcome may still come, where somebody could act."""
    return sum(point.available and point.waits(record.until) and not point.looked_for for point in record.points)


def too_young(record: Record) -> int:
    """Decisions without an outcome that was not due yet when the record ends, where somebody could act."""
    return sum(point.available and point.waits(record.until) for point in record.points)


@dataclass(frozen=True)
class Gap:
    """Outcomes that are missing among some decisions.

    Attributes:
        group: of which decisions.
        decisions: how many, at which somebody could act, and whose outcome was due when the record ends.
        observed: with an outcome.
        looked_for: of the others, how many were looked for and not found; of the rest nobody recorded anything.
        share: of decisions without an outcome, with its interval over participants.
    """

    group: str
    decisions: int
    observed: int
    looked_for: int
    share: Interval


def gaps_of(record: Record, level: float = 0.95) -> list[Gap]:
    """Missing outcomes: of all decisions whose outcome is due, by what was assigned, and over time."""
    points = [point for point in record.points if point.available and point.is_due(record.until)]
    groups: dict[str, list[Point]] = {
        "all": points,
        "assigned to act": [point for point in points if point.action],
        "assigned not to act": [point for point in points if not point.action],
    }
    for name, several in by_period(points):
        groups[name] = several
    return [_gap(name, several, level) for name, several in groups.items() if several]


def _gap(name: str, points: Sequence[Point], level: float) -> Gap:
    lost = [point for point in points if point.outcome is None]
    missing = share(points, lost, level)
    return Gap(name, len(points), len(points) - len(lost), sum(point.looked_for for point in lost), missing)


def share(points: Sequence[Point], hits: Sequence[Point], level: float = 0.95) -> Interval:
    """The share of points that are hits, with an interval over participants."""
    chosen = {id(point) for point in hits}
    people: dict[str, list[bool]] = {}
    for point in points:
        people.setdefault(point.participant, []).append(id(point) in chosen)
    return share_over_users([np.array(each) for each in people.values()], level=level)


def by_period(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Points by day or week in the study, whichever is readable; days count from 1 there, as people count."""
    if not points:
        return []
    short = max(point.day for point in points) < SHORT
    length, noun = (1, "day") if short else (WEEK, "week")
    periods: dict[int, list[Point]] = {}
    for point in points:
        periods.setdefault(point.day // length, []).append(point)
    return [(f"{noun} {place + 1}", periods[place]) for place in sorted(periods)]


@dataclass(frozen=True)
class Fared:
    """How participants fared: the mean of their own mean outcomes, and the quarter who fared worst, with intervals.

    Attributes:
        mean: with Student's t interval, as on the team's pages.
        quarter: the percentile, with an interval from resampling participants, which is too narrow for few of them.
        worst: which percentile that is: the 25th, or the 75th where a lower outcome is better.
    """

    mean: Interval
    quarter: Interval
    worst: WorstQuarter

    def notes(self) -> list[str]:
        """How the intervals came about, and what they lack, in sentences."""
        if self.mean.users < 2:
            return ["One participant does not tell how participants differ, so there are no intervals."]
        lines = [
            f"The interval of the mean is Student's t over participants; that of the {self.worst.name} resamples them."
        ]
        if self.quarter.users < ENOUGH:
            lines.append(
                f"With fewer than {ENOUGH} participants (here {self.quarter.users}) the interval of the "
                f"{self.worst.name} is too narrow."
            )
        return lines


def fared(record: Record, level: float = 0.95) -> Fared | None:
    """How participants fared; None where nobody has an outcome."""
    people: dict[str, list[float]] = {}
    for point in record.points:
        if point.outcome is not None:
            people.setdefault(point.participant, []).append(point.outcome)
    means = np.array([np.mean(each) for each in people.values()])
    if not len(means):
        return None
    drawn = np.random.default_rng(0).integers(len(means), size=(DRAWS, len(means)))
    worst = record.protocol.reward.worst
    quarters: NDArray[np.float64] = np.quantile(means[drawn], worst.percent / 100, axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(quarters, [tail, 1.0 - tail])
    quarter = Interval(worst.of(means), float(low), float(high), level, len(means))
    return Fared(mean_over_users(means, level=level), quarter, worst)


@dataclass(frozen=True)
class Kernels:
    """Which kernels participants had over time.

    Attributes:
        periods: days or weeks in the study.
        names: kernels, the most frequent first; rare ones are together.
        counts: participants by period and kernel: each with the kernel of their last decision in the period.
    """

    periods: tuple[str, ...]
    names: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Of participants in each period."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)


def kernels_of(record: Record, most: int = 6) -> Kernels | None:
    """Kernel frequencies over time; None where no policy has decided."""
    points = [point for point in record.points if point.rung in ("policy", "last_good")]
    last: list[tuple[str, Counter[str]]] = []
    for period, several in by_period(points):
        newest = {point.participant: point for point in sorted(several, key=lambda point: point.at)}
        last.append((period, Counter(point.composition or NONE_YET for point in newest.values())))
    if not last:
        return None
    total: Counter[str] = sum((counts for _, counts in last), Counter())
    frequent = [name for name, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]
    names = frequent if len(frequent) <= most + 1 else [*frequent[:most], OTHERS]
    counts = np.zeros((len(last), len(names)), dtype=np.int64)
    for row, (_, each) in enumerate(last):
        for name, count in each.items():
            counts[row, names.index(name) if name in names else len(names) - 1] += count
    return Kernels(tuple(period for period, _ in last), tuple(names), counts)

"""A trial's record as its analysis needs it: one point for each decision that is there, and columns for estimates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError, TrialError
from kerneltrail.names import nearest
from kerneltrail.trial.analysis.excursion import BASELINE, INTERCEPT
from kerneltrail.trial.decided import Point, points_of
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol

TIME = "days in the study"
"""The moderator that every analysis has: days since the participant's first day, on their clock."""
FOREVER = datetime.max.replace(tzinfo=UTC)
"""A time by which all decisions that were drawn ahead have come."""
TAKEN = ("id", "outcome", "treatment", "rand_prob", "availability", TIME, INTERCEPT, BASELINE)
"""Columns and coefficients with a meaning of their own, which no covariate's column is called."""


@dataclass(frozen=True)
class Record:
    """What is analysed.

    Attributes:
        state: all that the ledger comes to.
        protocol: in force.
        points: decisions in the order of participants and times, of one kind where one was asked for. Those that were
            drawn ahead are not among them before their time.
        until: when the newest entry about a participant was recorded: the end of what is analysed.
        now: when it is analysed, and no earlier than that: by then the last days of participants are over, or not.
        covariates: columns of each covariate: one of its numbers, or one for each level but the first.
        labels: what people call a covariate, where that is not its name.
    """

    state: State
    protocol: Protocol
    points: tuple[Point, ...]
    until: datetime
    now: datetime
    covariates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """What people call a covariate, by its name or its column, or one of its levels."""
        numbers = {several[0]: each for each, several in self.covariates.items() if self.is_number(each)}
        head, colon, level = numbers.get(name, name).partition(": ")
        return f"{self.labels.get(head, head)}{colon}{level}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of decisions that there are."""
        return tuple(dict.fromkeys(point.kind for point in self.points))

    @property
    def outcome(self) -> str:
        """What the outcome is called."""
        return self.protocol.reward.outcome

    @property
    def unit(self) -> str:
        """Of the outcome; empty where the name says it."""
        unit = self.protocol.reward.unit
        return "" if unit == self.outcome else unit

    def of_kind(self, kind: str) -> Record:
        """The decisions of one kind."""
        points = tuple(point for point in self.points if point.kind == kind)
        return replace(self, points=points)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The points as columns for `wcls`: those of the table `mrt`, the time in the study, and the covariates."""
        points = self.points
        columns: dict[str, NDArray[Any]] = {
            "id": np.array([point.participant for point in points], dtype=np.str_),
            "outcome": _numbers(point.outcome for point in points),
            "treatment": _numbers(point.action for point in points),
            "rand_prob": _numbers(point.probability for point in points),
            "availability": _numbers(point.available for point in points),
            TIME: _numbers(point.day for point in points),
        }
        for name, several in self.covariates.items():
            values = _numbers(point.context.get(name) for point in points)
            if self.is_number(name):
                columns[several[0]] = values
                continue
            for place, column in enumerate(several, 1):
                columns[column] = np.where(np.isnan(values), np.nan, values == place)
        return columns

    def is_number(self, name: str) -> bool:
        """Whether a moderator has numbers, and no levels."""
        several = self.moderator(name)
        return len(several) == 1 and not several[0].startswith(f"{name}: ")

    def moderator(self, name: str) -> tuple[str, ...]:
        """The columns of a moderator: a covariate; or the time in the study, `time` for short if no covariate has that.

        Raises:
            DataError: for another name.
        """
        if name in self.covariates:
            return self.covariates[name]
        if name in ("time", TIME):
            return (TIME,)
        names = (*self.covariates, TIME)
        raise DataError(f"{name!r} is no covariate of the trial; {nearest(name, names, 'there are')}")


def _numbers(values: Any) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def read_record(state: State, protocol: Protocol, kind: str | None = None, now: datetime | None = None) -> Record:
    """What a ledger's state has for an analysis.

    Args:
        state: of the ledger.
        protocol: in force.
        kind: of decisions; all of them if None.
        now: when it is analysed; at the end of the record if None.

    Raises:
        TrialError: where no decision is there.
        DataError: for a kind that is none.
    """
    points = [point for person in state.participants.values() for point in points_of(person)]
    if not points:
        raise TrialError(f"the trial {state.trial} has no decision whose data are there: there is nothing to analyse")
    until = end_of(state)
    latest = until if now is None else max(now, until)
    points = [point for point in points if point.at <= latest]
    if not points:
        raise TrialError(f"all decisions of the trial {state.trial} were drawn ahead: there is nothing to analyse yet")
    kinds = tuple(dict.fromkeys(point.kind for point in points))
    if kind is not None and kind not in kinds:
        raise DataError(f"there is no decision of the kind {kind!r}; {nearest(kind, kinds, 'there are')}")
    covariates = {
        name: tuple(f"{name}: {level}" for level in section.levels[1:])
        if section.levels
        else (column_of(name, protocol.covariates),)
        for name, section in protocol.covariates.items()
    }
    chosen = tuple(point for point in points if kind in (None, point.kind))
    return Record(state, protocol, chosen, until, latest, covariates)


def column_of(name: str, names: Collection[str]) -> str:
    """The column of a covariate among others: its name, or one that is told apart from what has a meaning already.

    >>> column_of("hour", ["hour"]), column_of("outcome", ["outcome", "hour"])
    ('hour', 'context_outcome')
    """
    column = name
    while column in TAKEN or (column != name and column in names):
        column = f"context_{column}"
    return column


def end_of(state: State) -> datetime:
    """When the newest entry about a participant was recorded; what was noted of the trial itself does not count."""
    times: list[str] = []
    for person in state.participants.values():
        times += [each.received_at for each in person.decisions.values()]
        times += [each.received_at for each in person.outcomes.values()]
        times += [each.received_at for each in person.changes]
        times += [person.enrolled_at] if person.enrolled_at is not None else []
    return instant(max(times))


def default_moderators(record: Record) -> tuple[str, ...]:
    """What the policy's advantage may depend on, and the time in the study."""
    return (*record.protocol.reward.features, TIME)


def chosen_moderators(record: Record, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Those asked for, checked; the default ones if None."""
    names = tuple(dict.fromkeys(default_moderators(record) if asked is None else asked))
    for name in names:
        record.moderator(name)
    return names

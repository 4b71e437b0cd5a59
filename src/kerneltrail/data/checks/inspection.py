"""All that the checks look at, in one place: schema, users, rows, and what is known of the pilot users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.batching import Batching
from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.pilot_summary import PilotSummary
from kerneltrail.data.checks.rows import Index, Rows
from kerneltrail.data.checks.spread import Far, correlation, far_values, ranks
from kerneltrail.data.intake_report import IntakeReport
from kerneltrail.data.schema import Schema
from kerneltrail.data.times import clock
from kerneltrail.data.user import User
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing

SAME = 0.999
"""Correlation, of values or of ranks, from which on two columns say the same."""
_FALLING = 0.05
_FEW_ROWS = 20
"""Of fewer rows nobody can say that they do."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """What is looked at.

    Attributes:
        schema: what the columns mean; its policy for missing values is the one that a fit would have.
        users: in data units, without the rows that lack a value.
        report: on how they were read.
        rows: of the table, those that lack a value too.
        pilot: what is known of the pilot users, where new ones are compared with them.
        candidates: columns that would have been covariates had they held numbers.
    """

    schema: Schema
    users: tuple[User, ...]
    report: IntakeReport
    rows: Rows
    pilot: PilotSummary | None = None
    candidates: tuple[str, ...] = ()

    @property
    def measured(self) -> tuple[str, ...]:
        """Columns of numbers that a model sees: the target, and the covariates but for categorical ones."""
        covariates = (name for name in self.schema.covariates if name not in self.schema.levels)
        return (self.schema.target, *covariates)

    @property
    def is_cut(self) -> bool:
        """Whether it was said how rows are cut into batches."""
        return self.schema.batching != Batching()

    def named(self, column: str) -> str:
        """A column in a sentence, with its role."""
        return f"{'target' if column == self.schema.target else 'covariate'} {column!r}"

    def listed(self, columns: Sequence[str]) -> str:
        """Columns in a sentence: ``covariates 'a' and 'b'``."""
        return self.named(columns[0]) if len(columns) == 1 else f"covariates {listing(map(repr, columns))}"

    def present(self, column: str) -> Index:
        """Rows in which a column has a value."""
        return np.flatnonzero(np.isfinite(self.rows.values[column]))

    def usual(self, column: str) -> Array:
        """Values of a column that are there and not far from the rest."""
        values = self.rows.values[column][self.present(column)]
        far = self.far[column]
        return values if far is None else values[far.within(values)]

    @cached_property
    def far(self) -> dict[str, Far | None]:
        """What lies far from the rest, by column."""
        return {name: self._far(name) for name in self.measured}

    def _far(self, name: str) -> Far | None:
        values = self.rows.values[name]
        far = far_values(values[self.present(name)])
        if far is None:
            return None
        # Users all of users values are far are odd themselves, and their values are no codes and no slips.
        for index in self.rows.groups.values():
            within = far.within(values[index])[np.isfinite(values[index])]
            if within.any() and not within.all():
                return far
        return None

    def rises(self, column: str) -> bool:
        """Whether a column hardly ever falls within a user: a counter of days, say."""
        groups = [self.rows.values[column][index] for index in self.rows.groups.values()]
        steps = np.concatenate([np.diff(values[np.isfinite(values)]) for values in groups] or [np.empty(0)])
        return bool(len(steps)) and float(np.mean(steps < 0.0)) < _FALLING

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Rows that are not left out for a missing value."""
        lacking = np.zeros(self.rows.count, np.bool_)
        for name in self.schema.values:
            if self.schema.policy(name) in ("drop", "error") and self.rows.table is not None:
                lacking |= np.isnan(self.rows.values[name])
        return ~lacking

    @property
    def available(self) -> NDArray[np.bool_]:
        """Rows at which somebody could act."""
        column = self.schema.availability
        return np.ones(self.rows.count, np.bool_) if column is None else self.rows.values[column] != 0.0

    @cached_property
    def times(self) -> tuple[NDArray[np.generic], str] | None:
        """Times of the rows, and what the order column holds; None where it does not tell the time."""
        return None if self.rows.order is None else clock(self.rows.order)

    @cached_property
    def seconds(self) -> Array | None:
        """The times in seconds."""
        return None if self.times is None else self.times[0].astype(np.int64) / 1e6

    def likeness(self, first: str, second: str) -> str:
        """``same`` if one column is a straight line of the other, ``order`` if both rise together; else empty."""
        if first == second:
            return ""
        pair = (min(first, second), max(first, second))
        if pair not in self._likeness:
            self._likeness[pair] = self._compared(*pair)
        return self._likeness[pair]

    @cached_property
    def _likeness(self) -> dict[tuple[str, str], str]:
        return {}

    def _compared(self, first: str, second: str) -> str:
        x, y = self.rows.values[first], self.rows.values[second]
        both = np.isfinite(x) & np.isfinite(y)
        for name, values in ((first, x), (second, y)):
            far = self.far.get(name)
            if far is not None:  # a code that both have in the same rows would make any two columns alike
                both &= far.within(values)
        x, y = x[both], y[both]
        if len(x) < _FEW_ROWS or not _varies(x) or not _varies(y):
            return ""
        if abs(correlation(x, y)) > SAME:
            return "same"
        many = min(len(np.unique(x)), len(np.unique(y))) >= _FEW_ROWS
        return "order" if many and abs(correlation(ranks(x), ranks(y))) > SAME else ""

    def at(self, column: str, values: Iterable[float]) -> Index:
        """Rows in which a column has one of some values."""
        return np.flatnonzero(np.isin(self.rows.values[column], list(values)))


def _varies(values: Array) -> bool:
    return float(np.ptp(values)) > 1e-12 * float(np.abs(values).max(initial=0.0))


@dataclass(frozen=True)
class Check:
    """Something to look for.

    Attributes:
        label: what, in a few words, for the list of what was not found.
        run: gives findings, none if all is fine.
        applies: whether there is anything to look at.
        told: findings of other checks, by their code, after which nobody can say that it was not found.
    """

    label: str
    run: Callable[[Inspection], Iterator[Finding]]
    applies: Callable[[Inspection], bool] = lambda data: True
    told: tuple[str, ...] = ()

"""From a table to users in data units: sorted, cut into batches, and with a report of what was dropped or filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.columns import coded, flags, labels, numbers, order_values, shares
from kerneltrail.data.intake_report import Report
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import Table, read_table
from kerneltrail.data.user import User
from kerneltrail.errors import DataError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LEVELS = "; if it has levels, declare them: categorical={{{name!r}: [...]}}, on the command line --levels {name}=a,b"


@dataclass(frozen=True)
class Inputs:
    """Covariates of one user's rows for which a prediction is wanted: a table without a target.

    Attributes:
        name: the user's name.
        X: covariates in data units, shape (n, d), in time order.
        rows: for each of them its row in the table, counted from 0.
    """

    name: str
    X: Array
    rows: NDArray[np.int64]


def take_in(schema: Schema, rows: Any) -> tuple[tuple[User, ...], Report]:
    """The users of a table, in data units and in order of appearance, and what happened on the way."""
    table = read_table(rows)
    return _Intake(schema, table, (*schema.values,)).users()


def take_inputs(schema: Schema, rows: Any) -> tuple[Inputs, ...]:
    """The users' covariates of a table that need not have the target, the action or batches."""
    table = read_table(rows)
    intake = _Intake(schema, table, schema.covariates)
    X = intake.stacked(schema.covariates)
    return tuple(Inputs(name, X[index], index) for name, index, _ in intake.by_user())


class _Intake:
    """One pass over a table: `values` are the columns that matter, `kept` the rows that stay."""

    def __init__(self, schema: Schema, table: Table, wanted: tuple[str, ...]) -> None:
        self.schema, self.table = schema, table
        self.names = labels(table, schema.user, "user column")
        self.order = order_values(table, schema.order)
        self.values = {name: self._column(name) for name in wanted}
        self.kept: Mask = np.ones(table.rows, dtype=np.bool_)
        self.unavailable: dict[str, int] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.filled: dict[str, dict[str, int]] = {}
        # Unavailable rows go first: what is missing in a row that is not wanted is nobody's error.
        if schema.available_only and schema.availability in self.values:
            away = self.values[schema.availability] == 0.0
            self.unavailable = self._count(away)
            self.kept &= ~away
        available = self.kept.copy()
        for name in wanted:
            self._settle(name, np.isnan(self.values[name]) & available)

    def _column(self, name: str) -> Array:
        schema, table = self.schema, self.table
        if name in schema.levels:
            return coded(table, name, schema.levels[name])
        if name == schema.action:
            return flags(table, name, "action")
        if name == schema.availability:
            return flags(table, name, "availability")
        if name == schema.probability:
            return shares(table, name)
        return numbers(table, name, _LEVELS.format(name=name) if name in schema.covariates else "")

    def _settle(self, name: str, gaps: Mask) -> None:
        if not gaps.any():
            return
        policy = self.schema.policy(name)
        if policy == "error":
            row = int(np.flatnonzero(gaps)[0])
            raise DataError(
                f"column {name!r} of {self.table.source} is missing in {self.table.place(row)}, user "
                f"{self.names[row]!r}, and in {int(gaps.sum())} rows altogether; say what to do with "
                f"missing={{{name!r}: 'drop'}}, or on the command line with --missing drop"
            )
        if policy == "drop":
            self.dropped[name] = self._count(gaps)
            self.kept &= ~gaps
            return
        levels = self.schema.levels.get(name)
        self.filled[name] = self._count(gaps)
        self.values[name][gaps] = levels.index(str(policy)) if levels else float(policy)

    def _count(self, rows: Mask) -> dict[str, int]:
        counts: dict[str, int] = {}
        for row in np.flatnonzero(rows):
            counts[self.names[row]] = counts.get(self.names[row], 0) + 1
        return counts

    def stacked(self, names: tuple[str, ...]) -> Array:
        return np.column_stack([self.values[name] for name in names])

    def by_user(self) -> list[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
        """(name, kept rows in time order, all rows in time order) by user, in order of appearance."""
        places: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            places.setdefault(name, []).append(row)
        found = []
        for name, rows in places.items():
            own = np.array(rows, dtype=np.int64)
            own = own[np.argsort(self.order[own], kind="stable")]
            found.append((name, own[self.kept[own]], own))
        return found

    def users(self) -> tuple[tuple[User, ...], Report]:
        schema = self.schema
        column = schema.batching.column
        batches = None if column is None else labels(self.table, column, "batch column")
        X = self.stacked(schema.covariates)
        users: list[User] = []
        repeated: dict[str, int] = {}
        unsorted: list[str] = []
        empty: list[str] = []
        for name, index, own in self.by_user():
            ties = int(np.sum(self.order[own][1:] == self.order[own][:-1]))
            if ties:
                repeated[name] = ties
            if np.any(np.diff(own) < 0):
                unsorted.append(name)
            if not len(index):
                empty.append(name)
                continue
            marks = None if batches is None else [batches[row] for row in own]
            ends = schema.batching.cut(name, self.kept[own].tolist(), marks)
            users.append(
                User(
                    name,
                    schema.covariates,
                    X[index],
                    self.values[schema.target][index],
                    ends,
                    action=self._optional(schema.action, index),
                    availability=self._optional(schema.availability, index),
                    probability=self._optional(schema.probability, index),
                    order=self.order[index],
                )
            )
        report = Report(
            rows_read=self.table.rows,
            rows_kept=int(self.kept.sum()),
            dropped=self.dropped,
            filled=self.filled,
            unavailable=self.unavailable,
            repeated=repeated,
            unsorted=tuple(unsorted),
            empty=tuple(empty),
        )
        if not users:
            raise DataError(f"no row of {self.table.source} is left:\n{report}")
        return tuple(users), report

    def _optional(self, name: str | None, index: NDArray[np.int64]) -> Array | None:
        return None if name is None else self.values[name][index]

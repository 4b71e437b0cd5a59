"""From a table to users in data units: sorted, cut into batches, and with a report of what was dropped or filled.

Nothing is dropped in silence. A cell that cannot be used is an error that names column, row and user; or its user is
left out and listed in the report, so that one bad cell does not keep everybody else out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.columns import coded, flags, labels, numbers, order_values, shares
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import Table, read_table
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array

Mask = NDArray[np.bool_]

_LEVELS = "; if it has levels, declare them: categorical={{{name!r}: [...]}}, on the command line --levels {name}=a,b"

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class IntakeReport:
    """How many rows were read, kept, dropped and filled, and why.

    A row with two missing values counts under both columns, and once in `rows_read - rows_kept`.

    Attributes:
        rows_read: rows in the table.
        rows_kept: rows in the cohort.
        dropped: rows dropped for a missing value, by column, then by user.
        filled: missing values replaced as declared, by column, then by user.
        unavailable: rows dropped because the user was not available, by user.
        repeated: rows whose order value equals that of the row before, by user; they keep the table's order.
        unsorted: users whose rows were not in time order and were sorted.
        empty: users of whom no row is left; they are not in the cohort.
        refused: users left out for a cell that cannot be used, with the reason, where the reader asked to go on.
        notes: what a loader has to say about its source.
    """

    rows_read: int = 0
    rows_kept: int = 0
    dropped: Counts = field(default_factory=FrozenDict)
    filled: Counts = field(default_factory=FrozenDict)
    unavailable: Mapping[str, int] = field(default_factory=FrozenDict)
    repeated: Mapping[str, int] = field(default_factory=FrozenDict)
    unsorted: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=FrozenDict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        for label in ("dropped", "filled"):
            put(self, label, FrozenDict({name: FrozenDict(by_user) for name, by_user in getattr(self, label).items()}))
        for label in ("unavailable", "repeated", "refused"):
            put(self, label, FrozenDict(getattr(self, label)))

    def missing(self, column: str) -> int:
        """Rows dropped for a missing value in that column."""
        return sum(self.dropped.get(column, {}).values())

    @property
    def left_out(self) -> list[str]:
        """A sentence for each user who was refused."""
        named = self.refused.items()
        return [f"user {name!r} is left out:{why.removeprefix(f'user {name!r}:')}" for name, why in named]

    def __str__(self) -> str:
        lines = [f"{self.rows_read} rows read, {self.rows_kept} kept"]
        lines += [f"dropped, {column} missing: {_counted(by_user)}" for column, by_user in self.dropped.items()]
        lines += [f"filled, {column} missing: {_counted(by_user)}" for column, by_user in self.filled.items()]
        if self.unavailable:
            lines.append(f"dropped, user not available: {_counted(self.unavailable)}")
        if self.repeated:
            lines.append(f"order value repeated (table order kept): {_counted(self.repeated)}")
        if self.unsorted:
            lines.append(f"sorted into time order: {_listed(self.unsorted)}")
        if self.empty:
            lines.append(f"no rows left, not in the cohort: {_listed(self.empty)}")
        if self.refused:
            lines.append(f"left out for what cannot be used, not in the cohort: {_listed(tuple(self.refused))}")
            lines += [f"  {problem}" for problem in list(self.refused.values())[:5]]
        return "\n".join([*lines, *self.notes])


@dataclass(frozen=True)
class UnlabelledRows:
    """Covariates of one user's rows for which a prediction is wanted: a table without a target.

    Attributes:
        name: the user's name.
        X: covariates in data units, shape (n, d), in time order.
        rows: for each of them its row in the table, counted from 0.
    """

    name: str
    X: Array
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of a table that a schema names, before any row is dropped for a missing value or any is filled.

    Attributes:
        values: by column, NaN where a value is missing; levels as codes.
        order: order values.
        by_user: every user's rows in time order, counted from 0.
        wanted: rows of users who can be read, at which they were available if only those are asked for.
    """

    values: Mapping[str, Array]
    order: NDArray[Any]
    by_user: Mapping[str, NDArray[np.int64]]
    wanted: Mask


def read_columns(schema: Schema, rows: Any) -> TableColumns:
    """The columns of a table; a user with a cell that cannot be used is not wanted."""
    lenient = replace(schema, missing=dict.fromkeys(schema.values, "drop"))
    intake = _Intake(lenient, _table(schema, rows), schema.values, skip_refused=True)
    by_user = {name: every for name, _, every in intake.by_user()}
    return TableColumns(intake.values, intake.order, by_user, intake.wanted)


def read_users(schema: Schema, rows: Any, *, skip_refused: bool = False) -> tuple[tuple[User, ...], IntakeReport]:
    """The users of a table, in data units and in order of appearance, and what happened on the way."""
    return _Intake(schema, _table(schema, rows), schema.values, skip_refused).users()


def read_unlabelled(schema: Schema, rows: Any) -> tuple[UnlabelledRows, ...]:
    """The covariates alone, by user and in data units: rows to predict, whose target is not known yet."""
    intake = _Intake(schema, _table(schema, rows), schema.covariates)
    X = intake.stacked(schema.covariates)
    return tuple(UnlabelledRows(name, X[index], index) for name, index, _ in intake.by_user())


def _table(schema: Schema, rows: Any) -> Table:
    return read_table(rows, delimiter=schema.delimiter, decimal=schema.decimal)


class _Intake:
    """One pass over a table: `values` are the columns that matter, `kept` the rows that stay."""

    def __init__(self, schema: Schema, table: Table, wanted: tuple[str, ...], skip_refused: bool = False) -> None:
        self.schema, self.table, self.skip_refused = schema, table, skip_refused
        self.names = labels(table, schema.user, "user column")
        self.order = order_values(table, schema.order, schema.time_format)
        self.refused: dict[str, str] = {}
        covariates = set(schema.covariates)
        self.values = {name: self._column(name, name in covariates) for name in wanted}
        self.kept: Mask = np.ones(table.rows, dtype=np.bool_)
        self._leave_out()
        self.unavailable: dict[str, int] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.filled: dict[str, dict[str, int]] = {}
        # Unavailable rows go first: what is missing in a row that is not wanted is nobody's error.
        if schema.available_only and schema.availability in self.values:
            away = (self.values[schema.availability] == 0.0) & self.kept
            self.unavailable = self._count(away)
            self.kept &= ~away
        self.wanted = self.kept.copy()
        for name in wanted:
            self._settle(name, np.isnan(self.values[name]) & self.wanted)
        self._leave_out()

    def _column(self, name: str, covariate: bool) -> Array:
        schema, table = self.schema, self.table
        if name in schema.levels:
            return coded(table, name, schema.levels[name], self._refuse)
        if name == schema.action:
            return flags(table, name, "action", self._refuse)
        if name == schema.availability:
            return flags(table, name, "availability", self._refuse)
        if name == schema.probability:
            return shares(table, name, self._refuse)
        return numbers(table, name, _LEVELS.format(name=name) if covariate else "", self._refuse)

    def _refuse(self, row: int, problem: str) -> None:
        self._leave(row, f"user {self.names[row]!r}: {problem}")

    def _leave(self, row: int, problem: str) -> None:
        if not self.skip_refused:
            raise DataError(problem)
        self.refused.setdefault(self.names[row], problem)

    def _leave_out(self) -> None:
        """Keep no row of a user who is refused."""
        if self.refused:
            self.kept &= np.array([name not in self.refused for name in self.names])

    def _settle(self, name: str, gaps: Mask) -> None:
        if not gaps.any():
            return
        policy = self.schema.policy(name)
        if policy == "error":
            for row in np.flatnonzero(gaps).tolist():
                problem = (
                    f"column {name!r} of {self.table.source} is missing in {self.table.place(row)}, user "
                    f"{self.names[row]!r}, and in {int(gaps.sum())} rows altogether; say what to do with "
                    f"missing={{{name!r}: 'drop'}}, or on the command line with --missing drop"
                )
                self._leave(row, problem)
            return
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
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            rows.setdefault(name, []).append(row)
        users = []
        for name, places in rows.items():
            every = np.array(places, dtype=np.int64)
            every = every[np.argsort(self.order[every], kind="stable")]
            users.append((name, every[self.kept[every]], every))
        return users

    def users(self) -> tuple[tuple[User, ...], IntakeReport]:
        schema = self.schema
        column = schema.batching.column
        batches = None if column is None else labels(self.table, column, "batch column")
        X = self.stacked(schema.covariates)
        users: list[User] = []
        repeated: dict[str, int] = {}
        unsorted: list[str] = []
        empty: list[str] = []
        for name, index, every in self.by_user():
            if name in self.refused:
                continue
            ties = int(np.sum(self.order[every][1:] == self.order[every][:-1]))
            if ties:
                repeated[name] = ties
            if np.any(np.diff(every) < 0):
                unsorted.append(name)
            if not len(index):
                empty.append(name)
                continue
            marks = None if batches is None else [batches[row] for row in every]
            try:
                ends = schema.batching.cut(name, self.kept[every].tolist(), marks)
            except DataError as problem:
                if not self.skip_refused:
                    raise
                self.refused[name] = str(problem)
                continue
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
        report = IntakeReport(
            rows_read=self.table.rows,
            rows_kept=sum(user.rows for user in users),
            dropped=self.dropped,
            filled=self.filled,
            unavailable=self.unavailable,
            repeated=repeated,
            unsorted=tuple(unsorted),
            empty=tuple(empty),
            refused=self.refused,
        )
        if not users:
            raise DataError(f"no row of {self.table.source} is left:\n{report}")
        return tuple(users), report

    def _optional(self, name: str | None, index: NDArray[np.int64]) -> Array | None:
        return None if name is None else self.values[name][index]


def _counted(by_user: Mapping[str, int]) -> str:
    worst = sorted(by_user.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {count}" for name, count in worst[:5])
    more = f", {len(worst) - 5} users more" if len(worst) > 5 else ""
    total = sum(by_user.values())
    return f"{total} {'row' if total == 1 else 'rows'} ({shown}{more})"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

"""From a table to users in data units: sorted, cut into batches, and with a report of what was dropped or filled.

Nothing is dropped in silence. A cell that cannot be used is an error that names column, row and user; or its user is
left out and listed in the report, so that one bad cell does not keep everybody else out. Where a model is applied and
rows without a level are dropped, a row with a level that the model does not know is dropped alone, and listed too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.assignment import Mask, certain, impossible, never_drawn
from kerneltrail.data.columns import coded, flags, labels, numbers, order_values, shares, text_of, usual_order
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.intake_report import IntakeReport, UnknownLevel, row_count
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import Table, read_table
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array

_LEVELS = "; if it has levels, declare them: categorical={{{name!r}: [...]}}, on the command line --levels {name}=a,b"


@dataclass(frozen=True)
class UnlabelledRows:
    """One user's rows for which a prediction is wanted: a table that needs no target.

    Attributes:
        name: the user's name.
        X: covariates in data units, shape (n, d), in time order.
        rows: for each of them its row in the table, counted from 0.
        order: the order values.
        action, availability, probability, y: what the table already says of them and of the target, (n,), NaN in single
            rows where it does not; None where it has no such column.
    """

    name: str
    X: Array
    rows: NDArray[np.int64]
    order: NDArray[Any]
    action: Array | None = None
    availability: Array | None = None
    probability: Array | None = None
    y: Array | None = None


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of a table that a schema names, before any row is dropped for a missing value or any is filled.

    Attributes:
        values: by column, NaN where a value is missing; levels as codes.
        order: order values.
        by_user: every user's rows in time order, counted from 0.
        wanted: rows of users who can be read, at which they were available if only those are asked for.
        idle: by column, rows with nothing in the table, taken as 0 because nobody could act.
    """

    values: Mapping[str, Array]
    order: NDArray[Any]
    by_user: Mapping[str, NDArray[np.int64]]
    wanted: Mask
    idle: Mapping[str, Mask]


def dropping_levels(schema: Schema) -> frozenset[str]:
    """Columns of which a row with a level that nobody declared can be left out, as one without any level is."""
    return frozenset(name for name in schema.levels if schema.policy(name) == "drop")


def read_columns(schema: Schema, rows: Any, *, drop_levels: Collection[str] = ()) -> TableColumns:
    """The columns of a table; a user with a cell that cannot be used is not wanted."""
    lenient = replace(schema, missing=dict.fromkeys(schema.values, "drop"))
    intake = _Intake(lenient, _table(schema, rows), schema.values, skip_refused=True, drop_levels=drop_levels)
    by_user = {name: every for name, _, every in intake.by_user()}
    return TableColumns(intake.values, intake.order, by_user, intake.wanted, intake.idle)


def read_users(
    schema: Schema, rows: Any, *, skip_refused: bool = False, drop_levels: Collection[str] = ()
) -> tuple[tuple[User, ...], IntakeReport]:
    """The users of a table, in data units and in order of appearance, and what happened on the way.

    In columns of `drop_levels` a level that is not declared costs its row alone; elsewhere it cannot be used.
    """
    return _Intake(schema, _table(schema, rows), schema.values, skip_refused, drop_levels=drop_levels).users()


def with_outcomes(schema: Schema, rows: Any) -> Table:
    """A table that users are followed on; one without outcomes is a table of rows to predict, and refused as that."""
    table = _table(schema, rows)
    # Before there is a scaler the table is the first one; another table altogether is for its reader to refuse.
    if schema.scaler is None or schema.user not in table:
        return table
    if schema.target in table and any(value is not None for value in table.column(schema.target)):
        return table
    lack = "no outcome in its column" if schema.target in table else "no column"
    raise DataError(
        f"{table.source} has {lack} {schema.target!r}, so nobody can be followed on it: its rows are yet to be "
        f"predicted. `kerneltrail predict MODEL --rows {table.source} --out FILE` predicts them (in Python: "
        "kerneltrail.evaluation.forecast). If the outcome is in a column of another name, rename that column"
    )


def read_unlabelled(
    schema: Schema, rows: Any, *, skip_refused: bool = False
) -> tuple[tuple[UnlabelledRows, ...], IntakeReport]:
    """Rows to predict, whose target is not known yet, by user and in data units; and what happened on the way.

    Only covariates have to be there. An action, its probability, availability and even the target are taken along where
    the table has them; a gap in one of these drops no row.
    """
    table = _table(schema, rows)
    lacking = [name for name in schema.covariates if name not in table]
    if len(lacking) > 1:
        raise DataError(
            f"{table.source} has no columns {', '.join(map(repr, lacking))}, which the model predicts from; it has "
            f"{', '.join(table.names)}"
        )
    optional = tuple(name for name in schema.values if name not in schema.covariates and name in table)
    drop_levels = dropping_levels(schema) if skip_refused else ()
    return _Intake(schema, table, schema.covariates + optional, skip_refused, optional, drop_levels).unlabelled()


def _table(schema: Schema, rows: Any) -> Table:
    return read_table(rows, delimiter=schema.delimiter, decimal=schema.decimal)


class _Intake:
    """One pass over a table: `values` are the columns that matter, `kept` the rows that stay.

    Gaps in columns that are `optional` stay gaps.
    """

    def __init__(
        self,
        schema: Schema,
        table: Table,
        wanted: tuple[str, ...],
        skip_refused: bool = False,
        optional: tuple[str, ...] = (),
        drop_levels: Collection[str] = (),
    ) -> None:
        self.schema, self.table, self.skip_refused = schema, table, skip_refused
        taken = schema.roles  # what has a role already is no other column misspelt
        for name in (schema.user, schema.order, *wanted):
            table.column(name, taken)
        self.names = labels(table, schema.user, "user column")
        self.refused: dict[str, str] = {}
        self.order = self._order()
        self.drop_levels, self.strange = drop_levels, dict[str, list[int]]()
        covariates = set(schema.covariates)
        self.values = {name: self._column(name, name in covariates) for name in wanted}
        self.kept: Mask = np.ones(table.rows, dtype=np.bool_)
        self._leave_out()
        self.unavailable: dict[str, int] = {}
        self.dropped: dict[str, dict[str, int]] = {}
        self.filled: dict[str, dict[str, int]] = {}
        self.idle: dict[str, Mask] = {}
        # Unavailable rows go first: what is missing in a row that is not wanted is nobody's error.
        if schema.available_only and schema.availability in self.values:
            away = (self.values[schema.availability] == 0.0) & self.kept
            self.unavailable = self._count(away)
            self.kept &= ~away
        self.unknown = self._drop_unknown()
        self._fill_where_nobody_could_act()
        self.wanted = self.kept.copy()
        for name in wanted:
            if name not in optional:
                self._settle(name, np.isnan(self.values[name]) & self.wanted)
        self._leave_out()

    def _order(self) -> NDArray[Any]:
        """What orders the rows; who has a cell that is unlike those of others is refused, unless nobody were left."""
        table, schema = self.table, self.schema
        try:
            return order_values(table, schema.order, schema.time_format)
        except DataError:
            if not self.skip_refused:
                raise
            order = usual_order(table, schema.order, schema.time_format, self._refuse)
            if order is None or len(self.refused) == len(set(self.names)):
                raise
            return order

    def _drop_unknown(self) -> tuple[UnknownLevel, ...]:
        """Leave out rows with a level that nobody declared, by column and level."""
        together: dict[tuple[str, str], list[int]] = {}
        for name, rows in self.strange.items():
            for row in rows:
                if self.kept[row]:
                    together.setdefault((name, text_of(self.table.column(name)[row])), []).append(row)
        unknown = []
        for (name, value), rows in together.items():
            gone = np.zeros(self.table.rows, dtype=np.bool_)
            gone[rows] = True
            numbers = tuple(row + 1 for row in rows)
            unknown.append(UnknownLevel(name, value, self.schema.levels[name], numbers, FrozenDict(self._count(gone))))
            self.kept &= ~gone
        return tuple(unknown)

    def _fill_where_nobody_could_act(self) -> None:
        """No action was drawn there, so neither it nor its probability can be missing: both are 0."""
        schema = self.schema
        if schema.availability not in self.values:
            return
        available = self.values[schema.availability]
        for name in (schema.action, schema.probability):
            if name is not None and name in self.values and name not in schema.covariates:
                gaps = never_drawn(self.values[name], available) & self.kept
                if gaps.any():
                    self.idle[name] = gaps
                    self.values[name][gaps] = 0.0

    def _column(self, name: str, covariate: bool) -> Array:
        schema, table = self.schema, self.table
        if name in schema.levels:
            strange = self.strange.setdefault(name, [])
            refuse = (lambda row, _: strange.append(row)) if name in self.drop_levels else self._refuse
            return coded(table, name, schema.levels[name], refuse)
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
                    f"{self.names[row]!r}, and in {row_count(int(gaps.sum()))} altogether; say what to do with "
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

    def unlabelled(self) -> tuple[tuple[UnlabelledRows, ...], IntakeReport]:
        schema = self.schema
        X = self.stacked(schema.covariates)
        rows = [
            UnlabelledRows(
                name,
                X[index],
                index,
                self.order[index],
                action=self._optional(schema.action, index),
                availability=self._optional(schema.availability, index),
                probability=self._optional(schema.probability, index),
                y=self._optional(schema.target, index),
            )
            for name, index, _ in self.by_user()
            if len(index)
        ]
        empty = tuple(name for name, index, _ in self.by_user() if not len(index) and name not in self.refused)
        report = self._report(sum(len(each.rows) for each in rows), empty=empty)
        return tuple(rows), self._not_empty(report)

    def users(self) -> tuple[tuple[User, ...], IntakeReport]:
        schema = self.schema
        column = schema.batching.column
        if column is not None:
            self.table.column(column, schema.roles)
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
                    index=index,
                )
            )
        report = self._report(
            sum(user.rows for user in users),
            repeated=repeated,
            unsorted=tuple(unsorted),
            certain={user.name: rows for user in users if (rows := _certain(user))},
            impossible={user.name: rows for user in users if (rows := _impossible(user))},
            empty=tuple(empty),
        )
        return tuple(users), self._not_empty(report)

    def _report(self, kept: int, **more: Any) -> IntakeReport:
        return IntakeReport(
            rows_read=self.table.rows,
            rows_kept=kept,
            dropped=self.dropped,
            filled=self.filled,
            idle={name: self._count(gaps) for name, gaps in self.idle.items()},
            unavailable=self.unavailable,
            refused=self.refused,
            unknown=self.unknown,
            **more,
        )

    def _not_empty(self, report: IntakeReport) -> IntakeReport:
        if not report.rows_kept:
            raise DataError(f"no row of {self.table.source} is left:\n{report}")
        return report

    def _optional(self, name: str | None, index: NDArray[np.int64]) -> Array | None:
        return None if name is None or name not in self.values else self.values[name][index]


def _certain(user: User) -> int:
    """Rows at which the user was available, but the action was certain."""
    if user.probability is None:
        return 0
    return int(np.sum(certain(user.probability, user.availability)))


def _impossible(user: User) -> int:
    """Rows with an action although the user was not available."""
    if user.action is None or user.availability is None:
        return 0
    return int(np.sum(impossible(user.action, user.availability)))

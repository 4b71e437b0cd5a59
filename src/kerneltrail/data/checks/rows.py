"""Rows of all users as columns, with where each row stands in the table: what the checks look at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.intake import UnlabelledRows, read_columns
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import Table
from kerneltrail.data.user import User
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing

Index = NDArray[np.int64]
_SHOWN = 4
"""No more rows or users are named in a sentence."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns over the rows that are wanted: those of users who can be read, and at which they were available.

    Attributes:
        values: by column, with NaN where a value is missing; levels as codes.
        groups: each user's rows in time order, as places in the columns.
        numbers: of each row, in the table, counted from 1.
        order: order values, or None where users have none, or of several kinds.
        table: where the rows come from, or None for users who were made otherwise.
        idle: by column, which of them are empty in the table, and 0 here because nobody could act.
    """

    values: Mapping[str, Array]
    groups: Mapping[str, Index]
    numbers: Index
    order: NDArray[np.generic] | None
    table: Table | None = None
    idle: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def from_table(cls, schema: Schema, table: Table, *, drop_levels: Collection[str] = ()) -> Rows:
        """The rows of a table; as in `read_users`, those with an unknown level in some columns are not wanted."""
        columns = read_columns(schema, table, drop_levels=drop_levels)
        wanted = np.flatnonzero(columns.wanted)
        position = {int(row): i for i, row in enumerate(wanted)}
        groups = {
            name: np.array([position[int(row)] for row in rows if int(row) in position], np.int64)
            for name, rows in columns.by_user.items()
        }
        return cls(
            {name: values[wanted] for name, values in columns.values.items()},
            {name: rows for name, rows in groups.items() if len(rows)},
            wanted + 1,
            columns.order[wanted],
            table,
            {name: gaps[wanted] for name, gaps in columns.idle.items()},
        )

    @classmethod
    def from_users(cls, schema: Schema, users: Sequence[User]) -> Rows:
        """The rows of users, one user's below another's."""
        ends = np.cumsum([0, *(user.rows for user in users)])
        values = {name: np.concatenate([user.X[:, i] for user in users]) for i, name in enumerate(schema.covariates)}
        values[schema.target] = np.concatenate([user.y for user in users])
        for name, label in ((schema.action, "action"), (schema.availability, "availability"),
                            (schema.probability, "probability")):  # fmt: skip
            if name is not None and name not in values:
                held = [getattr(user, label) for user in users]
                values[name] = np.concatenate(
                    [
                        np.full(user.rows, np.nan) if column is None else column
                        for user, column in zip(users, held, strict=True)
                    ]
                )
        orders = [user.order for user in users if user.order is not None]
        alike = (
            len(orders) == len(users)
            and len({"n" if order.dtype.kind in "iuf" else order.dtype.kind for order in orders}) == 1
        )
        return cls(
            values,
            {user.name: np.arange(a, b) for user, a, b in zip(users, ends[:-1], ends[1:], strict=True) if b > a},
            np.arange(1, int(ends[-1]) + 1),
            np.concatenate(orders) if alike else None,
        )

    @classmethod
    def from_unlabelled(cls, schema: Schema, users: Sequence[UnlabelledRows]) -> Rows:
        """Rows to predict, of which covariates are known and perhaps the target, with their numbers in the table."""
        ends = np.cumsum([0, *(len(each.rows) for each in users)])
        values = {name: np.concatenate([each.X[:, i] for each in users]) for i, name in enumerate(schema.covariates)}
        outcomes = [np.full(len(each.rows), np.nan) if each.y is None else each.y for each in users]
        return cls(
            {**values, schema.target: np.concatenate(outcomes)},
            {each.name: np.arange(a, b) for each, a, b in zip(users, ends[:-1], ends[1:], strict=True)},
            np.concatenate([each.rows for each in users]) + 1,
            None,
        )

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.numbers)

    def numbered(self, places: Iterable[int]) -> tuple[int, ...]:
        """Numbers of rows in the table."""
        return tuple(sorted(int(self.numbers[i]) for i in places))

    def where(self, places: Iterable[int]) -> str:
        """Rows in a sentence: ``row 3 (line 4)``, ``rows 3, 7, 9 and 12 more``, ``row 3 of user 'ann'``."""
        numbers = self.numbered(places)
        more = len(numbers) - _SHOWN
        if self.table is None:
            shown = [self._within(number) for number in numbers[:_SHOWN]]
            return listing([*shown, f"{more} more rows"] if more > 0 else shown)
        if len(numbers) == 1:
            return self.table.place(numbers[0] - 1)
        return f"rows {listing([*map(str, numbers[:_SHOWN]), *([f'{more} more'] if more > 0 else [])])}"

    def _within(self, number: int) -> str:
        for name, rows in self.groups.items():
            if rows[0] < number <= rows[-1] + 1:
                return f"row {number - rows[0]} of user {name!r}"
        raise AssertionError  # every row is a user's

    def users_of(self, places: Iterable[int]) -> tuple[str, ...]:
        """Whose rows they are, in the order of users."""
        wanted = np.zeros(self.count, dtype=np.bool_)
        wanted[list(places)] = True
        return tuple(name for name, rows in self.groups.items() if wanted[rows].any())


def who(names: Sequence[str]) -> str:
    """Users in a sentence.

    >>> who(["ann"]), who(["ann", "bob"]), who(list("abcdef"))
    ("user 'ann'", "users 'ann' and 'bob'", "users 'a', 'b', 'c', 'd' and 2 more")
    """
    if len(names) == 1:
        return f"user {names[0]!r}"
    more = len(names) - _SHOWN
    return f"users {listing([*map(repr, names[:_SHOWN]), *([f'{more} more'] if more > 0 else [])])}"

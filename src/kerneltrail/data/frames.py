"""Rows that a caller hands over one batch at a time: a frame is read by its columns' names, an array by their order.

What comes back can be a frame of the caller's kind, with the caller's index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import lazy_loader
import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.arrays import read_numbers, real_numbers
from kerneltrail.data.assignment import Assigned, Assignment, settled
from kerneltrail.data.columns import coded, flags, numbers, shares, text_of
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import Table, frame_table
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import shortened

nw = lazy_loader.load("narwhals")
UNNAMED = "new"
"""What somebody is called who was given no name."""
LEAVE_OUT = "leave those rows out"
FILL_IN = f"{LEAVE_OUT}, or fill them in"
"""What to do about missing values: outcomes that nobody saw cannot be filled in."""
KINDS = ("pandas", "polars", "pyarrow")
"""Libraries of frames; the first that is installed is used where a caller had none."""


@dataclass(frozen=True)
class NamedRows:
    """Rows that were given by name.

    Attributes:
        table: their columns.
        given: the caller's frame or dict itself; None for a `Table`, which is no caller's kind.
    """

    table: Table
    given: Any

    @classmethod
    def read(cls, rows: Any) -> NamedRows | None:
        """Rows with names: a frame of any library that narwhals knows, a dict of columns, or a dict that is one row.

        None for an array or a list, which has no names.
        """
        if isinstance(rows, np.ndarray | list | tuple):
            return None
        table = frame_table(rows)
        return None if table is None else cls(table, None if table is rows else rows)

    def covariates(self, names: Sequence[str], schema: Schema | None = None) -> Array:
        """The covariates in the order of `names`, (m, d); one that is not there is refused, others are left aside."""
        levels = {} if schema is None else schema.levels
        taken = () if schema is None else schema.roles
        columns = []
        for name in names:
            self.table.column(name, taken)
            column = coded(self.table, name, levels[name]) if name in levels else numbers(self.table, name)
            columns.append(self._without_gaps(name, column, schema))
        return np.column_stack(columns) if columns else np.empty((self.table.rows, 0))

    def user_of(self, column: str, name: str, asked: str = "an update") -> str:
        """The user's name, or that of the rows for who was given none. A cell without a name, blanks too, says none.

        Raises:
            DataError: for rows that say they are somebody else's, or several people's.
        """
        if column not in self.table:
            return name
        whose: dict[str, int] = {}
        for i, user in enumerate(self.table.column(column)):
            if user is not None and (named := text_of(user)):
                whose.setdefault(named, i)
        if len(whose) > 1:
            raise DataError(
                f"user {name!r}: the rows are of several users ({column} is {shortened(list(whose))}); {asked} takes "
                f"one user's{', `update_many` those of many' if asked == 'an update' else ''}"
            )
        for other, i in whose.items():
            if name == UNNAMED:
                return other
            if other != text_of(name):
                raise DataError(f"user {name!r}: {self.table.place(i)} is {other}'s, by its column {column!r}")
        return name

    def target(self, name: str) -> Array:
        """The column of outcomes."""
        return self._without_gaps(name, numbers(self.table, name), None, LEAVE_OUT)

    def availability(self, schema: Schema) -> Array | None:
        """Whether somebody could act, 0 or 1; None if that column is not named or not there, as of the next two."""
        return self._flags(schema.availability, "availability", None)

    def action(self, schema: Schema, available: Any) -> Array | None:
        """The action, 0 or 1. Where nobody was `available` a missing one is 0."""
        return self._flags(schema.action, "action", available, self._drawn_advice(schema, available))

    def probability(self, schema: Schema, available: Any) -> Array | None:
        """With which the action was drawn. Where nobody was `available` a missing one is 0."""
        name = schema.probability
        if name is None or name not in self.table:
            return None
        return self._drawn(name, shares(self.table, name), available, self._drawn_advice(schema, available))

    def assigned(self, schema: Schema, given: Assigned) -> Assigned:
        """Action, its probability and availability as they were given, else as the columns say."""
        action, probability, available = given
        if isinstance(action, Assignment):  # it says all that is known
            return given
        available = self.availability(schema) if available is None else available  # first: the others go by it
        action = self.action(schema, available) if action is None else action
        return action, self.probability(schema, available) if probability is None else probability, available

    def _drawn_advice(self, schema: Schema, available: Any) -> str:
        """What to do about rows without an action or its probability."""
        if available is not None or schema.availability is None:
            return FILL_IN
        return f"{LEAVE_OUT}, or give the column {schema.availability!r}, which says where nobody could act"

    def _flags(self, name: str | None, what: str, available: Any, advice: str = FILL_IN) -> Array | None:
        if name is None or name not in self.table:
            return None
        return self._drawn(name, flags(self.table, name, what), available, advice)

    def _drawn(self, name: str, column: Array, available: Any, advice: str) -> Array:
        could = None if available is None else np.atleast_1d(real_numbers(available, "the availability"))
        return self._without_gaps(name, settled(column, could), None, advice)

    def _without_gaps(self, name: str, column: Array, schema: Schema | None, advice: str = FILL_IN) -> Array:
        gaps = np.flatnonzero(np.isnan(column))
        if not len(gaps):
            return column
        policy = "error" if schema is None else schema.policy(name)
        if policy in ("error", "drop") or schema is None:
            of = f"{self.table.rows} rows" if self.table.taken is None else f"the user's {self.table.rows} rows"
            raise DataError(
                f"column {name!r} is missing in {self.table.place(int(gaps[0]))}, and in {len(gaps)} of {of} "
                f"altogether; {advice}"
            )
        column = column.copy()
        column[gaps] = schema.levels[name].index(str(policy)) if name in schema.levels else float(policy)
        return column


def read_rows(
    X: Any, names: Sequence[str], schema: Schema | None, updated: str | None = None
) -> tuple[NamedRows | None, Array]:
    """The columns that rows came with if they had names, and the covariates in data units, (m, d).

    Args:
        X: a frame, a dict of columns, or an array in the order of `names`.
        names: the covariates'.
        schema: how the columns are read, where that is known.
        updated: the user whom the rows update, for which there have to be some; None where they do not.
    """
    named = NamedRows.read(X)
    if named is None:
        rows = positional_rows(X, names)
        _check_some(rows.size, updated)
        return None, rows
    _check_some(named.table.rows, updated)  # first: a frame without rows may have no columns either
    return named, named.covariates(names, schema)


def _check_some(count: int, updated: str | None) -> None:
    if updated is not None and not count:
        raise DataError(f"user {updated!r}: no rows were given; an update needs at least one")


def check_same_index(X: Any, y: Any) -> None:
    """Refuse rows and outcomes of pandas whose indices differ: side by side they would be matched wrongly."""
    one, other = getattr(X, "index", None), getattr(y, "index", None)
    if one is None or other is None or callable(one) or callable(other):
        return
    if len(one) == len(other) and not one.equals(other):
        raise DataError("the rows and the outcomes have different indices; give both in the same order")


def positional_rows(X: Any, names: Sequence[str]) -> Array:
    """An array's rows, (m, d), in the order of `names`; a wrong number of columns is refused."""
    rows = np.array(read_numbers(X, "rows", names), ndmin=2)
    if rows.ndim != 2 or (rows.size and rows.shape[1] != len(names)):
        raise DataError(
            f"rows without names need {len(names)} columns, in the order {', '.join(names)}; got shape {rows.shape}. A "
            "frame, or a dict of columns, is matched by name"
        )
    return rows


def frame_like(given: Any, columns: Mapping[str, Any], rows: NDArray[np.int64] | None = None) -> Any:
    """Columns as a frame of the kind of `given`, with its index; of the first library installed if that is None.

    `rows` says of which rows of `given` they are; of all, in their order, if it is None.
    """
    if isinstance(given, Mapping):
        return {name: v.tolist() if isinstance(v, np.ndarray) else list(v) for name, v in columns.items()}
    index = None
    if given is None:
        kind = next((name for name in KINDS if find_spec(name) is not None), None)
        if kind is None:
            raise DataError("a frame needs pandas, polars or pyarrow: pip install 'kerneltrail[tables]'")
        backend: Any = kind
    else:
        backend = nw.get_native_namespace(given)
        index = getattr(given, "index", None)
    frame = nw.from_dict(dict(columns), backend=backend).to_native()
    if index is not None and not callable(index):
        index = index if rows is None else index[rows]
        if len(index) == len(frame):
            frame.index = index
    return frame

"""Columns of a table as numbers, levels, names and times; what does not fit is refused by column, row and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.arrays import LARGEST
from kerneltrail.data.table import Table
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import nearest

Refusal = Callable[[int, str], None]
"""Told of a cell that cannot be used: its row, and what is wrong with it. It raises, or takes note."""

_WHOLE = re.compile(r"(-?\d+)\.0+")
_TRUTH = {"true": 1.0, "false": 0.0}


def text_of(value: Any) -> str:
    """A value as a name: 3.0 is 3, as number and as text, since a missing cell elsewhere turns a column's 3 into 3.0.

    >>> text_of(3.0), text_of("3.0"), text_of(" ann "), text_of(True)
    ('3', '3', 'ann', 'True')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def refused(row: int, problem: str) -> None:
    """Raise an error for a cell that cannot be used: the rule where no list of such cells is kept."""
    raise DataError(problem)


def numbers(table: Table, name: str, hint: str = "", refuse: Refusal = refused) -> Array:
    """A column as float64, NaN where a value is missing or refused. True and false are 1 and 0.

    Infinities are refused, and numbers beyond `LARGEST`.
    """
    values = table.column(name)
    try:
        column = np.array(values, dtype=np.float64)
        if column.ndim != 1:  # every cell is itself a list
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        column = np.array([_number(table, name, row, value, hint, refuse) for row, value in enumerate(values)])
    for row in np.flatnonzero(np.abs(column) > LARGEST):
        size = "infinite" if np.isinf(column[row]) else f"{column[row]:g}"
        more = "" if size == "infinite" else f"; numbers up to {LARGEST:g} can be used"
        refuse(int(row), f"column {name!r} of {table.source} is {size} in {table.place(int(row))}{more}")
        column[row] = np.nan
    return column


def _number(table: Table, name: str, row: int, value: Any, hint: str, refuse: Refusal) -> float:
    if value is None:
        return np.nan
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    try:
        if not isinstance(value, date):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    refuse(row, f"column {name!r} of {table.source} is {_shown(value)} in {table.place(row)}, not a number{hint}")
    return np.nan


def coded(table: Table, name: str, levels: Sequence[str], refuse: Refusal = refused) -> Array:
    """A categorical column as the position of each value among its declared levels, NaN where it is missing."""
    codes = {level: float(code) for code, level in enumerate(levels)}
    column = np.full(table.rows, np.nan)
    for row, value in enumerate(table.column(name)):
        if value is None:
            continue
        column[row] = codes.get(text_of(value), np.nan)
        if np.isnan(column[row]):
            refuse(
                row,
                f"column {name!r} of {table.source} is {_shown(value)} in {table.place(row)}, which is not one of its "
                f"levels; {nearest(text_of(value), levels, 'they are')}",
            )
    return column


def flags(table: Table, name: str, what: str, refuse: Refusal = refused) -> Array:
    """A column of zeros and ones, NaN where it is missing or refused."""
    column = numbers(table, name, refuse=refuse)
    allowed = np.isnan(column) | (column == 0.0) | (column == 1.0)
    return _only(column, allowed, f"{what} {name!r} of {table.source} must be 0 or 1", table, refuse)


def shares(table: Table, name: str, refuse: Refusal = refused) -> Array:
    """A column of probabilities, NaN where it is missing or refused."""
    column = numbers(table, name, refuse=refuse)
    allowed = np.isnan(column) | ((column >= 0.0) & (column <= 1.0))
    return _only(column, allowed, f"probability {name!r} of {table.source} must lie in [0, 1]", table, refuse)


def _only(column: Array, allowed: NDArray[np.bool_], rule: str, table: Table, refuse: Refusal) -> Array:
    for row in np.flatnonzero(~allowed):
        refuse(int(row), f"{rule}, is {column[row]:g} in {table.place(int(row))}")
        column[row] = np.nan
    return column


def labels(table: Table, name: str, what: str) -> list[str]:
    """A column of names (users, batches), none of which may be missing."""
    values = table.column(name)
    for row, value in enumerate(values):
        if value is None or not text_of(value):
            raise DataError(f"{what} {name!r} of {table.source} is missing in {table.place(row)}")
    return [text_of(value) for value in values]


def order_values(table: Table, name: str) -> NDArray[Any]:
    """The column that orders a user's rows: integers, floats, or times at microseconds (zones turned into UTC).

    Texts are read as numbers if all of them are, else as ISO 8601 dates and times.
    """
    values = table.column(name)
    for row, value in enumerate(values):
        if value is None:
            raise DataError(f"order column {name!r} of {table.source} is missing in {table.place(row)}")
    if not any(isinstance(value, date) for value in values):
        try:
            # Integers stay integers: nanoseconds since 1970 do not fit into a float64.
            return np.array(
                [int(value) if isinstance(value, int | str) else _whole(value) for value in values], np.int64
            )
        except (TypeError, ValueError, OverflowError):
            pass
        try:
            column = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if not np.all(np.isfinite(column)):
                row = int(np.flatnonzero(~np.isfinite(column))[0])
                raise DataError(f"order column {name!r} of {table.source} is {column[row]} in {table.place(row)}")
            return column
    return _times(table, name, values)


def _whole(value: Any) -> int:
    if value != int(value):
        raise ValueError
    return int(value)


def _times(table: Table, name: str, values: list[Any]) -> NDArray[Any]:
    times: list[datetime] = []
    zoned: bool | None = None
    for row, value in enumerate(values):
        try:
            time = datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            time = None
        if isinstance(time, date) and not isinstance(time, datetime):
            time = datetime(time.year, time.month, time.day)
        if not isinstance(time, datetime):
            raise DataError(
                f"order column {name!r} of {table.source} is {_shown(value)} in {table.place(row)}; it must hold "
                "numbers throughout, or dates and times written like 2015-07-22 16:31:53"
            )
        if zoned is not None and zoned != (time.tzinfo is not None):
            raise DataError(
                f"order column {name!r} of {table.source}: {table.place(row)} differs from the rows before it in "
                "having a time zone or not, so they cannot be put in order"
            )
        zoned = time.tzinfo is not None
        times.append(time.astimezone(UTC).replace(tzinfo=None) if zoned else time)
    return np.array(times, dtype="datetime64[us]")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def columns_of_numbers(table: Table, roles: Mapping[str, Any]) -> list[str]:
    """All columns of numbers that have no other role (of `Cohort.from_table`'s options), and the categorical ones."""
    categorical = roles.get("categorical") or {}
    named = ("user", "order", "target", "batch_column", "action", "availability", "probability")
    taken = {roles.get(role) for role in named}
    names = [
        name
        for name, values in table.columns.items()
        if name not in taken and (name in categorical or _are_numbers(values))
    ]
    if not names:
        raise DataError(f"{table.source} has no column of numbers left to predict from; name the covariates")
    return names


def _are_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    try:
        return bool(present) and not any(isinstance(value, bool) or float(value) != float(value) for value in present)
    except (TypeError, ValueError):
        return False

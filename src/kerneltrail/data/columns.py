"""Columns of a table as numbers, levels, names and times; what does not fit is refused by column, row and value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.arrays import LARGEST
from kerneltrail.data.marks import COMMA, DECIMALS
from kerneltrail.data.table import Table
from kerneltrail.data.times import EPOCHS, read_time, suggestion
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import nearest

Refusal = Callable[[int, str], None]
"""Told of a cell that cannot be used: its row, and what is wrong with it. It raises, or takes note."""

_WHOLE = re.compile(r"(-?\d+)\.0+")
_TRUTH = {"true": 1.0, "false": 0.0}
_DIGITS = re.compile(r"[+-]?\d+")
_POINT = re.compile(r"[+-]?[\d.]*\.\d+(,\d+)?([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
"""Ways to write numbers: whole, with points, with commas between thousands."""


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


def name_of(value: Any) -> str:
    """What a person is called, as a text: ids are often numbers, such as the keys of a pandas groupby.

    >>> name_of(5), name_of(np.int64(5)), name_of("ann")
    ('5', '5', 'ann')
    """
    missing = value is None or (isinstance(value, float | np.floating) and np.isnan(value))
    name = "" if missing else str(value) if isinstance(value, str) else text_of(value)
    if not name.strip() or isinstance(value, tuple | list | dict | np.ndarray):
        raise DataError(f"a user needs a name: a text or a number, got {value!r}")
    return name


def refused(row: int, problem: str) -> None:
    """Raise an error for a cell that cannot be used: the rule where no list of such cells is kept."""
    raise DataError(problem)


def numbers(table: Table, name: str, hint: str = "", refuse: Refusal = refused) -> Array:
    """A column as float64, NaN where a value is missing or refused. True and false are 1 and 0.

    Infinities are refused, and numbers beyond `LARGEST`.
    """
    values = table.column(name)
    try:
        column = np.array(_pointed_all(table, values), dtype=np.float64)
        if column.ndim != 1:  # every cell is itself a list
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        if commas := decimal_commas(table, name):
            raise DataError(f"column {name!r} of {table.source} {commas}") from None
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
            return float(_pointed(table, value))
    except (TypeError, ValueError, OverflowError):
        pass
    if isinstance(value, str) and (odd := _odd_mark(value.strip(), table.decimal)):
        hint = f"; {odd}"
    refuse(row, f"column {name!r} of {table.source} is {_shown(value)} in {table.place(row)}, not a number{hint}")
    return np.nan


def _pointed(table: Table, value: Any) -> Any:
    """A cell with its decimal comma as a point, where the table has such; one with a point is no number there."""
    if table.decimal == "," and isinstance(value, str):
        if "." in value:
            raise ValueError
        return value.replace(",", ".")
    return value


def _pointed_all(table: Table, values: list[Any]) -> list[Any]:
    return values if table.decimal == "." else [_pointed(table, value) for value in values]


def _odd_mark(text: str, decimal: str) -> str:
    """What is wrong with a number's commas and points; empty if nothing is."""
    if decimal == ",":
        return "with decimal commas a number has no point" if _POINT.fullmatch(text) else ""
    if _THOUSANDS.fullmatch(text):
        return "write it without separators of thousands"
    return "it has a decimal comma, unlike other rows" if COMMA.fullmatch(text) else ""


def decimal_commas(table: Table, name: str) -> str:
    """A sentence on a column all of whose numbers are written with commas though the table has points; else empty.

    One cell that is neither a whole number nor one with a comma, and the column is something else.
    """
    first, surely = None, False
    for row, value in enumerate(table.column(name)):
        if value is None:
            continue
        text = value.strip() if isinstance(value, str) else ""
        if COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text):
            first = row if first is None else first
            surely = surely or not _THOUSANDS.fullmatch(text)
        elif not _DIGITS.fullmatch(text):
            return ""
    if first is None or table.decimal == ",":
        return ""
    shown = f"{_shown(table.column(name)[first])} in {table.place(first)}"
    pointed = next((other for other in table.names if other != name and _has_points(table, other)), None)
    if pointed is not None:
        marks = "decimal commas" if surely else "commas in its numbers"
        return f"has {marks}, {shown}, unlike column {pointed!r}: write its numbers with points, and none for thousands"
    if surely:
        return f"has decimal commas, {shown}: read the table with --decimal , (decimal=',' in Python)"
    return (
        f"has commas in its numbers, {shown}: if they are decimal commas, read the table with --decimal , (decimal=',' "
        "in Python); if they separate thousands, write the numbers without them"
    )


def _has_points(table: Table, name: str) -> bool:
    return any(isinstance(value, str) and DECIMALS.fullmatch(value.strip()) for value in table.column(name)[:200])


def number_or_none(table: Table, value: Any) -> float | None:
    """A cell as a number, or None where it is none; truth values and NaN are none."""
    try:
        number = None if isinstance(value, bool | date) else float(_pointed(table, value))
    except (TypeError, ValueError, OverflowError):
        return None
    return None if number is None or number != number else number


def are_numbers(table: Table, name: str) -> bool:
    """Whether a column holds numbers and nothing else, truth values aside."""
    present = [value for value in table.column(name) if value is not None]
    return bool(present) and all(number_or_none(table, value) is not None for value in present)


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
    column = numbers(table, name, "; write 0 or 1, or true or false", refuse)
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


def order_values(table: Table, name: str, written: str | None = None) -> NDArray[Any]:
    """`order_cells` as an array, with times at microseconds."""
    cells = order_cells(table, name, written)
    return cells if isinstance(cells, np.ndarray) else np.array(cells, dtype="datetime64[us]")


def order_cells(table: Table, name: str, written: str | None = None) -> NDArray[Any] | list[datetime]:
    """The column that orders a user's rows: an array of integers or floats, or times (zones turned into UTC).

    Texts are read by the format in which times are `written`; without one as numbers if all of them are, else as
    ISO 8601 dates and times.
    """
    values = table.column(name)
    if written is None and (times := _iso_times(values)) is not None:
        return times
    for row, value in enumerate(values):
        if value is None:
            raise DataError(f"order column {name!r} of {table.source} is missing in {table.place(row)}")
    if written is None and not any(isinstance(value, date) for value in values):
        try:
            # Integers stay integers: nanoseconds since 1970 do not fit into a float64.
            return np.array(
                [int(value) if isinstance(value, int | str) else _whole(value) for value in values], np.int64
            )
        except (TypeError, ValueError, OverflowError):
            pass
        try:
            column = np.array(_pointed_all(table, values), dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if not np.all(np.isfinite(column)):
                row = int(np.flatnonzero(~np.isfinite(column))[0])
                raise DataError(f"order column {name!r} of {table.source} is {column[row]} in {table.place(row)}")
            return column
    return _times(table, name, values, written)


def usual_order(table: Table, name: str, written: str | None, refuse: Refusal) -> NDArray[Any] | None:
    """The order column as `order_values` reads it, of the cells that are read alike in most rows: numbers or times.

    All others are refused, and have the order of another row in their place. None where no cell can be read.
    """
    values = table.column(name)
    kinds = [_order_kinds(table, value, written) for value in values]
    counts = Counter(kind for each in kinds for kind in each)
    if not counts:
        return None
    usual = counts.most_common(1)[0][0]
    first = next(row for row, each in enumerate(kinds) if usual in each)
    read = list(values)
    for row, each in enumerate(kinds):
        if usual not in each:
            what = "missing" if values[row] is None else _shown(values[row])
            unlike = f", which is not written like {_shown(values[first])} in {table.place(first)}"
            problem = f"order column {name!r} of {table.source} is {what} in {table.place(row)}"
            refuse(row, problem if values[row] is None else problem + unlike)
            read[row] = values[first]
    return order_values(replace(table, columns={name: read}), name, written)


def _order_kinds(table: Table, value: Any, written: str | None) -> tuple[str, ...]:
    """As what a cell of the order column can be read: a number, a time with a zone or one without."""
    number = number_or_none(table, value) if written is None and value is not None else None
    time = read_time(value, written)
    kinds = () if number is None or not np.isfinite(number) else ("number",)
    return kinds if time is None else (*kinds, "time" if time.tzinfo is None else "time in a zone")


def _whole(value: Any) -> int:
    if value != int(value):
        raise ValueError
    return int(value)


def _times(table: Table, name: str, values: list[Any], written: str | None) -> list[datetime]:
    times: list[datetime] = []
    zoned: bool | None = None
    for row, value in enumerate(values):
        time = read_time(value, written)
        if time is None:
            counted = "a number of " + (written or "").removeprefix("epoch-") + " since 1970"
            wanted = counted if written in EPOCHS else f"a time written as {written!r}"
            rule = "it must hold numbers throughout, or dates and times written like 2015-07-22 16:31:53"
            raise DataError(
                f"order column {name!r} of {table.source} is {_shown(value)} in {table.place(row)}"
                f"{f'; {rule}' if written is None else f', not {wanted}'}{suggestion(values)}"
            )
        if zoned is not None and zoned != (time.tzinfo is not None):
            raise DataError(
                f"order column {name!r} of {table.source}: {table.place(row)} differs from the rows before it in "
                "having a time zone or not, so they cannot be put in order"
            )
        zoned = time.tzinfo is not None
        times.append(time.astimezone(UTC).replace(tzinfo=None) if zoned else time)
    return times


def _iso_times(values: list[Any]) -> list[datetime] | None:
    """Texts in ISO 8601 without zones as times; None for anything else. An update must not wait for its times."""
    if not values or not isinstance(values[0], str) or "-" not in values[0]:  # without dashes it may be a number
        return None
    try:
        times = [datetime.fromisoformat(value) for value in values]
    except (TypeError, ValueError):
        return None
    return None if any(time.tzinfo is not None for time in times) else times


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def columns_of_numbers(table: Table, roles: Mapping[str, Any]) -> list[str]:
    """All columns of numbers that have no other role (of `Cohort.from_table`'s options), and the categorical ones."""
    categorical = roles.get("categorical") or {}
    named = ("user", "order", "target", "batch_column", "action", "availability", "probability")
    taken = {roles.get(role) for role in named}
    names = [name for name in table.names if name not in taken and (name in categorical or are_numbers(table, name))]
    if not names:
        for name in (roles[role] for role in ("user", "order", "target") if roles.get(role)):
            table.column(name)  # a misspelt column is more to the point
        raise DataError(f"{table.source} has no column of numbers left to predict from; name the covariates")
    return names

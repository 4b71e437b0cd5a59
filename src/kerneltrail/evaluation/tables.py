"""Rows as tables that other programs open: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kerneltrail.store.validate import plain

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these is run by a spreadsheet as a formula."""


class Row:
    """A dataclass whose instances are rows of tables."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dict(plain(self))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    r"""A CSV file's text; lists are joined by semicolons, what is missing is empty, texts are never formulas.

    >>> csv_text(["user", "change"], [{"user": "=1+1", "change": -0.5}])
    "user,change\n'=1+1,-0.5\n"
    """
    lines = [_line(columns)]
    for row in rows:
        unknown = row.keys() - set(columns)
        if unknown:
            raise ValueError(f"a row has columns that the table has not: {', '.join(sorted(unknown))}")
        lines.append(_line(row.get(name, "") for name in columns))
    return "".join(lines)


def _line(values: Iterable[Any]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(map(_cell, values))  # a cell with either of the two is quoted
    return text.getvalue()[:-2] + "\n"


def _cell(value: Any) -> Any:
    """A value as a cell holds it: an apostrophe makes a spreadsheet take a text for a text."""
    if isinstance(value, list):
        value = ";".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    """Whether a text is only a number: -inf is written as one, and evaluates to itself."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parquet_table(rows: Sequence[Any]) -> bytes:
    """Dataclass instances of one kind as a Parquet file; needs pyarrow.

    Types are those of the fields, so that columns without a value have the same ones in every file.
    """
    columns = {each.name: str(each.type).removesuffix(" | None") for each in fields(rows[0])}
    return parquet_bytes(columns, ({name: getattr(row, name) for name in columns} for row in rows))


def parquet_bytes(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows as a Parquet file; needs pyarrow. What a row does not have is missing.

    Args:
        columns: the type of each, in order: str, int, float, bool or tuple[str, ...].
        rows: values by column.
    """
    import pyarrow
    import pyarrow.parquet

    kinds = {
        "str": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "tuple[str, ...]": pyarrow.list_(pyarrow.string()),
    }
    values: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, column in values.items():
            value = row.get(name)
            column.append(list(value) if isinstance(value, tuple) else value)
    arrays = [pyarrow.array(column, kinds[columns[name]]) for name, column in values.items()]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=list(columns)), buffer)
    return buffer.getvalue()

"""How a text file seems to be written, for advice where it cannot be read: what separates columns, and its decimals."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

MARKS = (";", "\t", "|", ",")
"""What separates columns in files that are met."""

COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
"""A number with a decimal comma."""
DECIMALS = re.compile(r"[+-]?\d+\.\d+")
"""A number with a decimal point."""

_LOOKED_AT = 500
"""So many rows tell how decimals are written."""


def mark_between(names: Sequence[str], wanted: str) -> str | None:
    """What seems to separate columns where a header was split into names among which the wanted one is not found."""
    if len(names) == 1:
        return next((mark for mark in MARKS if mark in names[0]), None)
    return next((mark for mark in MARKS if any(wanted in name.split(mark) for name in names)), None)


def with_delimiter(names: int, mark: str, more: str = "") -> str:
    """Advice to read a table, whose header was split into so many names, with another delimiter."""
    word = "tab" if mark == "\t" else f"'{mark}'"
    how = f"read the table with --delimiter {word}{more} (delimiter= in Python)"
    seen = f"is one name with {mark!r} in it" if names == 1 else f"seems to be separated by {mark!r}"
    return f"its header {seen}: {how}"


def advice(path: Path, delimiter: str) -> str:
    """How a file would rather be read, by its header; empty if nothing splits that into more names."""
    header = next((cells for cells in _rows(path, delimiter)), [])
    line = next((cells[0] for cells in _rows(path, None) if cells[0].strip()), "")
    names = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in MARKS}
    mark = max(MARKS, key=lambda each: names[each])
    if mark == delimiter or names[mark] <= len(header):
        return ""
    return with_delimiter(len(header), mark, " --decimal ," if mark != "," and _has_commas(path, mark) else "")


def _has_commas(path: Path, delimiter: str) -> bool:
    """Whether numbers have decimal commas, and none has a point."""
    cells = [cell.strip() for row in islice(_rows(path, delimiter), _LOOKED_AT) for cell in row]
    return any(map(COMMA.fullmatch, cells)) and not any(map(DECIMALS.fullmatch, cells))


def split_numbers(path: Path, names: int) -> bool:
    """Whether decimal commas seem to split the numbers of a file that has commas between its columns.

    No number has a point then, and most rows have more cells than the header has names.
    """
    rows = list(islice(_rows(path, ","), 1, _LOOKED_AT))
    pointed = any(DECIMALS.fullmatch(cell.strip()) for row in rows for cell in row)
    return not pointed and 2 * sum(len(row) > names for row in rows) > len(rows)


def _rows(path: Path, delimiter: str | None) -> Iterator[list[str]]:
    """Rows that are not empty, as far as they can be read; without a delimiter whole lines."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        try:
            every = ([line] for line in file) if delimiter is None else csv.reader(file, delimiter=delimiter)
            yield from (cells for cells in every if any(cell.strip() for cell in cells))
        except csv.Error:
            return


def not_utf8(path: Path) -> str:
    """Where a file is not in UTF-8, and what to do about it."""
    with path.open("rb") as file:
        number = next((number for number, line in enumerate(file, 1) if not _is_utf8(line)), 1)
    return f"{path.name}, line {number}: letters are not in UTF-8; save it as UTF-8 (a spreadsheet offers 'CSV UTF-8')"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

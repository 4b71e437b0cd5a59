"""Tables of rows from anywhere: pandas, polars, pyarrow, a dict of columns, a CSV or a Parquet file.

Every source ends as lists of plain Python values, read by the same code from there on, so a table means the same
whatever library held it. CSV is always read by Python's own module: no data frame library is needed for it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lazy_loader
import numpy as np

from kerneltrail.data.marks import advice, mark_between, not_utf8, split_numbers, with_delimiter
from kerneltrail.errors import DataError
from kerneltrail.names import nearest, shortened

nw = lazy_loader.load("narwhals")
"""Loaded when somebody hands over something that may be a frame: an app sends numbers by name."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>", "nat"})
"""Cells of a CSV file that mean "no value", in lower case: what pandas, polars and R write."""

_DELIMITERS = {"tab": "\t", "\\t": "\t"}
"""Ways to say a tab on a command line."""


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, each a list of Python values with None for a missing one.

    Attributes:
        columns: values by column name.
        source: how messages call the table, e.g. ``pilot.csv``.
        lines: for a text file, the line on which each row stands.
        decimal: what stands before the decimals of numbers written as texts, a point or a comma.
        taken: of rows `of_one_user` in a longer table, each one's row there, counted from 0.
    """

    columns: Mapping[str, list[Any]]
    source: str = "the table"
    lines: Sequence[int] | None = None
    decimal: str = "."
    taken: Sequence[int] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def column(self, name: str, taken: Collection[str] = ()) -> list[Any]:
        """A column by name; DataError with the nearest name if there is none, but with none of those that are taken."""
        try:
            return self.columns[name]
        except KeyError:
            raise DataError(f"{self.source} has no column {name!r}; {self._hint(name, taken)}") from None

    def _hint(self, name: str, taken: Collection[str]) -> str:
        other = mark_between(self.names, name)
        if other is not None:
            return with_delimiter(len(self.names), other)
        free = [each for each in self.names if each not in taken]
        if len(free) == len(self.names):
            return nearest(name, free)
        others = "columns without another role are"
        return nearest(name, free, others) if free else f"each of its columns has another role: {shortened(self.names)}"

    def place(self, row: int) -> str:
        """Where a row stands, for messages: rows count from 1, lines as an editor shows them."""
        number = row if self.taken is None else self.taken[row]
        return f"row {number + 1}" if self.lines is None else f"row {number + 1} (line {self.lines[row]})"

    def of_one_user(self, rows: Sequence[int], column: str) -> Table:
        """Some rows, which are all one user's, without the column that says so; messages find them in this table."""
        columns = {name: [values[row] for row in rows] for name, values in self.columns.items() if name != column}
        lines = None if self.lines is None else [self.lines[row] for row in rows]
        return replace(self, columns=columns, lines=lines, taken=rows)

    def where(self, keep: Sequence[bool]) -> Table:
        """The rows for which `keep` is true; those of a text file remember their lines."""
        kept = [row for row, flag in enumerate(keep) if flag]
        columns = {name: [values[row] for row in kept] for name, values in self.columns.items()}
        return replace(self, columns=columns, lines=None if self.lines is None else [self.lines[row] for row in kept])


def read_table(rows: Any, *, delimiter: str | None = None, decimal: str | None = None) -> Table:
    """The table that `rows` holds: a data frame, a dict of columns, a path to a CSV or Parquet file, or a Table.

    Args:
        rows: the table.
        delimiter: what separates the columns of a text file, if no comma (in a .tsv file: no tab); ``tab`` is one.
        decimal: ``,`` if numbers that are written as texts have decimal commas.

    Raises:
        DataError: if it cannot be read, has no columns or no rows.
    """
    check_marks(delimiter, decimal)
    table = _read(rows, delimiter)
    if not table.columns:
        raise DataError(f"{table.source} has no columns")
    if not table.rows:
        raise DataError(f"{table.source} has columns {', '.join(table.names)} but no rows")
    return table if decimal is None else replace(table, decimal=decimal)


def frame_table(rows: Any) -> Table | None:
    """The table of a data frame, a dict of columns, or a dict that is one row; None for what has no named columns."""
    if isinstance(rows, Table):
        return rows
    if isinstance(rows, Mapping):
        one = {name: [value] for name, value in rows.items() if np.ndim(value) == 0}
        if one and len(one) < len(rows):
            raise DataError(f"a dict of rows holds columns or is one row; column {next(iter(one))!r} is a single value")
        return _from_mapping(one or rows)
    wrapped = nw.from_native(rows, pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.Series) and all(isinstance(name, str) for name in getattr(rows, "index", (0,))):
        return _from_mapping({name: [value] for name, value in rows.items()})  # a row of a pandas frame
    return _from_frame(rows, "the frame") if isinstance(wrapped, nw.DataFrame | nw.LazyFrame) else None


def delimiter_of(delimiter: str | None, usual: str = ",") -> str:
    """The sign that separates columns: the one given, ``tab`` for a tab, or the usual one."""
    return usual if delimiter is None else _DELIMITERS.get(delimiter, delimiter)


def check_marks(delimiter: str | None, decimal: str | None) -> None:
    """Refuse what cannot separate columns, or the decimals of a number."""
    sign: Any = delimiter_of(delimiter)
    if not isinstance(sign, str) or len(sign) != 1 or sign.isalnum() or sign in '."+-\r\n':
        raise DataError(f"columns can be separated by one sign such as ',', ';', '|' or 'tab', not by {delimiter!r}")
    if decimal not in (None, ".", ","):
        raise DataError(f"the decimals of a number come after '.' or ',', not after {decimal!r}")


def _read(rows: Any, delimiter: str | None) -> Table:
    if isinstance(rows, Table):
        return rows
    if isinstance(rows, str | os.PathLike):
        return _read_file(Path(rows), delimiter)
    if isinstance(rows, Mapping):
        return _from_mapping(rows)
    return _from_frame(rows, "the table")


def _read_file(path: Path, delimiter: str | None) -> Table:
    if not path.is_file():
        raise DataError(f"there is no file {path}" if not path.exists() else f"{path} is not a file")
    suffix = path.suffix.lower()
    if suffix in {".parquet", ".pq"}:
        return _read_parquet(path)
    if suffix in {".csv", ".tsv", ".txt"}:
        return _read_csv(path, delimiter_of(delimiter, "\t" if suffix == ".tsv" else ","))
    raise DataError(f"{path} must be a .csv, .tsv or .parquet file")


def _read_csv(path: Path, delimiter: str) -> Table:
    header: list[str] = []
    columns: list[list[Any]] = []
    lines: list[int] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    if header and len(header) == 1 and cells:  # a missing value in a table of one column
                        columns[0].append(None)
                        lines.append(reader.line_num)
                    continue
                if not header:
                    header = [cell.strip() for cell in cells]
                    columns = [[] for _ in header]
                    continue
                if len(cells) != len(header):
                    wrong = (
                        f"{path.name}, line {reader.line_num}: {len(cells)} cells, but the header names {len(header)}"
                    )
                    raise DataError(f"{wrong}{_cell_hint(path, delimiter, len(cells), len(header))}")
                lines.append(reader.line_num)
                for values, cell in zip(columns, cells, strict=True):
                    text = cell.strip()
                    values.append(None if text.lower() in MISSING else text)
    except UnicodeDecodeError:
        raise DataError(not_utf8(path)) from None
    except csv.Error as problem:
        wrong = f"{path.name}, line {reader.line_num}: cannot be read as text separated by {delimiter!r}, {problem}"
        other = advice(path, delimiter)
        raise DataError(f"{wrong}; {other}" if other else wrong) from None
    except OSError as problem:
        raise DataError(f"{path.name} cannot be read as text: {problem}") from None
    if not header:
        raise DataError(f"{path.name} is empty")
    _once(header, path.name)
    return Table(dict(zip(header, columns, strict=True)), path.name, lines)


def _cell_hint(path: Path, delimiter: str, cells: int, names: int) -> str:
    """What may be the matter with a line of another number of cells than the header has."""
    if other := advice(path, delimiter):
        return f"; {other}"
    if delimiter != "," or cells <= names:
        return ""
    if split_numbers(path, names):
        return (
            "; numbers with decimal commas have to stand in quotes, or the columns have to be separated by semicolons"
        )
    return "; is there a comma in a cell? Such a cell has to stand in quotes"


def _read_parquet(path: Path) -> Table:
    frame: Any
    try:
        import polars

        frame = polars.read_parquet(path)
    except ImportError:
        try:
            import pyarrow.parquet

            frame = pyarrow.parquet.read_table(path)
        except ImportError:
            raise DataError(
                f"reading {path.name} needs polars or pyarrow (pip install 'kerneltrail[tables]'); CSV needs neither"
            ) from None
        except Exception as problem:
            raise DataError(f"{path.name} cannot be read as Parquet: {problem}") from None
    except Exception as problem:  # both libraries raise types of their own
        raise DataError(f"{path.name} cannot be read as Parquet: {problem}") from None
    return _from_frame(frame, path.name)


def _from_mapping(rows: Mapping[Any, Any]) -> Table:
    columns: dict[str, list[Any]] = {}
    for name, values in rows.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise DataError(f"the table's column {name!r} must be a sequence of values, got {type(values).__name__}")
        columns[str(name)] = _plain(values)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"the table's columns differ in length: {shown}")
    return Table(columns)


def _plain(values: Any) -> list[Any]:
    """A sequence as Python values; NumPy times and durations in microseconds: nanoseconds turn into integers."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"a column must have one dimension, got shape {values.shape}")
        if values.dtype.kind in "mM":
            values = values.astype(f"{values.dtype.kind}8[us]")
        values = values.tolist()
    elif hasattr(values, "to_pylist"):
        values = values.to_pylist()
    return [None if _is_missing(value) else _scalar(value) for value in values]


def _scalar(value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{value.dtype.kind}8[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA, whose comparison with itself refuses to be a truth value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def _from_frame(frame: Any, source: str) -> Table:
    try:
        wrapped = nw.from_native(frame, pass_through=True)
        if isinstance(wrapped, nw.LazyFrame):
            wrapped = wrapped.collect()
    except nw.exceptions.NarwhalsError as problem:
        raise DataError(f"{source} cannot be read: {problem}") from None
    if not isinstance(wrapped, nw.DataFrame):
        raise DataError(
            "rows must be a pandas, polars or pyarrow table, a dict of columns, or a path to a CSV or Parquet file, "
            f"got {type(frame).__name__}"
        )
    names = [str(name) for name in wrapped.columns]
    _once(names, source)
    columns = {name: _plain(series.to_list()) for name, series in zip(names, wrapped.iter_columns(), strict=True)}
    return Table(columns, source)


def _once(names: Sequence[str], source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{source} has two columns named {name!r}")
        seen.add(name)

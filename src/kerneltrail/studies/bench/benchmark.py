"""What a benchmark is: sizes, rows of results, and how the rows are shown.

A new benchmark is one class in one file, registered once: ``BENCHMARKS.add("mine", Mine)``. The command
``kerneltrail bench mine`` then runs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kerneltrail.errors import KerneltrailError
from kerneltrail.registry import Registry

Row = dict[str, Any]
Tick = Callable[[str], None]
"""Called before each step, with what comes next."""

KEYS = ("case", "n", "batches", "samples", "method", "seconds", "dpotrf_seconds", "ratio_to_dpotrf")
"""Keys of every row: which kernel, rows, batches, hyperparameter vectors or users, how, seconds for one of them, and
LAPACK's Cholesky factorisation alone of a covariance of that size in the same run. What a benchmark adds of its own
stands beside them; keys that mean nothing for a row are None."""

_WORDS = ("case", "method")
"""Columns of words, which stand to the left."""


def silent(step: str) -> None:
    """A `Tick` for nobody."""


class Benchmark(ABC):
    """A benchmark. Its fields say how large it is; their defaults are the full size.

    Attributes:
        name: as on the command line.
        title: of its table; may hold keys of a row in braces.
        in_all: whether it is part of ``all``; not so if it takes minutes and is about quality or other methods.
        columns: of its table, each with how a row fills it.
        sections: keys; a line is drawn in the table where one of them changes.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    in_all: ClassVar[bool] = True
    columns: ClassVar[Mapping[str, Callable[[Row], str]]] = {}
    sections: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """A smaller version, of a minute at most."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many times `run` calls `tick`."""

    @abstractmethod
    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """Measure; yields rows."""

    @classmethod
    def table(cls, rows: Sequence[Row]) -> Table:
        """The rows for a terminal."""
        table = cls.empty_table(rows, *cls.columns)
        previous = None
        for row in rows:
            section = [row[key] for key in cls.sections]
            if previous not in (None, section):
                table.add_section()
            previous = section
            table.add_row(*(cell(row) for cell in cls.columns.values()), style=cls.style(row))
        return table

    @classmethod
    def tables(cls, rows: Sequence[Row]) -> Iterator[Table]:
        """The rows for a terminal, as one table or several."""
        yield cls.table(rows)

    @classmethod
    def style(cls, row: Row) -> str:
        """Of a row in the table."""
        return ""

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """Paragraphs and tables about the rows, for a document; none by default."""
        return []

    @classmethod
    def empty_table(cls, rows: Sequence[Row], *columns: str) -> Table:
        """A table with the title and these columns."""
        title = cls.title.format(**rows[0])
        table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        for name in columns:
            table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=True)
        return table

    def row(
        self,
        case: str,
        n: int,
        method: str,
        seconds: float,
        *,
        batches: int,
        samples: int,
        dpotrf: float | None = None,
        **others: Any,
    ) -> Row:
        """One row, with the ratio to dpotrf where that was measured."""
        ratio = None if dpotrf is None else seconds / dpotrf
        keys = dict(zip(KEYS, (case, n, batches, samples, method, seconds, dpotrf, ratio), strict=True))
        return {"bench": self.name, **keys, **others}


BENCHMARKS: Registry[type[Benchmark]] = Registry("benchmark", KerneltrailError)
"""All benchmarks by name."""


def text(key: str) -> Callable[[Row], str]:
    """A cell with a value as it is; empty where a row has none."""
    return lambda row: "" if row.get(key) is None else str(row[key])


def number(key: str, form: str = ",") -> Callable[[Row], str]:
    """A cell with a number; empty where a row has none."""
    return lambda row: "" if row.get(key) is None else f"{row[key]:{form}}"


def time(key: str = "seconds") -> Callable[[Row], str]:
    """A cell with a duration."""
    return lambda row: duration(row[key])


GROWTH: Mapping[str, Callable[[Row], str]] = {
    "case": text("case"), "n": number("n"), "batch": text("batch"), "method": text("method"), "seconds": time(),
    "ratio to first n": number("ratio_to_first", ".2f"),
}  # fmt: skip
"""Columns of a benchmark of one more batch: how its time grows with the rows seen before."""


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(4.23e-5), duration(0.0123), duration(2.0)
    ('42.3 µs', '12.3 ms', '2.00 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms"), (1.0, "s")):
        value = seconds * factor
        if value < 999.5 or unit == "s":
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError  # the last unit takes every value


def ratio(value: float) -> str:
    """Two decimals, or more digits where it is small."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"

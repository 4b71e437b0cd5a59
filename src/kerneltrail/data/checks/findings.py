"""What a look at the data says: a summary of every column, and findings that name column, rows and users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kerneltrail.data.frozen_dict import FrozenDict

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first: what cannot be read; what is probably a mistake; what is worth knowing."""

QUANTILES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
"""Of every column: smallest, 1 %, 10 %, median, 90 %, 99 %, largest."""


@dataclass(frozen=True)
class Finding:
    """Something in the data that a person should look at. Nothing is ever changed because of it.

    Attributes:
        severity: ``error`` (a fit would refuse it), ``warning`` (probably a mistake) or ``note`` (worth knowing).
        code: a word for the kind of finding, such as ``sentinel``, for programs.
        columns: the columns, if it is about some.
        users: the users, if it is about some.
        rows: rows of the table, counted from 1; without a table, of the users' rows one below the other.
        message: what was seen, in a sentence.
        advice: what to do.
    """

    severity: Severity
    code: str
    columns: tuple[str, ...]
    users: tuple[str, ...]
    rows: tuple[int, ...]
    message: str
    advice: str = ""


@dataclass(frozen=True)
class Histogram:
    """How many values fall between neighbouring edges.

    Attributes:
        edges: one more than counts.
        counts: of values.
        outside: values outside of all edges, too far from the others to be drawn.
        discrete: whether each bar stands for one whole number.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    outside: int = 0
    discrete: bool = False


@dataclass(frozen=True)
class ColumnSummary:
    """One column in numbers, in data units.

    Attributes:
        name: of the column.
        role: target, covariate, action, availability or probability.
        unit: if one was given.
        users, rows: how many have a value.
        missing: share of rows without one.
        distinct: number of different values.
        quantiles: at `QUANTILES`; empty if there is no value, or if the values are levels.
        levels: rows by level, of a categorical covariate.
        histogram: for a drawing; None if there is nothing to draw.
        pilot: smallest and largest value of the pilot users, where new users are compared with them.
    """

    name: str
    role: str
    unit: str
    users: int
    rows: int
    missing: float
    distinct: int
    quantiles: tuple[float, ...] = ()
    levels: Mapping[str, int] = field(default_factory=FrozenDict)
    histogram: Histogram | None = None
    pilot: tuple[float, float] | None = None


@dataclass(frozen=True)
class TimeSummary:
    """When the rows were that are kept, where the order column tells the time.

    Attributes:
        kind: what the column holds, such as ``times`` or ``seconds since 1970``.
        first, last: as ISO 8601 texts.
        step: median time between a user's neighbouring rows, in seconds; None if nobody has two.
        longest: the longest such time, in seconds; None likewise.
        user: users it is.
    """

    kind: str
    first: str
    last: str
    step: float | None = None
    longest: float | None = None
    user: str = ""

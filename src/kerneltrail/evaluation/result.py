"""The result of an evaluation: a tidy table of steps, what failed, averages over users, and paired differences.

It is written as tidy tables for people and other programs, and as one JSON file that reads back.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kerneltrail.errors import DataError
from kerneltrail.evaluation.follow import METRICS, Failure, Step
from kerneltrail.evaluation.intervals import Interval, over_users
from kerneltrail.evaluation.tables import Row, csv_text, parquet_table
from kerneltrail.names import nearest
from kerneltrail.store.atomic import write
from kerneltrail.store.cache import Format, json_format
from kerneltrail.store.document import read_json
from kerneltrail.store.validate import conform, reading

SCHEMA = 1
"""Version of the JSON file."""

NAME = "evaluation.json"
TABLES = ("steps.csv", "steps.parquet", "summary.csv", "paired.csv", "failures.csv")
"""Files that `Evaluation.save` writes."""


@dataclass(frozen=True)
class Average(Row):
    """The mean of one metric over users, as an `Interval`; `values` are users times runs."""

    method: str
    t: int
    metric: str
    mean: float
    low: float
    high: float
    level: float
    users: int
    values: int


@dataclass(frozen=True)
class Difference(Row):
    """The mean of first - second over the users that both have a value for, as in `Average`."""

    first: str
    second: str
    t: int
    metric: str
    mean: float
    low: float
    high: float
    level: float
    users: int
    values: int

    @property
    def interval(self) -> Interval:
        """The mean with its interval."""
        return Interval(self.mean, self.low, self.high, self.level, self.users)


@dataclass(frozen=True)
class Evaluation:
    """All that was measured.

    Attributes:
        steps: one for each method, user and number of batches seen.
        failures: what raised, and is missing from the steps.
        about: version, machine, and for every run its settings, seed, users and seconds for building each method.
    """

    steps: tuple[Step, ...]
    failures: tuple[Failure, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Labels of the methods that have steps, in order."""
        return tuple(dict.fromkeys(step.method for step in self.steps))

    @property
    def runs(self) -> tuple[str, ...]:
        """Labels of the runs."""
        return tuple(dict.fromkeys(step.run for step in self.steps))

    @property
    def first(self) -> str | None:
        """What differences are taken from unless said otherwise: ``trajectory``, or else the first method."""
        return "trajectory" if "trajectory" in self.methods else next(iter(self.methods), None)

    @cached_property
    def _by_time(self) -> Mapping[tuple[str, int], tuple[Step, ...]]:
        by_time: dict[tuple[str, int], list[Step]] = {}
        for step in self.steps:
            by_time.setdefault((step.method, step.t), []).append(step)
        return {key: tuple(steps) for key, steps in by_time.items()}

    @property
    def times(self) -> tuple[int, ...]:
        """Every t that somebody reached."""
        return tuple(sorted({step.t for step in self.steps}))

    def at(self, method: str, t: int) -> tuple[Step, ...]:
        """The steps of a method after t batches."""
        return self._by_time.get((method, t), ())

    def summary(self, *, level: float = 0.9) -> tuple[Average, ...]:
        """Every metric of every method at every t, averaged over the users who have it; all runs together.

        Users are resampled with all their runs: the same rows in two runs are one person.
        """
        return tuple(
            Average(method, t, metric, **asdict(interval), values=len(values))
            for method in self.methods
            for t in self.times
            for metric, values, interval in _measured(((s, None) for s in self.at(method, t)), level)
        )

    def paired(self, against: str | None = None, *, level: float = 0.9) -> tuple[Difference, ...]:
        """`against` minus every other method, on the same users and runs, for every metric at every t.

        Users whom one of the two has no value for, such as those without a batch t+1, are left out at that t.
        """
        first = self.first if against is None else against
        if first is None:
            return ()
        if first not in self.methods:
            raise DataError(f"no method {first!r} was evaluated; {nearest(first, self.methods)}")
        return tuple(
            Difference(first, second, t, metric, **asdict(interval), values=len(values))
            for second in self.methods
            if second != first
            for t in self.times
            for metric, values, interval in _measured(_pairs(self.at(first, t), self.at(second, t)), level)
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"schema": SCHEMA, "about": self.about, "steps": _rows(self.steps), "failures": _rows(self.failures)}

    @classmethod
    def from_json(cls, stored: Any) -> Evaluation:
        """The evaluation that `to_json` described."""
        conform(stored, {"schema": int}, "it is not an evaluation")
        if stored["schema"] != SCHEMA:
            raise DataError(f"it has schema {stored['schema']}; this version reads {SCHEMA}")
        layout = {"about": dict[str, Any], "steps": list[Any], "failures": list[Failure]}
        conform(stored, layout, "it is not an evaluation")
        return cls(
            tuple(Step.from_json(step) for step in stored["steps"]),
            tuple(Failure(**failure) for failure in stored["failures"]),
            stored["about"],
        )

    def save(self, folder: str | os.PathLike[str], *, against: str | None = None) -> tuple[Path, ...]:
        """Write steps.csv, steps.parquet (with pyarrow), summary.csv, paired.csv, failures.csv and evaluation.json.

        Args:
            folder: made if it is not there; `load_evaluation` reads it back.
            against: the method that differences are taken from; ``trajectory``, or else the first, if None.
        """
        goal = Path(folder)
        content, written = self.to_json(), []
        content |= {"summary": _rows(self.summary()), "paired": _rows(self.paired(against))}
        for name, kind in (("steps", Step), ("summary", Average), ("paired", Difference), ("failures", Failure)):
            columns = [each.name for each in fields(kind)]
            written.append(write(goal / f"{name}.csv", csv_text(columns, content[name])))
        if find_spec("pyarrow") is not None and self.steps:
            written.append(write(goal / "steps.parquet", parquet_table(self.steps)))
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        return (*written, write(goal / NAME, text + "\n"))


def load_evaluation(folder: str | os.PathLike[str]) -> Evaluation:
    """The evaluation that `Evaluation.save` wrote into a folder."""
    path = Path(folder) / NAME
    if not path.is_file():
        raise DataError(f"{path} cannot be read: there is no such file")
    with reading(str(path)):
        return Evaluation.from_json(read_json(path))


EVALUATION: Format[Evaluation] = json_format(Evaluation.to_json, Evaluation.from_json)
"""How the store keeps an evaluation."""


def merged(evaluations: Iterable[Evaluation]) -> Evaluation:
    """Evaluations over other seeds or splits, or of other methods, as one; no method has a run label twice."""
    every = list(evaluations)
    labels = [(run, method) for evaluation in every for run in evaluation.runs for method in evaluation.methods]
    if len(set(labels)) < len(labels):
        runs = ", ".join(repr(run) for evaluation in every for run in evaluation.runs)
        raise DataError(f"evaluations to be joined need a run label each, got {runs}")
    about = dict(every[0].about) if every else {}
    about["runs"] = [run for evaluation in every for run in evaluation.about.get("runs", ())]
    return Evaluation(
        tuple(step for evaluation in every for step in evaluation.steps),
        tuple(failure for evaluation in every for failure in evaluation.failures),
        about,
    )


def _rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [row.to_json() for row in rows]


def _pairs(first: Iterable[Step], second: Iterable[Step]) -> Iterator[tuple[Step, Step]]:
    other = {(step.run, step.user): step for step in second}
    for step in first:
        if (step.run, step.user) in other:
            yield step, other[step.run, step.user]


def _measured(pairs: Iterable[tuple[Step, Step | None]], level: float) -> Iterator[tuple[str, list[float], Interval]]:
    """Metrics that somebody has a value for, of steps or of their differences."""
    every = list(pairs)
    for metric in METRICS:
        values, persons = [], []
        for step, other in every:
            value = step.value(metric) - (0.0 if other is None else other.value(metric))
            if not math.isnan(value):
                values.append(value)
                persons.append(step.person)
        if values:
            yield metric, values, over_users(values, persons, level=level)

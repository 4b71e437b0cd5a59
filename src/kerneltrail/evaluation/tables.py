"""An evaluation as files: tidy tables for people and other programs, and one JSON file that reads back."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

from kerneltrail.errors import DataError
from kerneltrail.evaluation.result import Average, Difference, Evaluation
from kerneltrail.evaluation.steps import REAL, Failure, Step
from kerneltrail.store.atomic import write
from kerneltrail.store.cache import json_format
from kerneltrail.store.document import read_json
from kerneltrail.store.validate import conform, reading

SCHEMA = 1
"""Version of the JSON file."""

NAME = "evaluation.json"


def save(evaluation: Evaluation, folder: str | os.PathLike[str], *, against: str | None = None) -> tuple[Path, ...]:
    """Write steps.csv, steps.parquet (with pyarrow), summary.csv, paired.csv, failures.csv and evaluation.json.

    Args:
        evaluation: what to write.
        folder: made if it is not there.
        against: the method that differences are taken from; ``trajectory``, or else the first, if None.
    """
    goal = Path(folder)
    steps = [step.to_json() for step in evaluation.steps]
    tables: dict[str, tuple[type, list[dict[str, Any]]]] = {
        "steps": (Step, steps),
        "summary": (Average, [row.to_json() for row in evaluation.summary()]),
        "paired": (Difference, [row.to_json() for row in evaluation.paired(against)]),
        "failures": (Failure, [row.to_json() for row in evaluation.failures]),
    }
    written = [
        write(goal / f"{name}.csv", csv_text([field.name for field in fields(kind)], rows))
        for name, (kind, rows) in tables.items()
    ]
    if find_spec("pyarrow") is not None and steps:
        written.append(write(goal / "steps.parquet", _parquet(evaluation.steps)))
    content = {**to_json(evaluation), **{name: rows for name, (_, rows) in tables.items()}}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return (*written, write(goal / NAME, text + "\n"))


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as plain values, `from_json` is the way back."""
    steps, failures = ([row.to_json() for row in rows] for rows in (evaluation.steps, evaluation.failures))
    return {"schema": SCHEMA, "about": evaluation.about, "steps": steps, "failures": failures}


_STEP = {**get_type_hints(Step), **dict.fromkeys(REAL, float | str | None)}


def from_json(stored: Any) -> Evaluation:
    """The evaluation that `to_json` described."""
    conform(stored, {"schema": int}, "it is not an evaluation")
    if stored["schema"] != SCHEMA:
        raise DataError(f"it has schema {stored['schema']}; this version reads {SCHEMA}")
    conform(stored, {"about": dict[str, Any], "steps": list[Any], "failures": list[Failure]}, "it is not an evaluation")
    for number, step in enumerate(stored["steps"]):
        conform(step, _STEP, f"step {number}")
    return Evaluation(
        tuple(Step.from_json(step) for step in stored["steps"]),
        tuple(Failure(**failure) for failure in stored["failures"]),
        stored["about"],
    )


EVALUATION = json_format(to_json, from_json)
"""How the store keeps an evaluation."""


def load_evaluation(folder: str | os.PathLike[str]) -> Evaluation:
    """The evaluation that `save` wrote into a folder."""
    path = Path(folder) / NAME
    if not path.is_file():
        raise DataError(f"{path} cannot be read: there is no such file")
    with reading(str(path)):
        return from_json(read_json(path))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A CSV file's text; lists are joined by semicolons, what is missing is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: ";".join(v) if isinstance(v, list) else v for name, v in row.items()})
    return text.getvalue()


def _parquet(steps: Sequence[Step]) -> bytes:
    """Types are told, so that columns without a value have the same ones in every file."""
    import pyarrow
    import pyarrow.parquet

    kinds = {
        "str": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "tuple[str, ...]": pyarrow.list_(pyarrow.string()),
    }
    columns = [(field.name, kinds[str(field.type).removesuffix(" | None")]) for field in fields(Step)]
    rows = {name: [getattr(step, name) for step in steps] for name, _ in columns}
    arrays = [
        pyarrow.array([list(v) for v in rows[name]] if name == "covariate_names" else rows[name], kind)
        for name, kind in columns
    ]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=[name for name, _ in columns]), buffer)
    return buffer.getvalue()

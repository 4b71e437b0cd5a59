"""Files of the series benchmarks: columns x, y in; results out, one a line, so that a stopped run goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError

Result = TypeVar("Result")


def read_series(path: Path, *, header: bool) -> NDArray[np.float64]:
    """The rows x, y of a CSV file."""
    try:
        rows = np.loadtxt(path, delimiter=",", ndmin=2, skiprows=int(header))
    except OSError:
        raise DataError(f"there is no file {path}, or it cannot be read") from None
    except ValueError as problem:
        raise DataError(f"{path} is not a table of numbers with columns x, y: {problem}") from None
    if rows.shape[1] != 2:
        raise DataError(f"{path} has {rows.shape[1]} columns; expected x, y")
    return rows


def read_results(path: Path, kind: type[Result]) -> list[Result]:
    """Results kept in a file, one a line; lines of other versions, with other fields, are left aside."""
    if not path.exists():
        return []
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [kind(**line) for line in lines if set(line) == names]
    except (ValueError, TypeError) as problem:
        raise DataError(f"{path} is not a file of results, one a line: {problem}") from None


def append_results(path: Path, results: Sequence[Any]) -> None:
    """Append results in one piece: those of one fit belong together."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(asdict(result)) + "\n" for result in results))

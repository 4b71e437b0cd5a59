"""Files of the series benchmarks: columns x, y in; results out, in a log, so that a stopped run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError
from kerneltrail.store.cache import Log
from kerneltrail.store.validate import conform, reading

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
    """Results kept in a log; those of other versions, with other fields, are left aside."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    together = list(Log(path).read())
    with reading(str(path)):
        conform(together, list[list[dict[str, Any]]])
    return [kind(**each) for results in together for each in results if set(each) == names]


def append_results(path: Path, results: Sequence[Any]) -> None:
    """Append results as one line of the log: those of one fit belong together."""
    Log(path).append([asdict(result) for result in results])

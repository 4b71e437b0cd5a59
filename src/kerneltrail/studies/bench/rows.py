"""Rows of results: what a benchmark returns, prints and writes.

The file is ``{"rows": [...], "machine": {...}}``. Every row has the keys of `KEYS`; what a benchmark adds of its own
stands beside them. Keys that mean nothing for a row are null.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kerneltrail.evaluation.machine import machine
from kerneltrail.store.atomic import write

__all__ = ["KEYS", "Row", "machine", "row", "save"]

Row = dict[str, Any]

KEYS = ("case", "n", "batches", "samples", "method", "seconds", "dpotrf_seconds", "ratio_to_dpotrf")
"""Keys of every row: which kernel, rows, batches, hyperparameter vectors or users, how, seconds for one of them, and
LAPACK's Cholesky factorisation alone of a covariance of that size in the same run."""


def row(
    bench: str,
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
    return {"bench": bench, **keys, **others}


def save(path: str | os.PathLike[str], rows: Sequence[Row], about: Mapping[str, Any]) -> Path:
    """Write rows and what they were measured on as JSON."""
    return write(path, json.dumps({"rows": list(rows), "machine": dict(about)}, indent=1, ensure_ascii=False) + "\n")

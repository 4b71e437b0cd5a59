"""Rows of results: what a benchmark returns, prints and writes.

The file is ``{"rows": [...], "machine": {...}}``. Every row has the keys of `KEYS`; what a benchmark adds of its own
stands beside them. Keys that mean nothing for a row are null.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kerneltrail.report.files import write

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


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    from threadpoolctl import threadpool_info

    packages = ("kerneltrail", "numpy", "scipy", "numba", "scikit-learn", "gpytorch", "torch")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "blas": sorted({f"{info['internal_api']} {info['version']}" for info in threadpool_info()}),
        "blas_threads": 1,
        "versions": {name: found for name in packages if (found := _version(name)) is not None},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def save(path: str | os.PathLike[str], rows: Sequence[Row], about: Mapping[str, Any]) -> Path:
    """Write rows and what they were measured on as JSON."""
    return write(path, json.dumps({"rows": list(rows), "machine": dict(about)}, indent=1, ensure_ascii=False) + "\n")

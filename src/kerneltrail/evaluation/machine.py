"""What numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


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
        "versions": {name: installed for name in packages if (installed := _version(name)) is not None},
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

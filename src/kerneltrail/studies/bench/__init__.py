"""Benchmarks, measured side by side in one run.

The file of ``kerneltrail bench --json`` is ``{"rows": [...], "machine": {...}}``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.table import Table

from kerneltrail.errors import KerneltrailError
from kerneltrail.evaluation.machine import machine
from kerneltrail.store.atomic import write
from kerneltrail.studies.bench.benchmark import BENCHMARKS, KEYS, Benchmark, Row
from kerneltrail.studies.bench.between import BetweenBenchmark
from kerneltrail.studies.bench.effects import EffectsBenchmark
from kerneltrail.studies.bench.evidence import EvidenceBenchmark
from kerneltrail.studies.bench.hostile import HostileBenchmark
from kerneltrail.studies.bench.map import MapBenchmark
from kerneltrail.studies.bench.methods import MethodsBenchmark
from kerneltrail.studies.bench.nested import NestedBenchmark
from kerneltrail.studies.bench.recovery import RecoveryBenchmark
from kerneltrail.studies.bench.scale import ScaleBenchmark
from kerneltrail.studies.bench.searches import SearchesBenchmark
from kerneltrail.studies.bench.select import SelectBenchmark
from kerneltrail.studies.bench.serve import ServeBenchmark
from kerneltrail.studies.bench.shared import SharedBenchmark
from kerneltrail.studies.bench.steps import StepsBenchmark
from kerneltrail.studies.bench.train import TrainBenchmark
from kerneltrail.studies.bench.update import UpdateBenchmark

for _kind in (
    EvidenceBenchmark, MapBenchmark, UpdateBenchmark, TrainBenchmark, SelectBenchmark,
    MethodsBenchmark, NestedBenchmark, RecoveryBenchmark, EffectsBenchmark, HostileBenchmark,
    SearchesBenchmark,
    BetweenBenchmark, StepsBenchmark, SharedBenchmark, ScaleBenchmark, ServeBenchmark,
):  # fmt: skip
    BENCHMARKS.add(_kind.name, _kind)


def chosen(which: str, *, quick: bool = False, changes: Mapping[str, Any] | None = None) -> list[Benchmark]:
    """The benchmark of that name, or those that are part of ``all``, in full or quick size.

    `changes` are of its fields, by name; one that it does not have is refused.
    """
    kinds = [kind for kind in BENCHMARKS.values() if kind.in_all] if which == "all" else [BENCHMARKS[which]]
    sized = [kind.quick() if quick else kind() for kind in kinds]
    for name in changes or {}:
        if not all(name in getattr(each, "__dataclass_fields__", {}) for each in sized):
            raise KerneltrailError(f"bench {which} has no --{name}")
    return [replace(each, **changes) if changes else each for each in sized]  # type: ignore[type-var]


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """The tables of each benchmark among the rows."""
    for name, group in groupby(rows, key=lambda row: row["bench"]):
        yield from BENCHMARKS[name].tables(list(group))


def summary(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The rows as Markdown, and what they were measured on."""
    parts = []
    for name, group in groupby(rows, key=lambda row: row["bench"]):
        parts += BENCHMARKS[name].markdown(list(group))
    load = about.get("load")
    parts.append(
        f"Measured on {about['cores']} cores ({about['processor']}) with one BLAS thread, Python {about['python']}, "
        f"numpy {about['versions']['numpy']}"
        + (f"; load average {load} from other work at the start." if load is not None else ".")
    )
    return "\n\n".join(parts) + "\n"


def save(path: str | os.PathLike[str], rows: Sequence[Row], about: Mapping[str, Any]) -> Path:
    """Write rows and what they were measured on as JSON."""
    return write(path, json.dumps({"rows": list(rows), "machine": dict(about)}, indent=1, ensure_ascii=False) + "\n")


__all__ = ["BENCHMARKS", "Benchmark", "KEYS", "Row", "chosen", "machine", "save", "summary", "tables"]

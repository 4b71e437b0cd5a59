"""A benchmark's rows as Markdown: ``python -m kerneltrail.studies.bench.markdown bench.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kerneltrail.studies.bench.rows import Row
from kerneltrail.studies.bench.table import duration, ratio

SHOWN = (187, 1000, 2000)
"""Sizes shown of the evidence benchmark."""


def summary(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """Tables of evidence, MAP and updates, and what they were measured on."""
    parts = [_evidence([row for row in rows if row["bench"] == "evidence" and row["n"] in SHOWN])]
    parts += [_map(row) for row in rows if row["method"] == "find_map"]
    parts += _update([row for row in rows if row["bench"] == "update"])
    parts += _train([row for row in rows if row["bench"] == "train"])
    parts += _select([row for row in rows if row["bench"] == "select"])
    load = machine.get("load")
    parts.append(
        f"Measured on {machine['cores']} cores ({machine['processor']}) with one BLAS thread, Python "
        f"{machine['python']}, numpy {machine['versions']['numpy']}"
        + (f"; load average {load} from other work at the start." if load is not None else ".")
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _evidence(rows: Sequence[Row]) -> str:
    lines = [
        "| kernel | n | `auto` (6 batches) | `dense` (6) | `dpotrf` alone | scikit-learn (1) | `auto` / `dpotrf` |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for case, n in dict.fromkeys((row["case"], row["n"]) for row in rows):
        found = {row["method"]: row for row in rows if (row["case"], row["n"]) == (case, n)}
        others = duration(found["sklearn"]["seconds"]) if "sklearn" in found else "–"
        auto = found["auto"]
        lines.append(
            f"| {auto['kernel'].replace('*', '·')} | {n} | **{duration(auto['seconds'])}** "
            f"| {duration(found['dense']['seconds'])} | {duration(auto['dpotrf_seconds'])} | {others} "
            f"| {ratio(auto['ratio_to_dpotrf'])} |"
        )
    return "\n".join(lines) if rows else ""


def _map(row: Row) -> str:
    return (
        f"MAP of {row['kernel']} at {row['n']} rows from {row['starts']} starts: {duration(row['seconds'])} (median); "
        f"the true period is found within 5% for {row['found']:.0%} of {row['samples']} simulated users."
    )


def _update(rows: Sequence[Row]) -> list[str]:
    flat = [row for row in rows if row["method"] == "update"]
    grown = [row for row in rows if row["method"] == "grow"]
    if not flat or not grown:
        return []
    times = ", ".join(f"{duration(row['seconds'])} after {row['n']:,}" for row in flat)
    return [
        f"A batch of {flat[0]['batch']} rows more, by `OnlineState`: {times} (ratio of last to first "
        f"{flat[-1]['ratio_to_first']:.2f}). By growing a dense `Posterior`: {duration(grown[0]['seconds'])} after "
        f"{grown[0]['n']:,}."
    ]


def _train(rows: Sequence[Row]) -> list[str]:
    said = [
        f"Learning from {row['samples']} synthetic users until R-hat of {row['chains']} chains is {row['rhat']:.3f}: "
        f"{duration(row['seconds'])}, of which {duration(row['seconds_fits'])} for MAP fits of candidates."
        for row in rows
        if row["case"] == "synthetic"
    ]
    sweeps = [row for row in rows if row["case"] == "distinct"]
    if sweeps:
        times = ", ".join(f"{duration(row['seconds_per_sweep'])} ({row['method']})" for row in sweeps)
        said.append(f'A sweep of the set "distinct": {times}; by the authors\' code: 339 s.')
    grown = [row for row in rows if "ratio_to_first" in row]
    if grown:
        sizes = ", ".join(
            f"{duration(row['seconds'])} for {row['samples']} users with {row['batches']} batches" for row in grown
        )
        said.append(f"A whole fit as the group grows: {sizes}.")
    return said


def _select(rows: Sequence[Row]) -> list[str]:
    said = []
    for method in ("filter", "greedy"):
        found = [row for row in rows if row["method"] == method]
        if found:
            steps = ", ".join(f"{duration(row['seconds'])} (batch {row['batch']}, n={row['n']:,})" for row in found)
            said.append(f"One selection step, `{method}`: {steps}.")
    return said


if __name__ == "__main__":
    stored = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(summary(stored["rows"], stored["machine"]))

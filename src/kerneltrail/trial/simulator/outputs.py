"""What a study of designs writes into its folder: tables, all numbers, and one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kerneltrail.evaluation.tables import csv_text
from kerneltrail.store.atomic import write
from kerneltrail.store.validate import plain
from kerneltrail.trial.simulator.page import study_page
from kerneltrail.trial.simulator.study import Run, Study, own_code
from kerneltrail.trial.simulator.summary import Summary, summarised, tables

PAGE, RESULTS, RUNS = "index.html", "results.json", "runs"
"""Names in the folder; the last holds what is kept of each simulated trial."""


def write_study(out: Path, study: Study, runs: Sequence[Run]) -> Summary:
    """Write everything, the page last; what stood there before is replaced."""
    summary = summarised(runs, study.protocol.reward.better)
    for name, (columns, rows) in tables(summary, runs).items():
        write(out / "tables" / f"{name}.csv", csv_text(columns, rows))
    write(out / RESULTS, json.dumps(_results(study, summary), indent=1, ensure_ascii=False) + "\n")
    write(out / PAGE, study_page(study, summary))
    return summary


def _results(study: Study, summary: Summary) -> dict[str, Any]:
    return {
        "kerneltrail": version("kerneltrail"),
        "code": own_code(),
        "protocol": study.protocol.to_json(),
        "participants": {"kind": study.population.name, **plain(study.population.parameters)},
        "trouble": asdict(study.trouble),
        "drive": study.drive,
        "designs": [_finite(asdict(line)) for line in summary.lines],
        "pairs": [{**_finite(asdict(pair)), "verdict": pair.verdict} for pair in summary.pairs],
    }


def _finite(value: Any) -> Any:
    """Plain values; an interval of a single trial has no ends."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value

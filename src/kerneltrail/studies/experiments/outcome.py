"""What an experiment hands back, and how it is written: results.json, tables, figures, the model and the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kerneltrail.evaluation.machine import machine
from kerneltrail.evaluation.tables import csv_text
from kerneltrail.report import figures
from kerneltrail.report.model_page import Comparison, GraphBlock, UserView, trail_page
from kerneltrail.report.model_page.calibration import coverages
from kerneltrail.report.model_text import model_json
from kerneltrail.report.page import Section
from kerneltrail.store.atomic import write
from kerneltrail.studies.experiments.agreement import Agreement
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.trajectory.model import TrajectoryModel

RESULTS, PAGE, MODEL = "results.json", "index.html", "model.trail"
"""Files of every experiment, beside the folders ``tables`` and ``figures``."""


@dataclass(frozen=True)
class Outcome:
    """All that an experiment found.

    Attributes:
        title, lead: of the page.
        results: what goes into results.json, as plain values (arrays, dataclasses with `to_json` and NaN are turned
            into such); experiment, seed, versions and seconds are added.
        tables: tidy tables by name, a mapping per row: each becomes a CSV, and is in results.json too.
        drawn: figures, written as PNG and SVG.
        opening, sections: of the page, before and after those on model, users and methods; every number in them must
            be in `results` or `tables`.
        agreements: what the paper says, beside this.
        model: written beside the page, which shows its graph, alternatives and chains.
        users: followed on it, for the page.
    """

    title: str
    lead: str
    results: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    drawn: tuple[FigurePair, ...] = ()
    opening: tuple[Section, ...] = ()
    sections: tuple[Section, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    model: TrajectoryModel | None = None
    users: tuple[UserView, ...] = ()


def write_outcome(outcome: Outcome, context: Context) -> Path:
    """Write everything into the experiment's folder, results.json last; returns the page's path."""
    out = context.out
    for name, rows in outcome.tables.items():
        columns = tuple(dict.fromkeys(column for row in rows for column in row))  # in order of first appearance
        write(out / "tables" / f"{name}.csv", csv_text(columns, rows))
    for drawn in outcome.drawn:
        write(out / "figures" / f"{drawn.name}.png", figures.png(drawn.wide))
        write(out / "figures" / f"{drawn.name}.svg", figures.svg(drawn.wide))
    if outcome.model is not None:
        outcome.model.save(out / MODEL)
    results = plain(results_of(outcome, context))
    write(out / PAGE, page_of(outcome, results, context))
    write(out / RESULTS, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return out / PAGE


def page_of(outcome: Outcome, results: Mapping[str, Any], context: Context) -> str:
    """The page; methods are compared where the results have ``metrics``."""
    return trail_page(
        outcome.title,
        outcome.model,
        outcome.users,
        Comparison.from_results(results),
        outcome.sections,
        opening=outcome.opening,
        lead=outcome.lead,
        footer=footer(context),
    )


def results_of(outcome: Outcome, context: Context) -> dict[str, Any]:
    """The content of results.json."""
    about = machine()
    return {
        "experiment": context.name,
        "seed": context.seed,
        "quick": context.quick,
        "data": None if context.data is None else context.data.name,
        "versions": about.pop("versions"),
        "machine": about,
        "seconds": dict(context.seconds),
        **outcome.results,
        "model": None if outcome.model is None else _model_values(outcome.model),
        "calibration": [asdict(each) for each in coverages(outcome.users)],
        "agreement": [each.to_json() for each in outcome.agreements],
        "tables": {name: list(rows) for name, rows in outcome.tables.items()},
        "figures": [f"figures/{drawn.name}.png" for drawn in outcome.drawn],
    }


def _model_values(model: TrajectoryModel) -> dict[str, Any]:
    """A model in plain values, with what the page's cards say of each kernel."""
    return {**model_json(model), "cards": [asdict(fact) for fact in GraphBlock(model).facts]}


def footer(context: Context) -> str:
    """Where a page comes from."""
    about = machine()
    size = ", quick version" if context.quick else ""
    return (
        f"Written by kerneltrail {about['versions']['kerneltrail']}, experiment {context.name}, seed {context.seed}"
        f"{size}; {sum(context.seconds.values()):.0f} s of computing. Every number is in results.json beside this page."
    )


def plain(value: Any) -> Any:
    """As JSON has it: arrays as lists, results as mappings, what is not finite as None.

    >>> plain({"a": (1, float("nan")), 3: np.array([1.5])})
    {'a': [1, None], '3': [1.5]}
    """
    if hasattr(value, "to_json"):
        value = value.to_json()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

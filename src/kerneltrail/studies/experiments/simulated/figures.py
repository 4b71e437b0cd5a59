"""The paper's figures of its synthetic experiment, from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kerneltrail.kernels import NOTHING
from kerneltrail.report import figures, graph
from kerneltrail.report.figures import NARROW, WIDE, Curve, Dots, Panel
from kerneltrail.studies import selection_figures
from kerneltrail.studies.experiments.page import graph_figure
from kerneltrail.studies.experiments.simulated.compute import Findings
from kerneltrail.studies.experiments.simulated.design import PRESETS
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.studies.selection_figures import Shares, Tally, confusion, shares
from kerneltrail.trajectory.sampler.joint import Structure

Row = Mapping[str, Any]
ALTERNATIVES = 3
"""Other structures that are drawn; the paper shows three."""


def example_fits(each: Mapping[str, Any]) -> FigurePair:
    """A user's fits after each batch (the paper's figure of two users, for all batches)."""
    x, y, grid = (np.array(each[name]) for name in ("x", "y", "grid"))
    panels = []
    for step in each["steps"]:
        rows = step["rows"]
        dots = [Dots(x[:rows], y[:rows], "observed")]
        if rows < len(x):
            dots.append(Dots(x[rows:], y[rows:], "still to come", seen=False))
        mean, wide = np.array(step["mean"]), figures.WITHIN_95 * np.array(step["total_sd"])
        curve = Curve(grid, mean, np.array(step["sd"]), (mean - wide, mean + wide))
        title = f"{rows} rows: {step['composition'] or NOTHING}"
        panels.append(Panel(title, "x", "y", curve, tuple(dots)))
    kernels = ", ".join(f"{step['composition']} after {step['rows']}" for step in each["steps"])
    return FigurePair(
        f"user-{each['user']}",
        figures.grid(panels, columns=3, share=True),
        figures.grid(panels, columns=1, width=NARROW, height=1.9, share=True),
        f"Fits to user {each['user']}, whose true kernel is {each['truth']}, after each batch: {kernels}.",
        f"User {each['user']}, whose true kernel is {each['truth']}: the kernel selected after each batch and its "
        "prediction, averaged over kernels by their probability. The darker band holds the function with 95\u00a0% "
        "probability, the lighter one new observations; grey dots had not been seen yet.",
    )


def graph_of(findings: Findings, preset: str, structure: Structure, name: str, caption: str) -> FigurePair:
    """A structure as a graph with edge fractions."""
    alt = f"A graph of kernels under the {preset} preset"
    return graph_figure(findings.models[preset], structure.paths, name, alt, caption)


def alternatives(findings: Findings, preset: str) -> list[FigurePair]:
    """Other structures that were sampled."""
    chosen, *others = findings.models[preset].structures
    graphs = []
    for number, other in enumerate(others[:ALTERNATIVES], start=1):
        by = other.log_joint - chosen.log_joint
        caption = (
            f"Alternative {number} under the {preset} preset: log joint {by:+.2f} relative to the chosen structure; "
            f"these very paths were sampled {other.visits} times."
        )
        graphs.append(graph_of(findings, preset, other, f"alternative-{preset}-{number}", caption))
    return graphs


def histogram(findings: Findings, preset: str, selected: Sequence[Row]) -> FigurePair:
    """How many new users have each kernel, by data size."""
    nodes = [graph.name_of(node.composition) for node in findings.models[preset].nodes]
    colours = {name: graph.colour_of(index) for index, name in enumerate(nodes)}
    by: dict[str, list[tuple[int, int]]] = {}
    for row in selected:
        by.setdefault(row["composition"] or NOTHING, []).append((row["correct"], row["users"] - row["correct"]))
    tallies = [Tally(name, *(tuple(side) for side in zip(*by[name], strict=True))) for name in nodes if name in by]
    users = sum(row["users"] for row in selected if row["rows"] == findings.rows[0])
    return FigurePair(
        f"selected-{preset}",
        selection_figures.tallies(tallies, findings.rows, colours, width=WIDE),
        selection_figures.tallies(tallies, findings.rows, colours, width=NARROW),
        f"Bars: how many of {users} new users have each kernel after each number of rows, {preset} preset.",
        f"Kernels of the {users} new users by data size, {preset} preset. Hatched: not the user's true kernel.",
    )


def confusion_of(preset: str, rows: Sequence[Row]) -> FigurePair:
    """The confusion matrix at the last batch."""
    truths = list(dict.fromkeys(row["truth"] for row in rows))
    chosen = list(dict.fromkeys(row["selected"] for row in rows))
    users = {(row["truth"], row["selected"]): row["users"] for row in rows}
    counts = [[users[truth, kernel] for kernel in chosen] for truth in truths]
    text = "; ".join(
        f"of {sum(line)} users with {truth}, " + ", ".join(f"{n} have {k}" for n, k in zip(line, chosen, strict=True))
        for truth, line in zip(truths, counts, strict=True)
    )
    return FigurePair(
        f"confusion-{preset}",
        confusion(truths, chosen, counts, width=WIDE),
        confusion(truths, chosen, counts, width=NARROW),
        f"Confusion matrix, {preset} preset: {text}.",
        f"True kernels against those selected after {rows[0]['rows']} rows, {preset} preset.",
    )


def recovery(findings: Findings, rows: Sequence[Row]) -> FigurePair:
    """The share of new users with their true kernel, by preset."""
    lines = {
        preset: Shares(*([row[key] for row in rows if row["preset"] == preset] for key in ("share", "low", "high")))
        for preset in PRESETS
    }
    users = rows[0]["users"]
    ylabel = "new users with\ntheir true kernel (%)"
    text = "; ".join(f"{p}: {', '.join(f'{100 * v:.0f} %' for v in line.value)}" for p, line in lines.items())
    return FigurePair(
        "recovery",
        shares(lines, findings.rows, ylabel=ylabel, width=WIDE),
        shares(lines, findings.rows, ylabel=ylabel, width=NARROW),
        f"Share of {users} new users with their true kernel by rows seen. {text}.",
        f"How many of the {users} new users have their true kernel, with 90 % intervals of a share. They follow one "
        "model each, so the intervals say nothing of other pilot users.",
    )

"""Drawings of an analysis: functions of a width in inches, on the report's style."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.report.figures import (
    BLUE,
    FAINT,
    GREEN,
    ORANGE,
    PURPLE,
    RULE,
    TICKS,
    VERMILION,
    Curve,
    Panel,
    grid,
    is_narrow,
    legend,
    rule,
    styled,
)
from kerneltrail.report.forest import Estimate as Line
from kerneltrail.report.forest import ForestPanel, forest
from kerneltrail.trial.analysis.course import NONE_YET, Flow, Gap, Kernels
from kerneltrail.trial.analysis.effects import ActingEffect, ActingEffects, where
from kerneltrail.trial.analysis.excursion import Estimate
from kerneltrail.trial.analysis.personal import Statistic
from kerneltrail.trial.analysis.record import Record

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, "#56B4E9", "#F0E442")
SPARE = "#CFCFCF"
"""Colours of kernels; grey for those who have none yet."""


def effects_drawing(effects: ActingEffects, record: Record, width: float) -> Figure:
    """A line for each effect: over everybody, by kind, and where each moderator is low and high."""
    names, lines = [], []
    for effect in (effects.primary, *effects.by_kind):
        if effect.fitted is not None:
            names.append(effect.name)
            lines.append(_line(effect.fitted["acting"]))
    for effect in effects.moderated:
        for place in effect.places:
            names.append(where(effect, place, record).removeprefix("where "))
            lines.append(_line(effect.at(place)))
    short = [_broken(name) if is_narrow(width) else name for name in names]
    unit = f" ({record.unit})" if record.unit else ""
    return forest(short, [ForestPanel("What acting changes", f"{record.outcome}{unit}", lines)], width=width)


def _line(estimate: Estimate) -> Line:
    return Line(estimate.value, estimate.lower, estimate.upper, estimate.clear)


def _broken(name: str) -> str:
    """A name for a narrow drawing: the value without its unit."""
    head, middle, tail = name.partition(" is ")
    return f"{head} = {tail.split()[0]}" if middle and tail else name


def moderators_drawing(effects: Sequence[ActingEffect], record: Record, width: float) -> Figure:
    """What acting changes along each moderator, with its interval."""
    panels = []
    for effect in effects:
        x = np.array(effect.curve)
        found = [effect.at(value) for value in effect.curve]
        mean, low, high = (np.array([getattr(each, name) for each in found]) for name in ("value", "lower", "upper"))
        section = record.protocol.covariates.get(effect.name)
        unit = f" ({section.unit})" if section is not None and section.unit else ""
        ends = Curve(x, mean, (high - low) / 2.0, ends=(low, high))
        label = f"change of {record.outcome}" + (f"\n({record.unit})" if record.unit else "")
        panels.append(
            Panel(
                record.label(effect.name),
                f"{record.label(effect.name)}{unit}",
                label,
                ends,
                zero=True,
                mean_label="what acting changes",
                band_label="its interval",
            )
        )
    return grid(panels, columns=1 if is_narrow(width) else min(2, len(panels)), width=width, share=False)


def flow_drawing(flow: Flow, width: float) -> Figure:
    """Boxes from enrolment to analysis, with what else is to be said of a step beside it."""
    ends = [f"completed: {flow.completed}", f"withdrew: {flow.withdrawn}", f"data removed: {flow.removed}"]
    ends += [f"not at their end yet: {flow.ongoing}"] if flow.ongoing else []
    steps = [
        (f"enrolled: {flow.enrolled}", f"never started: {flow.never_started}"),
        (f"started: {flow.started}", f"paused at some time: {flow.paused}"),
        ("\n".join(ends), f"no decision that can be used: {flow.nothing_usable}"),
        (f"in the analysis: {flow.analysed}", ""),
    ]
    places = (0.0, 1.0, 2.2, 3.4)
    narrow = is_narrow(width)
    left, right = (0.22, 0.47) if narrow else (0.34, 0.6)
    with styled(width, 3.9) as figure:
        ax = figure.subplots()
        ax.set(xlim=(0.0, 1.0), ylim=(places[-1] + 0.3, -0.3))
        ax.set_axis_off()
        for place, (text, beside) in zip(places, steps, strict=True):
            _box(ax, left, place, text, bold=True)
            if beside:
                _box(ax, right, place, beside, bold=False)
        for place, (text, _), following in zip(places, steps, places[1:], strict=False):
            room = 0.14 * (1 + text.count("\n"))
            _arrow(ax, (left, place + room), (left, following - (0.42 if following == places[2] else 0.2)))
    return figure


def _box(ax: Axes, x: float, y: float, text: str, *, bold: bool) -> None:
    style = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": BLUE if bold else "none"}
    ax.text(
        x, y, text, ha="center" if bold else "left", va="center", bbox=style, zorder=3,
        weight="bold" if bold else "normal", linespacing=1.5,
    )  # fmt: skip


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": FAINT, "linewidth": 1.2}, zorder=1)


def gaps_drawing(gaps: Sequence[Gap], width: float) -> Figure:
    """The share of decisions without an outcome over time."""
    with styled(width, 2.6) as figure:
        ax = figure.subplots()
        x, y = np.arange(len(gaps)), np.array([gap.share.mean for gap in gaps])
        low, high = (np.array([getattr(gap.share, name) for gap in gaps]) for name in ("low", "high"))
        ax.errorbar(
            x, y, yerr=[y - low, high - y], color=BLUE, marker="o", linestyle="none", capsize=3,
            label=f"share without an outcome, {100 * gaps[0].share.level:g} % interval",
        )  # fmt: skip
        _periods(ax, [gap.group for gap in gaps], width)
        ax.set_ylim(0.0, max(0.05, 1.05 * float(high.max())))
        rule(ax)
        legend(figure, columns=1)
    return figure


def _periods(ax: Axes, names: Sequence[str], width: float) -> None:
    """Periods below an axis: their noun once, and as many numbers as there is room for."""
    step = -(-len(names) // (7 if is_narrow(width) else 16))
    shown = range(0, len(names), step)
    ax.set_xticks(list(shown), [names[place].split()[-1] for place in shown])
    ax.set_xlabel(f"{names[0].split()[0]} in the study")


def kernels_drawing(kernels: Kernels, width: float) -> Figure:
    """Shares of participants with each kernel over time, stacked."""
    with styled(width, 3.2 + (0.22 * len(kernels.names) if is_narrow(width) else 0.3)) as figure:
        ax = figure.subplots()
        bottom = np.zeros(len(kernels.periods))
        colours = iter(COLOURS)
        for place, name in enumerate(kernels.names):
            share = kernels.shares[:, place]
            colour = SPARE if name == NONE_YET else next(colours, FAINT)
            ax.bar(
                np.arange(len(share)), share, bottom=bottom, color=colour, width=0.9, edgecolor="white",
                linewidth=0.5, label=name,
            )  # fmt: skip
            bottom += share
        _periods(ax, kernels.periods, width)
        ax.set(ylim=(0.0, 1.0), ylabel="share of participants")
        legend(figure, columns=1 if is_narrow(width) else 2)
    return figure


def null_drawing(statistics: Sequence[Statistic], width: float) -> Figure:
    """Measures in simulated trials, with that of the trial as a line."""
    columns = 1 if is_narrow(width) else min(2, len(statistics))
    rows = -(-len(statistics) // columns)
    with styled(width, 1.9 * rows + 0.5) as figure:
        axes = figure.subplots(rows, columns, squeeze=False)
        for each, ax in zip(statistics, axes.flat, strict=False):
            ax.hist(
                [value for value in each.null if np.isfinite(value)],
                bins=20,
                color=BLUE,
                alpha=0.5,
                label="simulated trials under the null",
            )
            ax.axvline(each.observed, color=VERMILION, linewidth=2.0, label="this trial")
            ax.set_title(_title(each.measure.name, width), parse_math=False)
            ax.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=TICKS))
            ax.xaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
            ax.grid(axis="y", color=RULE, linewidth=0.6)
        for ax in axes.flat[len(statistics) :]:
            ax.set_axis_off()
        legend(figure, columns=1 if is_narrow(width) else 2)
    return figure


def _title(name: str, width: float) -> str:
    head, _, tail = name.partition(": ")
    half = len(tail) // 2
    cut = tail.find(" ", half - 4) if len(tail) > 36 else -1
    return f"{head}:\n{tail[:cut]}\n{tail[cut + 1 :]}" if cut > 0 else f"{head}:\n{tail}"

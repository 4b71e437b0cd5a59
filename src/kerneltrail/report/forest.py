"""A forest plot: one line for each user with an estimate and its interval, panels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.report.figures import BLUE, FAINT, INK, RULE, TICKS, WIDE, is_narrow, styled

LINE, AROUND = 0.23, 0.85
"""Inches: of one line, and of what stands above and below them."""
ABREAST = 3
"""Most panels side by side."""


@dataclass(frozen=True)
class Estimate:
    """One line of a panel: a number with its interval, whether it is clear on which side of 0 it lies, and a remark."""

    mean: float
    low: float
    high: float
    clear: bool
    remark: str = ""


@dataclass(frozen=True)
class ForestPanel:
    """Lines under one title; None where there is nothing to say of a user. `remarks` stands above the remarks."""

    title: str
    xlabel: str
    estimates: Sequence[Estimate | None]
    remarks: str = ""


def forest(names: Sequence[str], panels: Sequence[ForestPanel], *, width: float = WIDE) -> Figure:
    """The panels, each with one line for each name, in the names' order from top to bottom.

    Filled dots are clear; hollow ones are not.
    """
    rows = -(-len(panels) // (1 if is_narrow(width) else ABREAST))
    columns = -(-len(panels) // rows)  # four stand two by two, not three and one
    with styled(width, (LINE * len(names) + AROUND) * rows, rows=rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for index, (panel, ax) in enumerate(zip(panels, axes.flat, strict=False)):
            _draw(panel, ax)
            ax.set_ylim(len(names) - 0.4, -0.6)
            ax.set_yticks(range(len(names)), list(names))
            ax.tick_params(axis="y", length=0, labelleft=index % columns == 0)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
    return figure


def _draw(panel: ForestPanel, ax: Axes) -> None:
    ax.axvline(0.0, color=INK, linewidth=1.0, zorder=1)
    for place, each in enumerate(panel.estimates):
        ax.axhline(place, color=RULE, linewidth=0.6, zorder=0)
        if each is None:
            ax.text(0.0, place, " not found to matter", color="#666666", fontsize="small", va="center")
            continue
        ax.plot([each.low, each.high], [place, place], color=BLUE, linewidth=1.8, solid_capstyle="butt", zorder=2)
        ax.scatter(
            [each.mean], [place], s=30, color=BLUE if each.clear else "white", edgecolors=BLUE, linewidths=1.4, zorder=3
        )
        if each.remark:
            ax.annotate(
                each.remark, (1.02, place), xycoords=("axes fraction", "data"), va="center", annotation_clip=False
            )
    if panel.remarks:
        ax.annotate(panel.remarks, (1.02, 1.02), xycoords="axes fraction", weight="bold", annotation_clip=False)
    ax.set_title(panel.title)
    ax.set_xlabel(panel.xlabel)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
    ax.tick_params(axis="x", color=FAINT)

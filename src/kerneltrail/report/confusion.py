"""Figures of recovery: true kernels against selected ones, and the share that is right as rows accrue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kerneltrail.report.figures import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RULE, STYLE, VERMILION, WIDE
from kerneltrail.report.graph.parts import NOTHING, wrapped

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, INK)
MARKERS = "osD^vP"


def confusion(
    truths: Sequence[str], selected: Sequence[str], counts: Sequence[Sequence[int]], *, width: float = WIDE
) -> Figure:
    """True kernels down, selected ones across, users in the cells; what is right has a frame."""
    table = np.array(counts)
    most = max(int(table.max()), 1)
    left, below, high = 1.25, 0.95, 0.62  # inches: for names, and for a cell
    cell = min(1.3, (width - left - 0.1) / len(selected))
    tall = high * len(truths) + below + 0.1
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, tall))
        ax = figure.add_axes((left / width, below / tall, cell * len(selected) / width, high * len(truths) / tall))
        ax.imshow(table, cmap="Blues", vmin=0, vmax=1.25 * most, aspect="auto")
        for i, truth in enumerate(truths):
            for j, kernel in enumerate(selected):
                colour = "white" if table[i, j] > 0.75 * most else INK
                weight = "bold" if truth == kernel else "normal"
                ax.text(j, i, str(table[i, j]), ha="center", va="center", color=colour, size=11, weight=weight)
                if truth == kernel:
                    ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2))
        size = 9 if cell > 0.95 else 7.5
        ax.set_xticks(range(len(selected)), [wrapped(kernel or NOTHING) for kernel in selected], size=size)
        ax.set_yticks(range(len(truths)), [wrapped(truth or NOTHING) for truth in truths])
        ax.set_xlabel("selected")
        ax.set_ylabel("true")
        ax.tick_params(length=0)
        ax.set_xlim(-0.52, len(selected) - 0.48)
        ax.set_ylim(len(truths) - 0.48, -0.52)
        for side in ax.spines.values():
            side.set_visible(False)
    return figure


@dataclass(frozen=True)
class Shares:
    """Of how many users something is right, with intervals.

    Attributes:
        value, low, high: shares, one for each data size.
    """

    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def shares(found: Mapping[str, Shares], rows: Sequence[int], *, ylabel: str, width: float = WIDE) -> Figure:
    """Lines with intervals, one for each procedure; told apart by marker as well as by colour."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 2.9), layout="constrained")
        ax = figure.subplots()
        x = np.arange(len(rows))
        for place, (name, own) in enumerate(found.items()):
            value = np.asarray(own.value)
            reach = [np.maximum(value - np.asarray(own.low), 0), np.maximum(np.asarray(own.high) - value, 0)]
            ax.errorbar(
                x + 0.06 * (place - (len(found) - 1) / 2),
                value,
                yerr=reach,
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)],
                markersize=5,
                linewidth=1.5,
                elinewidth=1.0,
                capsize=3,
                label=name,
            )
        ax.set_ylim(0.0, 1.03)
        ax.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
        ax.set_xticks(x, [str(n) for n in rows])
        ax.set_xlabel("rows seen")
        ax.set_ylabel(ylabel)
        ax.grid(axis="y", color=RULE, linewidth=0.6)
        ax.axhline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2 if width < 6 else 5, frameon=False)
    return figure

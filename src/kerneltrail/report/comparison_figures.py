"""Methods side by side, batch by batch: the figures of an evaluation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.evaluation.result import Average, Difference
from kerneltrail.report.figures import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, VERMILION, WIDE, is_narrow, rule, styled

SKY = "#56B4E9"
COLOURS = (VERMILION, GREEN, ORANGE, PURPLE, SKY, INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

LABELS = {
    "rmse": "RMSE of the next batch",
    "log_density": "log predictive density of the next batch",
    "seconds": "seconds per update",
    "cpu_seconds": "processor seconds per update",
    "right": "share of users whose kernel is the true one",
    "products": "products in the kernel",
}
CROWDED = 2.5
"""Times the range of all later differences that the first one may take before it is left outside."""
FAR = 0.75
"""Widths of the range of nine tenths of the means, beyond its ends: what lies farther is far from all others."""


def by_batch(averages: Iterable[Average], metric: str, *, first: str | None, width: float = WIDE) -> Figure:
    """One metric of every method after each batch, with intervals over users; `first` stands out.

    Methods stand a little apart at each batch, so that their intervals can be told apart. A few values far from all
    others, such as densities before the first row, are left outside the axes; the tables have them.
    """
    rows = [row for row in averages if row.metric == metric]
    names = list(dict.fromkeys(row.method for row in rows))
    others = [name for name in names if name != first]
    with styled(width, 3.9) as figure:
        ax = figure.subplots()
        for index, name in enumerate(names):
            averaged = [row for row in rows if row.method == name]
            places = [row.t + 0.6 * ((index + 0.5) / len(names) - 0.5) for row in averaged]
            look = {"color": BLUE, "marker": "o", "markersize": 6, "linewidth": 2.2, "elinewidth": 1.4, "zorder": 4}
            if name != first:
                number = others.index(name)
                look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
                look |= {"markersize": 4, "linewidth": 0.8, "elinewidth": 0.9, "zorder": 3}
                look["linestyle"] = "-" if number < len(COLOURS) else (0, (5, 3))  # the colours begin again
            _line(ax, places, averaged, label=name, **look)
        if metric.endswith("seconds"):
            ax.set_yscale("log")
        elif rows:
            ax.set_ylim(*_limits(rows, first))
        ax.set(xlabel="batches seen", ylabel=LABELS.get(metric, metric.replace("_", " ")))
        _tidy(ax)
        if names:
            figure.legend(loc="outside lower center", ncols=3 if is_narrow(width) else 6, frameon=False)
    return figure


def differences(rows: Iterable[Difference], metric: str, *, width: float = WIDE) -> Figure:
    """The first method minus each other one after each batch, a panel each with a scale of its own.

    An interval that misses the line at 0 is a difference. What is said before the first row may be far off all the
    rest, and is then left outside the axes; the tables have it.
    """
    of_metric = [row for row in rows if row.metric == metric]
    names = list(dict.fromkeys(row.second for row in of_metric))
    columns = min(len(names), 2 if is_narrow(width) else 4) or 1
    lines = -(-len(names) // columns) or 1
    with styled(width, 1.9 * lines + 0.6) as figure:
        axes = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for ax, name in zip(axes.flat, names, strict=False):
            pairs = [row for row in of_metric if row.second == name]
            ax.axhline(0.0, color=FAINT, linewidth=1.0, zorder=1)
            look = {"color": BLUE, "marker": "o", "markersize": 4, "linewidth": 1.2, "elinewidth": 1.2}
            _line(ax, [row.t for row in pairs], pairs, **look)
            ax.set_title(f"minus {name}")
            _tidy(ax)
            ax.set_ylim(*_later(pairs))
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        if of_metric:
            title = f"{of_metric[0].first}: {LABELS.get(metric, metric)}"
            title = textwrap.fill(title, 40) if is_narrow(width) else title
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
            figure.supxlabel("batches seen", fontsize="medium")
    return figure


def _line(ax: Axes, places: Sequence[float], rows: Sequence[Average] | Sequence[Difference], **look: Any) -> None:
    below, above = [row.mean - row.low for row in rows], [row.high - row.mean for row in rows]
    ax.errorbar(places, [row.mean for row in rows], yerr=[below, above], capsize=0, **look)


def _later(rows: Sequence[Difference]) -> tuple[float, float]:
    """Ends of a panel's axis, 0 among them: of all t, unless t = 0 alone would leave little room for the others."""

    def ends(some: Sequence[Difference]) -> tuple[float, float]:
        return min(0.0, *(row.low for row in some)), max(0.0, *(row.high for row in some))

    later = [row for row in rows if row.t > 0] or list(rows)
    (low, high), (least, most) = ends(later), ends(rows)
    if most - least < CROWDED * (high - low):
        low, high = least, most
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def _limits(rows: Sequence[Average], first: str | None) -> tuple[float, float]:
    """Ends of the axis: all of the first method, and all that is not far from where nine tenths of the means lie."""
    core = np.quantile([row.mean for row in rows], [0.05, 0.95])
    near = (core + FAR * (core[1] - core[0]) * np.array([-1.0, 1.0])).tolist()
    shown = core.tolist()
    shown += [end for row in rows for end in (row.low, row.mean, row.high) if near[0] <= end <= near[1]]
    shown += [end for row in rows if row.method == first for end in (row.low, row.high)]
    margin = 0.05 * ((max(shown) - min(shown)) or 1.0)
    return min(shown) - margin, max(shown) + margin


def _tidy(ax: Axes) -> None:
    rule(ax)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))

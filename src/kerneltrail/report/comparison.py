"""Methods side by side, batch by batch: the figures of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.evaluation.result import Average, Difference
from kerneltrail.report.figures import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RULE, STYLE, VERMILION, WIDE

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


def by_batch(averages: Iterable[Average], metric: str, *, first: str | None, width: float = WIDE) -> Figure:
    """One metric of every method after each batch, with intervals over users; `first` stands out.

    Methods stand a little apart at each batch, so that their intervals can be told apart.
    """
    rows = [row for row in averages if row.metric == metric]
    return _figure(
        {name: [row for row in rows if row.method == name] for name in dict.fromkeys(row.method for row in rows)},
        LABELS.get(metric, metric.replace("_", " ")),
        first=first,
        log=metric.endswith("seconds"),
        zero=False,
        width=width,
    )


def differences(rows: Iterable[Difference], metric: str, *, width: float = WIDE) -> Figure:
    """The first method minus each other one after each batch; an interval that misses the line at 0 is a difference."""
    own = [row for row in rows if row.metric == metric]
    first = own[0].first if own else ""
    label = f"{first} minus other: {LABELS.get(metric, metric)}"
    return _figure(
        {name: [row for row in own if row.second == name] for name in dict.fromkeys(row.second for row in own)},
        label,
        first=None,
        log=False,
        zero=True,
        width=width,
    )


def _figure(
    lines: Mapping[str, Sequence[Average] | Sequence[Difference]],
    label: str,
    *,
    first: str | None,
    log: bool,
    zero: bool,
    width: float,
) -> Figure:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 3.9), layout="constrained")
        ax = figure.subplots()
        if zero:
            ax.axhline(0.0, color=FAINT, linewidth=1.0, zorder=1)
        others = [name for name in lines if name != first]
        for place, (name, own) in enumerate(lines.items()):
            mean = [row.mean for row in own]
            below = [row.mean - row.low for row in own]
            above = [row.high - row.mean for row in own]
            number = others.index(name) if name != first else 0
            ax.errorbar(
                [row.t + 0.6 * ((place + 0.5) / len(lines) - 0.5) for row in own],
                mean,
                yerr=[below, above],
                color=BLUE if name == first else COLOURS[number % len(COLOURS)],
                marker="o" if name == first else MARKERS[number % len(MARKERS)],
                markersize=6 if name == first else 4,
                linewidth=2.2 if name == first else 0.8,
                elinewidth=1.4 if name == first else 0.9,
                zorder=4 if name == first else 3,
                capsize=0,
                label=name,
            )
        if log:
            ax.set_yscale("log")
        ax.set_xlabel("batches seen")
        ax.set_ylabel(label)
        ax.grid(axis="y", color=RULE, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        if lines:
            figure.legend(loc="outside lower center", ncols=3 if width < 6 else 6, frameon=False)
    return figure

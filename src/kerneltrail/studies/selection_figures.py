"""Figures of selection: how probable each kernel is for a user, which are selected for whom, and how many rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from kerneltrail.report.figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    RULE,
    STYLE,
    TICKS,
    VERMILION,
    WIDE,
    is_narrow,
)
from kerneltrail.report.graph import NOTHING, tint, wrapped

LEAST = 0.22
"""Share of a bar from which it is labelled: less has no room for letters."""
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, INK)
MARKERS = "osD^vP"


@dataclass(frozen=True)
class Chances:
    """How probable each composition is for one user.

    Attributes:
        title: who.
        rows: rows seen after each batch.
        shares: probability by composition's text, one number for each batch.
    """

    title: str
    rows: tuple[int, ...]
    shares: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Tally:
    """How many users have a composition selected, by data size: rightly and wrongly.

    Attributes:
        name: the composition's text.
        right: users whose true composition it is, one number for each data size.
        wrong: the other users for whom it is selected.
    """

    name: str
    right: tuple[int, ...]
    wrong: tuple[int, ...]


def chances(
    users: Sequence[Chances], colours: Mapping[str, str], *, columns: int, width: float = WIDE, height: float = 1.9
) -> Figure:
    """Stacked bars, a panel for each user and a bar for each batch."""
    rows = -(-len(users) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for index, (user, ax) in enumerate(zip(users, axes.flat, strict=False)):
            x = np.arange(len(user.rows))
            below = np.zeros(len(x))
            for name, share in user.shares.items():
                high = np.asarray(share, dtype=np.float64)
                ax.bar(x, high, bottom=below, width=0.82, color=colours[name], linewidth=0)
                for at, (start, tall) in enumerate(zip(below, high, strict=True)):
                    if tall >= LEAST:
                        _inside(ax, at, start + tall / 2, f"{100 * tall:.0f}", colours[name])
                below += high
            ax.set_xticks(x, [str(n) for n in user.rows])
            ax.set_xlabel("rows seen" if index + columns >= len(users) else "")
            ax.set_ylabel("probability (%)" if index % columns == 0 else "")
            ax.set_yticks([0.0, 0.5, 1.0], ["0", "50", "100"])
            ax.set_ylim(0.0, 1.0)
            ax.tick_params(axis="x", length=0)
            ax.set_title(user.title)
        for ax in axes.flat[len(users) :]:
            ax.set_axis_off()
        present = dict.fromkeys(name for user in users for name in user.shares)
        handles = [Patch(facecolor=colours[name], label=name) for name in present]
        _legend(figure, handles, width)
    return figure


def tallies(
    bars: Sequence[Tally], rows: Sequence[int], colours: Mapping[str, str], *, width: float = WIDE, height: float = 3.0
) -> Figure:
    """Bars of how many users have each composition, by data size; wrong choices are hatched (the paper's figure)."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        put_tallies(figure.subplots(), bars, rows, colours)
        _legend(figure, tally_handles(bars, colours), width)
    return figure


def put_tallies(ax: Axes, bars: Sequence[Tally], rows: Sequence[int], colours: Mapping[str, str]) -> None:
    """Draw the bars on some axes."""
    x = np.arange(len(rows))
    wide = 0.84 / len(bars)
    users = sum(tally.right[0] + tally.wrong[0] for tally in bars)
    for index, tally in enumerate(bars):
        at = x + (index - (len(bars) - 1) / 2) * wide
        right, wrong = np.array(tally.right), np.array(tally.wrong)
        colour = colours[tally.name]
        ax.bar(at, right, width=0.9 * wide, color=colour, linewidth=0)
        ax.bar(at, wrong, bottom=right, width=0.9 * wide, color=tint(colour, 0.2), edgecolor=colour, hatch="////", lw=0)
        for left, total in zip(at, right + wrong, strict=True):
            ax.annotate(
                str(total), (left, total), (0, 2), textcoords="offset points", ha="center", va="bottom", size=8.5
            )
    good = [sum(tally.right[t] for tally in bars) for t in range(len(rows))]
    ax.set_xticks(x, [f"{n}\n{share}/{users}" for n, share in zip(rows, good, strict=True)])
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("rows seen; below, how many users have their true kernel")
    ax.set_ylabel("users")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=TICKS))
    ax.margins(y=0.12)
    ax.grid(axis="y", color=RULE, linewidth=0.6)
    ax.set_axisbelow(True)


def tally_handles(bars: Sequence[Tally], colours: Mapping[str, str]) -> list[Patch]:
    """What a legend of the bars shows."""
    handles = [Patch(facecolor=colours[tally.name], label=tally.name) for tally in bars]
    if any(sum(tally.wrong) for tally in bars):
        grey = Patch(
            facecolor=tint(FAINT, 0.2), edgecolor=FAINT, hatch="////", linewidth=0, label="not the true kernel"
        )
        handles.append(grey)
    return handles


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


def shares(procedures: Mapping[str, Shares], rows: Sequence[int], *, ylabel: str, width: float = WIDE) -> Figure:
    """Lines with intervals, one for each procedure; told apart by marker as well as by colour."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 2.9), layout="constrained")
        ax = figure.subplots()
        x = np.arange(len(rows))
        for index, (name, share) in enumerate(procedures.items()):
            value = np.asarray(share.value)
            reach = [np.maximum(value - np.asarray(share.low), 0), np.maximum(np.asarray(share.high) - value, 0)]
            ax.errorbar(
                x + 0.06 * (index - (len(procedures) - 1) / 2),
                value,
                yerr=reach,
                color=COLOURS[index % len(COLOURS)],
                marker=MARKERS[index % len(MARKERS)],
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
        figure.legend(handles, labels, loc="outside lower center", ncols=2 if is_narrow(width) else 5, frameon=False)
    return figure


def _inside(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
    ax.text(x, y, text, ha="center", va="center", size=8, color="white" if dark else "#222222")


def _legend(figure: Figure, handles: Sequence[Patch], width: float) -> None:
    columns = 2 if is_narrow(width) else 5
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.4,
    )

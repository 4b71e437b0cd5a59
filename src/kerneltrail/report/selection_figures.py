"""Figures of selection: how probable each composition is for a user, and which are selected for how many users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from kerneltrail.report.figures import FAINT, RULE, STYLE, TICKS, WIDE
from kerneltrail.report.graph import tint

LEAST = 0.22
"""Share of a bar from which it is labelled: less has no room for letters."""


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
        for place, (user, ax) in enumerate(zip(users, axes.flat, strict=False)):
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
            ax.set_xlabel("rows seen" if place + columns >= len(users) else "")
            ax.set_ylabel("probability (%)" if place % columns == 0 else "")
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
    found: Sequence[Tally], rows: Sequence[int], colours: Mapping[str, str], *, width: float = WIDE, height: float = 3.0
) -> Figure:
    """Bars of how many users have each composition, by data size; wrong choices are hatched (the paper's figure)."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        put_tallies(figure.subplots(), found, rows, colours)
        _legend(figure, tally_handles(found, colours), width)
    return figure


def put_tallies(ax: Axes, found: Sequence[Tally], rows: Sequence[int], colours: Mapping[str, str]) -> None:
    """Draw the bars on some axes."""
    x = np.arange(len(rows))
    wide = 0.84 / len(found)
    users = sum(tally.right[0] + tally.wrong[0] for tally in found)
    for place, tally in enumerate(found):
        at = x + (place - (len(found) - 1) / 2) * wide
        right, wrong = np.array(tally.right), np.array(tally.wrong)
        colour = colours[tally.name]
        ax.bar(at, right, width=0.9 * wide, color=colour, linewidth=0)
        ax.bar(at, wrong, bottom=right, width=0.9 * wide, color=tint(colour, 0.2), edgecolor=colour, hatch="////", lw=0)
        for left, total in zip(at, right + wrong, strict=True):
            ax.annotate(
                str(total), (left, total), (0, 2), textcoords="offset points", ha="center", va="bottom", size=8.5
            )
    good = [sum(tally.right[t] for tally in found) for t in range(len(rows))]
    ax.set_xticks(x, [f"{n}\n{share}/{users}" for n, share in zip(rows, good, strict=True)])
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("rows seen; below, how many users have their true kernel")
    ax.set_ylabel("users")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=TICKS))
    ax.margins(y=0.12)
    ax.grid(axis="y", color=RULE, linewidth=0.6)
    ax.set_axisbelow(True)


def tally_handles(found: Sequence[Tally], colours: Mapping[str, str]) -> list[Patch]:
    """What a legend of the bars shows."""
    handles = [Patch(facecolor=colours[tally.name], label=tally.name) for tally in found]
    if any(sum(tally.wrong) for tally in found):
        grey = Patch(
            facecolor=tint(FAINT, 0.2), edgecolor=FAINT, hatch="////", linewidth=0, label="not the true kernel"
        )
        handles.append(grey)
    return handles


def _inside(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
    ax.text(x, y, text, ha="center", va="center", size=8, color="white" if dark else "#222222")


def _legend(figure: Figure, handles: Sequence[Patch], width: float) -> None:
    columns = 2 if width < 6 else 5
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.4,
    )

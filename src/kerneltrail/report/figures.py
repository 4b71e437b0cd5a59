"""Figures of fits, in data units. Functions take plain arrays and return a matplotlib Figure; nothing is global."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Okabe and Ito's palette: told apart by people with any form of colour blindness, and in print.
BLUE, VERMILION, GREEN, ORANGE, PURPLE = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7"
INK, FAINT, RULE = "#222222", "#9A9A9A", "#DDDDDD"
WITHIN_95, WITHIN_90 = 1.959964, 1.644854
"""Standard deviations on either side that hold 95% and 90% of a normal distribution."""

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures look alike everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "svg.hashsalt": "kerneltrail",  # the same figure is the same file
}
MOST_LETTERS = 30
"""Letters of all names under a panel that fit beside each other."""
TICKS = [1, 2, 4, 5, 10]
"""Steps between ticks: those that people count in."""
APART = 0.25
"""Inches between the label below a panel and the title of the next."""
WIDE, NARROW = 9.0, 4.2
"""Inches: for a desktop page, and for a telephone."""


def is_narrow(width: float) -> bool:
    """Whether a drawing so many inches wide is for a telephone: then legends and names take more lines."""
    return width < 6.0


@dataclass(frozen=True)
class Curve:
    """A function at increasing x, and how sure it is, all (m,).

    Attributes:
        x: where it is known.
        mean, sd: of the function.
        total: the interval of a new observation, low and high, if shown.
        ends: of the band of the function, low and high, where it is not as wide on either side.
    """

    x: Array
    mean: Array
    sd: Array
    total: tuple[Array, Array] | None = None
    ends: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Dots:
    """Observations, (n,); those that the fit has not `seen` are drawn faintly. Dots of one label look alike."""

    x: Array
    y: Array
    label: str
    seen: bool = True


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
        title: above it.
        xlabel, ylabel: with units.
        curve: the fit.
        dots: observations.
        colour: of the curve.
        truth: the true curve, (x, y), where it is known.
        zero: whether the line at zero is drawn and in view: for effects, whose sign matters.
        mean_label, band_label, total_label: in the legend.
        reach: standard deviations on either side that the bands hold; the labels have to say the same.
        apart: whether the points of the curve do not belong together, so that no line joins them: rows in time whose
            covariates jump, levels of a covariate.
        dates: whether x is a time, in days as matplotlib counts them.
        names: of values of x, which then stand at the axis instead of numbers.
    """

    title: str
    xlabel: str
    ylabel: str
    curve: Curve
    dots: tuple[Dots, ...] = ()
    colour: str = BLUE
    truth: tuple[Array, Array] | None = None
    zero: bool = False
    mean_label: str = "mean"
    band_label: str = "95% of the function"
    total_label: str = "95% of new observations"
    reach: float = WITHIN_95
    apart: bool = False
    dates: bool = False
    names: tuple[tuple[float, str], ...] = ()


def grid(panels: Sequence[Panel], *, columns: int, width: float = WIDE, height: float = 2.3, share: bool) -> Figure:
    """Panels side by side in reading order, with one legend below; `width` is the figure's, `height` a panel's.

    With `share` all have the same limits, so that panels can be compared; axes are then labelled at the edge.
    """
    rows = -(-len(panels) // columns)
    with styled(width, height * rows + 0.5, rows=rows) as figure:
        axes = figure.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)
        for index, (panel, ax) in enumerate(zip(panels, axes.flat, strict=False)):
            _draw(panel, ax)
            below = index + columns < len(panels)
            ax.set_xlabel("" if share and below else panel.xlabel)
            ax.set_ylabel("" if share and index % columns else panel.ylabel)
            if share:
                ax.tick_params(labelbottom=not below)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        legend(figure, columns=2 if is_narrow(width) else 5)
    return figure


class NotebookFigure(Figure):
    """A figure that a notebook shows even if nobody has loaded pyplot, without which a plain `Figure` is but a text."""

    def _repr_png_(self) -> bytes:
        return png(self)


@contextmanager
def styled(width: float, height: float, *, rows: int = 1) -> Iterator[Figure]:
    """An empty figure, in inches, to be drawn on inside the block, where our style holds.

    Panels in several `rows` stand so far apart, in addition to `height`, that a title does not seem to belong to the
    panel above it.
    """
    height += (rows - 1) * APART
    with matplotlib.rc_context(STYLE):
        figure = NotebookFigure(figsize=(width, height), layout="constrained")
        engine = figure.get_layout_engine()
        assert isinstance(engine, ConstrainedLayoutEngine)
        engine.set(hspace=rows * APART / height)  # it is told what all rows take, as a share of the height
        yield figure


def rule(ax: Axes, *, below: bool = True) -> None:
    """Faint lines across, behind what is drawn."""
    ax.grid(axis="y", color=RULE, linewidth=0.6)
    if below:
        ax.set_axisbelow(True)


def _draw(panel: Panel, ax: Axes) -> None:
    curve, colour = panel.curve, panel.colour
    # Levels are few and their intervals matter most; rows are many, and their observations do.
    wide, size = (3.0, 6.5) if panel.names else (1.6, 2.4)
    band = curve.ends or (curve.mean - panel.reach * curve.sd, curve.mean + panel.reach * curve.sd)
    for ends, alpha, label in ((curve.total, 0.12, panel.total_label), (band, 0.30, panel.band_label)):
        if ends is None:
            continue
        low, high = ends
        if panel.apart:
            ax.plot(*_bars(curve.x, low, high), color=colour, alpha=1.5 * alpha, linewidth=wide, label=label)
        else:
            ax.fill_between(curve.x, low, high, color=colour, alpha=alpha, linewidth=0, label=label)
    if panel.apart:
        ax.plot(
            curve.x, curve.mean, color=colour, linestyle="none", marker="o", markersize=size, markeredgewidth=0,
            zorder=4, label=panel.mean_label,
        )  # fmt: skip
    else:
        ax.plot(curve.x, curve.mean, color=colour, linewidth=1.8, label=panel.mean_label)
    if panel.truth is not None:
        ax.plot(*panel.truth, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), label="truth")
    for dots in panel.dots:
        colour, alpha, order = (INK, 0.75, 3) if dots.seen else (FAINT, 0.45, 1)
        ax.scatter(dots.x, dots.y, s=9, linewidths=0, color=colour, alpha=alpha, zorder=order, label=dots.label)
    if panel.zero:
        ax.axhline(0.0, color=FAINT, linewidth=1.0, zorder=1)
    ax.set_title(panel.title)
    rule(ax)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
    if panel.names:
        places = [at for at, _ in panel.names]
        room = 0.5 * (max(places) - min(places) or 1.0)
        ax.set_xlim(min(places) - room, max(places) + room)
        ax.set_xticks(places, [name for _, name in panel.names])
        if sum(len(name) for _, name in panel.names) > MOST_LETTERS:  # they would run into each other
            ax.tick_params(axis="x", labelrotation=40)
    elif panel.dates:
        locator = AutoDateLocator(maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=TICKS))


def _bars(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Upright bars as one line with gaps: one element of a file, however many there are."""
    gap = np.full(len(x), np.nan)
    return np.column_stack([x, x, gap]).ravel(), np.column_stack([low, high, gap]).ravel()


def legend(figure: Figure, *, columns: int) -> None:
    """One legend for all axes, each label once. Colours of curves differ between panels; the titles say which."""
    handles: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        room = {"ncols": columns, "handlelength": 1.6, "columnspacing": 1.4}
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", frameon=False, **room)


def estimates(
    rows: Sequence[int],
    value: Array,
    low: Array,
    high: Array,
    *,
    truth: float | None,
    xlabel: str,
    ylabel: str,
    width: float = WIDE,
) -> Figure:
    """An estimate after each batch, with its interval and the truth; the number of rows runs on a log scale."""
    with styled(width, 2.9) as figure:
        ax = figure.subplots()
        if truth is not None:
            ax.axhline(truth, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), label="truth")
        ax.errorbar(
            rows, value, yerr=[value - low, high - value], color=BLUE, marker="o", markersize=5, linewidth=1.5,
            elinewidth=1.2, capsize=4, label="estimate, with 95% interval",
        )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xticks(list(rows), [str(n) for n in rows])
        ax.minorticks_off()
        ax.set(xlabel=xlabel, ylabel=ylabel)
        rule(ax, below=False)
        legend(figure, columns=2)
    return figure


def forecast(
    mean: Array, ends: tuple[Array, Array], observed: Array, *, xlabel: str, ylabel: str, width: float = WIDE
) -> Figure:
    """Predictions with 95 % intervals beside what was then observed, in time order; misses are marked."""
    x, (low, high) = np.arange(1, len(mean) + 1), ends
    missed = (observed < low) | (observed > high)
    with styled(width, 2.9) as figure:
        ax = figure.subplots()
        ax.vlines(x, low, high, color=BLUE, alpha=0.35, linewidth=3)
        ax.scatter(x, mean, s=14, color=BLUE, marker="_", label="predicted, with 95% interval")
        ax.scatter(x[~missed], observed[~missed], s=14, color=INK, linewidths=0, zorder=3, label="observed")
        if missed.any():
            ax.scatter(
                x[missed], observed[missed], s=34, color=VERMILION, marker="x", zorder=3, label="observed outside"
            )
        ax.set(xlim=(0.0, len(mean) + 1.0), xlabel=xlabel, ylabel=ylabel)
        rule(ax, below=False)
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=TICKS))
        legend(figure, columns=2 if is_narrow(width) else 3)
    return figure


@dataclass(frozen=True)
class Bars:
    """A histogram.

    Attributes:
        title: above it.
        xlabel: with the unit.
        edges: of the bars, one more than bars.
        heights: of the bars.
        discrete: whether bars stand apart, each for one value.
        labels: under the bars, where they stand for names rather than for numbers.
        band: a range to compare with, drawn behind.
    """

    title: str
    xlabel: str
    edges: Sequence[float]
    heights: Sequence[float]
    discrete: bool = False
    labels: Sequence[str] = ()
    band: tuple[float, float] | None = None


def histograms(panels: Sequence[Bars], *, columns: int, width: float = WIDE, height: float = 1.8) -> Figure:
    """Histograms side by side in reading order, each on axes of its own."""
    rows = -(-len(panels) // columns)
    with styled(width, height * rows, rows=rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False)
        for panel, ax in zip(panels, axes.flat, strict=False):
            if panel.band is not None:
                ax.axvspan(*panel.band, color=ORANGE, alpha=0.25, linewidth=0)
            edges = np.asarray(panel.edges)
            apart = 0.8 if panel.discrete else 1.0
            ax.bar((edges[1:] + edges[:-1]) / 2.0, panel.heights, width=apart * np.diff(edges), color=BLUE, linewidth=0)
            ax.set_title(panel.title, parse_math=False)  # a column may be named a$b$
            ax.set_xlabel(panel.xlabel, parse_math=False)
            ax.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=TICKS))
            if panel.labels:
                ax.set_xticks(range(len(panel.labels)), panel.labels, rotation=30, ha="right", parse_math=False)
            else:
                ax.xaxis.set_major_locator(MaxNLocator(4, steps=TICKS))
            rule(ax)
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
    return figure


def svg(figure: Figure) -> bytes:
    """The figure as SVG with its letters as outlines, so that it needs no font; the same every time."""
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "path"}):
        return _printed(FigureCanvasSVG(figure).print_svg, metadata={"Date": None})


def png(figure: Figure, *, dpi: int = 120) -> bytes:
    """The figure as PNG."""
    figure.set_dpi(dpi)
    with matplotlib.rc_context(STYLE):
        return _printed(FigureCanvasAgg(figure).print_png, metadata={"Software": "kerneltrail"})


def _printed(printer: object, **options: object) -> bytes:
    buffer = io.BytesIO()
    printer(buffer, **options)  # type: ignore[operator]
    return buffer.getvalue()

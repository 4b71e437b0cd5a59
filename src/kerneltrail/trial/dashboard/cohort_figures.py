"""Figures of the cohort page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.report.figures import BLUE, INK, Bars, histograms, legend, rule, styled
from kerneltrail.trial.dashboard.drawing import columns, time_axis

BINS = 20


@dataclass(frozen=True)
class Histogram:
    """Probabilities of acting, and their limits."""

    values: tuple[float, ...]
    limits: tuple[float, float]


def draw_histogram(data: Histogram, *, width: float) -> Figure:
    """How often each probability was used."""
    heights, edges = np.histogram(data.values, bins=BINS, range=(0.0, 1.0))
    bars = Bars("How many decisions had which probability", "probability of sending", edges.tolist(), heights.tolist(),
                band=data.limits)  # fmt: skip
    return histograms([bars], columns=1, width=width, height=2.4)


@dataclass(frozen=True)
class Series:
    """A number over time, with intervals where there are any.

    Attributes:
        at: when.
        value: what.
        low, high: of the interval; empty for none.
        updates: when the policy changed.
        ylabel: what the number is.
        label: in the legend.
        goal: where the number should be, or None.
        top: of the axis, or None for what the numbers need.
    """

    at: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    updates: tuple[float, ...]
    ylabel: str
    label: str
    goal: float | None = None
    top: float | None = None


def draw_series(data: Series, *, width: float) -> Figure:
    """A number over time, with a line at each update."""
    with styled(width, 2.6) as figure:
        ax = figure.subplots()
        value = np.array(data.value)
        if data.low:
            reach = [value - np.array(data.low), np.array(data.high) - value]
            ax.errorbar(
                data.at, value, yerr=reach, color=BLUE, marker="o", markersize=4.5, linewidth=1.3, elinewidth=1.2,
                capsize=3, label=data.label,
            )  # fmt: skip
        else:
            ax.plot(data.at, value, color=BLUE, marker="o", markersize=4.5, linewidth=1.3, label=data.label)
        if data.goal is not None:
            ax.axhline(data.goal, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="as it should be")
        ax.set_ylim(0.0, data.top or 1.15 * max(float(np.max(data.high or data.value)), 1e-9))
        ax.set_ylabel(data.ylabel)
        time_axis(ax, data.updates)
        rule(ax)
        legend(figure, columns=columns(width))
    return figure

"""Figures of the desk, by the drawing code of reports: a line at each update on every time axis, and a memory.

Matplotlib's style is one for the whole process, so one figure is drawn at a time.
"""

from __future__ import annotations

import pickle
import textwrap
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter, DateLocator, DayLocator, HourLocator, MonthLocator, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from kerneltrail.report.figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    TICKS,
    VERMILION,
    is_narrow,
    legend,
    rule,
    styled,
)  # fmt: skip
from kerneltrail.report.page import Picture

Array = NDArray[np.float64]
KEPT = 64
"""Pictures that are remembered: a page that is opened again, with nothing new, draws nothing."""
UPDATE = "update of the policy"
LETTERS = 44
"""Of a name on a narrow screen, before its line breaks."""


class Gallery:
    """Draws pictures, one at a time, and remembers the newest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pictures: OrderedDict[bytes, Picture] = OrderedDict()

    def picture(self, draw: Callable[..., Figure], data: Any, alt: str, caption: str) -> Picture:
        """A figure of data in both widths; `draw` takes the data and the width in inches."""
        name = sha256(pickle.dumps((draw.__name__, data, alt, caption))).digest()
        with self._lock:
            known = self._pictures.pop(name, None)
            made = known or Picture.of(partial(_drawn, draw, data), alt, caption)
            self._pictures[name] = made
            if len(self._pictures) > KEPT:
                self._pictures.popitem(last=False)
            return made

    def forget(self) -> None:
        """Drop all of them."""
        with self._lock:
            self._pictures.clear()


def _drawn(draw: Callable[..., Figure], data: Any, width: float) -> Figure:
    return draw(data, width=width)


GALLERY = Gallery()


def places(times: Sequence[datetime], zone: str) -> tuple[float, ...]:
    """Times as matplotlib counts them, on a clock."""
    clock = ZoneInfo(zone)
    return tuple(float(date2num(each.astimezone(clock).replace(tzinfo=None))) for each in times)


def time_axis(ax: Axes, updates: Sequence[float]) -> None:
    """Dates below, at least a day of them, and a line at each update."""
    for place in updates:
        ax.axvline(place, color=FAINT, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=0, label=UPDATE)
    ax.margins(x=0.02)
    sides = np.concatenate([each.dataLim.intervalx for each in ax.get_shared_x_axes().get_siblings(ax)])
    sides = sides[np.isfinite(sides)]
    if sides.size and np.ptp(sides) < 1.0:  # left alone, an axis of a single point spans years, or microseconds
        middle = (sides.min() + sides.max()) / 2.0
        ax.set_xlim(middle - 0.5, middle + 0.5)
    start, end = ax.get_xlim()
    locator = ticks_for(end - start)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def ticks_for(days: float) -> DateLocator:
    """Where an axis of so many days has its ticks: some six of them, at hours, midnights or first days of a month."""
    if days <= 1.5:
        return HourLocator(interval=6 if days > 0.5 else 2 if days > 0.1 else 1)
    if days <= 90:
        return DayLocator(interval=max(1, round(days / 6)))
    return MonthLocator(interval=max(1, round(days / 180)))


def columns(width: float) -> int:
    """Of a legend."""
    return 2 if is_narrow(width) else 4


@dataclass(frozen=True)
class Chances:
    """A participant's decisions over time.

    Attributes:
        at: when each was made.
        probability: of acting; at decisions where nobody could act there is none.
        clipped: whether it stands at a limit.
        mark: what became of it: a key of `MARKS`.
        limits: the least and the largest probability.
        updates: when the policy changed.
    """

    at: tuple[float, ...]
    probability: tuple[float, ...]
    clipped: tuple[bool, ...]
    mark: tuple[str, ...]
    limits: tuple[float, float]
    updates: tuple[float, ...]


MARKS = {
    "arrived": (2.0, {"marker": "^", "color": BLUE}, "sent, arrived"),
    "sent": (2.0, {"marker": "^", "facecolors": "white", "edgecolors": BLUE}, "sent, no report"),
    "lost": (2.0, {"marker": "X", "color": VERMILION}, "sent, did not arrive"),
    "not sent": (1.0, {"marker": "o", "color": INK}, "not sent"),
    "nobody": (0.0, {"marker": "|", "color": FAINT}, "nobody could act"),
}
"""Of each fate of a decision: its line, its look, its words."""


def draw_chances(data: Chances, *, width: float) -> Figure:
    """The probability of acting over time with its limits, and below it what was assigned and what arrived."""
    with styled(width, 3.9) as figure:
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
        at, chance, clipped = (np.array(each) for each in (data.at, data.probability, data.clipped))
        for limit in data.limits:
            top.axhline(limit, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), label="limits")
        for at_limit, look in ((False, {"marker": "o", "color": BLUE}), (True, {"marker": "D", "color": ORANGE})):
            chosen = np.isfinite(chance) & (clipped == at_limit)
            if chosen.any():
                words = "at a limit" if at_limit else "probability"
                top.scatter(at[chosen], chance[chosen], s=16, linewidths=0, zorder=3, label=words, **look)
        top.set(ylim=(0.0, 1.0), ylabel="probability\nof sending")
        top.set_title("With which probability")
        marks = np.array(data.mark)
        for name, (line, look, words) in MARKS.items():
            chosen = marks == name
            if chosen.any():
                on = np.full(chosen.sum(), line)
                below.scatter(at[chosen], on, s=26, linewidths=1.1, zorder=3, label=words, **look)
        below.set(ylim=(-0.6, 2.6), yticks=[0.0, 1.0, 2.0])
        below.set_yticklabels(["nobody\ncould act", "not sent", "sent"])
        below.set_title("What was assigned, and what arrived")
        for ax in (top, below):
            time_axis(ax, data.updates)
            rule(ax)
        legend(figure, columns=columns(width))
    return figure


@dataclass(frozen=True)
class Advantages:
    """What acting was expected to add at each decision, with its interval."""

    at: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    updates: tuple[float, ...]
    ylabel: str


def draw_advantages(data: Advantages, *, width: float) -> Figure:
    """The expected change by acting over time, with 90 % intervals and the line at 0."""
    with styled(width, 2.7) as figure:
        ax = figure.subplots()
        ax.axhline(0.0, color=INK, linewidth=1.0, zorder=1)
        ax.vlines(data.at, data.low, data.high, color=BLUE, alpha=0.4, linewidth=2.2, label="90 % interval")
        ax.scatter(data.at, data.mean, s=16, color=BLUE, linewidths=0, zorder=3, label="expected")
        ax.set_ylabel(data.ylabel, parse_math=False)
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
        time_axis(ax, data.updates)
        rule(ax)
        legend(figure, columns=columns(width))
    return figure


@dataclass(frozen=True)
class Outcomes:
    """Outcomes over time beside what was predicted of them before.

    Attributes:
        at: when.
        value: observed: of a decision, or the mean of several.
        mean, low, high: predicted.
        action: assigned, −1 where nobody could act, if it may be shown; else empty, and all look alike.
        updates: when the policy changed.
        ylabel: the outcome with its unit.
        words: what one dot is.
    """

    at: tuple[float, ...]
    value: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    action: tuple[int, ...]
    updates: tuple[float, ...]
    ylabel: str
    words: str


def draw_outcomes(data: Outcomes, *, width: float) -> Figure:
    """What was observed beside the interval that was predicted for it; by action only where that is in the data."""
    with styled(width, 2.9) as figure:
        ax = figure.subplots()
        at, value = np.array(data.at), np.array(data.value)
        ax.vlines(at, data.low, data.high, color=BLUE, alpha=0.28, linewidth=4.0, label="predicted: 90 % interval")
        ax.scatter(at, data.mean, s=22, color=BLUE, marker="_", label="predicted")
        groups: list[tuple[NDArray[np.bool_], dict[str, Any], str]]
        if data.action:
            action = np.array(data.action)
            groups = [
                (action == 1, {"marker": "^", "color": VERMILION}, "observed, sent"),
                (action == 0, {"marker": "o", "color": INK}, "observed, not sent"),
                (action < 0, {"marker": "s", "color": FAINT}, "observed, nobody could act"),
            ]
        else:
            groups = [(np.ones(len(at), dtype=bool), {"marker": "o", "color": INK}, data.words)]
        for chosen, look, words in groups:
            if not chosen.any():
                continue
            ax.scatter(at[chosen], value[chosen], s=18, linewidths=0, zorder=3, label=words, **look)
        ax.set_ylabel(data.ylabel, parse_math=False)
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
        time_axis(ax, data.updates)
        rule(ax)
        legend(figure, columns=columns(width))
    return figure


@dataclass(frozen=True)
class Shares:
    """Shares over time, a line for each name; each (name, places, shares)."""

    lines: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]
    updates: tuple[float, ...]
    ylabel: str


LOOKS: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o"},
    {"color": VERMILION, "marker": "s"},
    {"color": GREEN, "marker": "^"},
    {"color": ORANGE, "marker": "D"},
    {"color": INK, "marker": "v", "linestyle": (0, (4, 2))},
)
"""Of lines, in their order: told apart by colour and by shape."""


def draw_shares(data: Shares, *, width: float) -> Figure:
    """Shares from 0 to 1 over time."""
    with styled(width, 2.7 + (0.3 if is_narrow(width) else 0.12) * len(data.lines)) as figure:
        ax = figure.subplots()
        for (name, at, share), look in zip(data.lines, LOOKS, strict=False):
            label = textwrap.fill(name.replace("$", r"\$"), LETTERS) if is_narrow(width) else name.replace("$", r"\$")
            ax.plot(at, share, markersize=4.5, linewidth=1.5, label=label, **look)
        ax.set(ylim=(-0.03, 1.03), ylabel=data.ylabel)
        time_axis(ax, data.updates)
        rule(ax)
        legend(figure, columns=1 if is_narrow(width) else 2)
    return figure

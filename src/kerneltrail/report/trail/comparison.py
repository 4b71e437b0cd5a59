"""Methods side by side: error, log density and seconds per batch, with intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from kerneltrail.errors import DataError
from kerneltrail.report import figures
from kerneltrail.report.figures import NARROW, RULE, STYLE, WIDE
from kerneltrail.report.graph.draw import COLOURS
from kerneltrail.report.page import Block, Paragraph, Picture, Section, Table
from kerneltrail.report.trail.numbers import NONE, digits, fixed, signed

METRICS = {
    "rmse": ("RMSE of the next batch", True),
    "log_density": ("log density of the next batch", False),
    "seconds": ("seconds per update", True),
}
"""What is compared: what it is called, and whether less is better."""
MARKERS = "osD^vPX*<>"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))


@dataclass(frozen=True)
class Score:
    """A method's mean over users after t batches: one metric, with an interval where one is known.

    Attributes:
        method: its name.
        t: batches seen before the prediction.
        metric: `rmse`, `log_density` or `seconds`.
        users: how many were averaged over.
        mean: over them.
        low, high: ends of its interval, or None.
    """

    method: str
    t: int
    metric: str
    users: int
    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference:
    """A method minus another over the same users after t batches: one metric, with its interval."""

    method: str
    against: str
    t: int
    metric: str
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``tie``: whether the interval leaves out 0, and on which side."""
        if self.low <= 0.0 <= self.high:
            return "tie"
        less = METRICS.get(self.metric, ("", True))[1]
        return "better" if (self.high < 0.0) == less else "worse"


@dataclass(frozen=True)
class Comparison:
    """Methods compared: scores, and paired differences where they were computed."""

    scores: tuple[Score, ...]
    differences: tuple[Difference, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """In order of first appearance."""
        return tuple(dict.fromkeys(score.method for score in self.scores))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of `METRICS` that were scored, in that order."""
        present = {score.metric for score in self.scores}
        return tuple(metric for metric in METRICS if metric in present)

    @classmethod
    def from_results(cls, results: Mapping[str, Any]) -> Comparison | None:
        """From an experiment's results; None where they compare no methods.

        ``metrics`` is a list of {method, t, users, rmse, log_density, seconds}; an interval of ``rmse`` may stand
        beside it as ``rmse_low`` and ``rmse_high``. ``paired`` is a list of {method, against, t, metric, mean, low,
        high}.
        """
        rows = results.get("metrics")
        if not isinstance(rows, list) or not rows:
            return None
        try:
            scores = tuple(
                Score(
                    str(row["method"]),
                    int(row["t"]),
                    metric,
                    int(row.get("users", 0)),
                    float(row[metric]),
                    _maybe(row.get(f"{metric}_low")),
                    _maybe(row.get(f"{metric}_high")),
                )
                for row in rows
                for metric in METRICS
                if row.get(metric) is not None
            )
            names = ("method", "against", "t", "metric", "mean", "low", "high")
            differences = tuple(
                Difference(**{name: row[name] for name in names})
                for row in results.get("paired", ())
                if all(row.get(name) is not None for name in names)
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise DataError(f"the results hold metrics that cannot be read: {problem!r}") from None
        return cls(scores, differences) if scores else None


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def comparison_section(comparison: Comparison) -> Section:
    """The section on methods: a figure, a table of means, and a table of differences with what they say."""
    users = max(score.users for score in comparison.scores)
    blocks: list[Block] = [
        Paragraph(
            f"After each batch, {len(comparison.methods)} methods predict the next one"
            + (f", for up to {users} users" if users else "")
            + ". Low RMSE and high log density are good."
        ),
        Picture(
            figures.svg(figure(comparison, width=WIDE)),
            figures.svg(figure(comparison, width=NARROW)),
            f"{', '.join(METRICS[metric][0] for metric in comparison.metrics)} by number of batches seen, for "
            f"{', '.join(comparison.methods)}.",
            "Means over users, by batches seen; bars are 90 % intervals where they were computed.",
        ),
        *(_means(comparison, metric) for metric in comparison.metrics),
    ]
    if comparison.differences:
        blocks += [Paragraph(_said(comparison)), _differences(comparison)]
    return Section("How do methods compare?", blocks, "comparison")


def _means(comparison: Comparison, metric: str) -> Table:
    own = [score for score in comparison.scores if score.metric == metric]
    times = sorted({score.t for score in own})
    found = {(score.method, score.t): score for score in own}
    rows = [
        [method, *(_cell(found.get((method, t)), metric) for t in times)]
        for method in comparison.methods
        if any((method, t) in found for t in times)
    ]
    return Table(METRICS[metric][0], ("method", *(f"t = {t}" for t in times)), rows)


def _cell(score: Score | None, metric: str) -> str:
    if score is None:
        return NONE
    return digits(score.mean) if metric == "seconds" else fixed(score.mean)


def _differences(comparison: Comparison) -> Table:
    rows = [
        [
            f"{own.method} − {own.against}",
            METRICS.get(own.metric, (own.metric, True))[0],
            str(own.t),
            signed(own.mean, 3),
            f"{signed(own.low, 3)} to {signed(own.high, 3)}",
            own.verdict,
        ]
        for own in comparison.differences
    ]
    caption = "Differences over the same users, with their intervals: better or worse where the interval leaves out 0"
    return Table(caption, ("methods", "of what", "t", "mean", "interval", "says"), rows)


def _said(comparison: Comparison) -> str:
    """How often each method is better, tied or worse than each other, over batches: computed, and said plainly."""
    sentences = []
    pairs = dict.fromkeys((own.method, own.against) for own in comparison.differences)
    for method, against in pairs:
        clauses = []
        for metric, (title, _) in METRICS.items():
            own = [d for d in comparison.differences if (d.method, d.against, d.metric) == (method, against, metric)]
            if own:
                verdicts = [d.verdict for d in own]
                tally = ", ".join(f"{verdicts.count(v)} {v}" for v in ("better", "tie", "worse") if v in verdicts)
                clauses.append(f"{title}: {tally}")
        if clauses:
            sentences.append(f"{method} against {against}, over batches: {'; '.join(clauses)}.")
    return " ".join(sentences)


def figure(comparison: Comparison, *, width: float) -> Figure:
    """A panel for each metric: means over users by batches seen, a line with its own colour, mark and dash a method."""
    metrics = comparison.metrics
    narrow = width < 6
    with matplotlib.rc_context(STYLE):
        rows, columns = (len(metrics), 1) if narrow else (1, len(metrics))
        made = Figure(figsize=(width, (2.4 * rows if narrow else 3.2) + 0.3), layout="constrained")
        axes = made.subplots(rows, columns, squeeze=False)
        methods = comparison.methods
        for ax, metric in zip(axes.flat, metrics, strict=True):
            for place, method in enumerate(methods):
                own = sorted(
                    (s for s in comparison.scores if s.metric == metric and s.method == method), key=lambda s: s.t
                )
                if not own:
                    continue
                nudge = 0.5 * (place - (len(methods) - 1) / 2) / max(len(methods), 2)  # so that bars stand side by side
                x = np.array([score.t for score in own]) + 0.5 * nudge
                mean = np.array([score.mean for score in own])
                low = np.array([np.nan if score.low is None else score.mean - score.low for score in own])
                high = np.array([np.nan if score.high is None else score.high - score.mean for score in own])
                spread = None if np.isnan(low).all() else np.nan_to_num(np.maximum([low, high], 0.0))
                ax.errorbar(
                    x,
                    mean,
                    yerr=spread,
                    color=COLOURS[place % len(COLOURS)],
                    marker=MARKERS[place % len(MARKERS)],
                    linestyle=DASHES[place // len(COLOURS) % len(DASHES)],
                    markersize=4.5,
                    linewidth=1.5,
                    elinewidth=1.0,
                    capsize=2.5,
                    label=method,
                )
            if metric == "seconds":
                ax.set_yscale("log")
            ax.set_title(METRICS[metric][0])
            ax.set_xlabel("batches seen")
            ax.set_xticks(sorted({score.t for score in comparison.scores}))
            ax.grid(axis="y", color=RULE, linewidth=0.6)
            ax.set_axisbelow(True)
        figures.legend(made, columns=2 if narrow else 5)
    return made

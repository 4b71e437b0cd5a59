"""An evaluation as Markdown, as ``kerneltrail tables DIR`` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kerneltrail.evaluation.result import Average, Difference, Evaluation
from kerneltrail.evaluation.verdicts import VERDICTS, tally


def _share(value: float) -> str:
    return f"{100 * value:.0f}"


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _milliseconds(value: float) -> str:
    scaled = 1e3 * value
    return f"{scaled:.0f}" if abs(scaled) >= 9.95 else f"{scaled:.2f}"


TITLES: dict[str, tuple[str, Callable[[float], str]]] = {
    "rmse": ("RMSE of the next batch", _plain),
    "log_density": ("Mean log predictive density of the next batch", _plain),
    "coverage50": ("Per cent of the next batch inside 50 % intervals", _share),
    "coverage90": ("Per cent of the next batch inside 90 % intervals", _share),
    "length90": ("Length of 90 % intervals of the next batch", _plain),
    "right": ("Per cent of users whose kernel is the true one", _share),
    "cpu_seconds": ("Milliseconds of the processor for one update", _milliseconds),
    "products": ("Products", _plain),
    "hyperparameters": ("Hyperparameters, noise included", _plain),
    "covariates": ("Covariates used", _plain),
    "changed": ("Per cent of users whose kernel changes with the next batch", _share),
}
"""Metrics of method §11 in the order shown, with how their values are written."""

COMPARED = ("rmse", "log_density", "right", "changed", "cpu_seconds")
"""Metrics whose differences are shown."""


def markdown(evaluation: Evaluation, *, against: str | None = None) -> str:
    """Tables of all metrics with intervals, and of differences; methods down, batches seen across.

    First comes where the method compared wins, ties and loses by the intervals of the differences.
    """
    averages, pairs = evaluation.summary(), evaluation.paired(against)
    parts = [_tally(pairs, metric) for metric in ("rmse", "log_density") if any(row.metric == metric for row in pairs)]
    for metric, (title, form) in TITLES.items():
        rows = [row for row in averages if row.metric == metric]
        if rows:
            parts.append(f"**{title}**\n\n{_table(_cells(rows, form))}")
    for metric in COMPARED:
        differences = [row for row in pairs if row.metric == metric]
        if differences:
            title, form = TITLES[metric]
            named = f"**{differences[0].first} minus each: {title[0].lower() if metric != 'rmse' else 'R'}{title[1:]}**"
            parts.append(f"{named}\n\n{_table(_cells(differences, form))}")
    return "\n\n".join(parts) + "\n"


def _tally(pairs: Sequence[Difference], metric: str) -> str:
    lines = [_line(["against", *VERDICTS]), "|---" * (1 + len(VERDICTS)) + "|"]
    for second, at in tally(pairs, metric).items():
        lines.append(_line([second, *(", ".join(map(str, times)) or "–" for times in at.values())]))
    return f"**{TITLES[metric][0]}: batches seen at which {pairs[0].first}**\n\n" + "\n".join(lines)


def _cells(rows: Iterable[Average] | Iterable[Difference], form: Callable[[float], str]) -> dict[tuple[str, int], str]:
    """Mean and interval; the mean of a difference is bold where its interval leaves 0 out."""
    cells = {}
    for row in rows:
        mean = form(row.mean)
        if isinstance(row, Difference):
            mean = f"+{mean}" if row.mean > 0 else mean
            mean = mean if row.low <= 0.0 <= row.high else f"**{mean}**"
        name = row.second if isinstance(row, Difference) else row.method
        cells[name, row.t] = f"{mean} [{form(row.low)}, {form(row.high)}]"
    return cells


def _table(cells: dict[tuple[str, int], str]) -> str:
    times = sorted({t for _, t in cells})
    lines = [_line(["batches seen", *map(str, times)]), "|---|" + "--:|" * len(times)]
    for method in dict.fromkeys(name for name, _ in cells):
        lines.append(_line([method, *(cells.get((method, t), "") for t in times)]))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

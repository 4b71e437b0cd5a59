"""An evaluation on the terminal: a table for each metric, methods down, batches across; then the differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kerneltrail.cli.terminal import results
from kerneltrail.studies.bench.benchmark import duration

if TYPE_CHECKING:
    from kerneltrail.evaluation import Difference, Evaluation

FEW = 5
"""With fewer test users than this, a bootstrap over them says next to nothing, and the reader is told so."""

MOST = 7
"""Batches shown beside each other; more do not fit a terminal, and stand in the files."""

SHOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "rmse": ("RMSE of the next batch", lambda value: f"{value:.3f}"),
    "log_density": ("Mean log predictive density of the next batch", lambda value: f"{value:.3f}"),
    "coverage90": ("Share of the next batch inside 90 % intervals", lambda value: f"{value:.0%}"),
    "right": ("Users whose kernel is the true one", lambda value: f"{value:.0%}"),
    "cpu_seconds": ("Processor time of an update", duration),
}


def show(evaluation: Evaluation) -> None:
    """Print the tables of an evaluation."""
    console = results()
    times = _some(evaluation.times)
    for table in tables(evaluation, times):
        console.print(table)
    if len(times) < len(evaluation.times):
        console.print(f"Batches {', '.join(map(str, times))} of 0 to {evaluation.times[-1]}; all are in summary.csv.")
    if 0 < (users := max((row.users for row in evaluation.summary()), default=0)) < FEW:
        who = "one test user" if users == 1 else f"{users} test users"
        console.print(f"Only {who}: an interval over so few is hardly more than their range. Test more (--runs).")


def tables(evaluation: Evaluation, times: Sequence[int]) -> list[Table]:
    """One table for each metric that somebody has, and one for each difference."""
    averages, pairs = evaluation.summary(), evaluation.paired()
    shown = []
    for metric, (title, form) in SHOWN.items():
        rows = [row for row in averages if row.metric == metric]
        if rows:
            shown.append(_table(title, {(row.method, row.t): form(row.mean) for row in rows}, times))
    for metric, better in (("rmse", "below 0 is better"), ("log_density", "above 0 is better")):
        own_pairs = [row for row in pairs if row.metric == metric]
        if own_pairs:
            title = f"{own_pairs[0].first} minus each: {SHOWN[metric][0]}; {better}; with 90 % intervals over users"
            shown.append(_table(title, {(row.second, row.t): _cell(row) for row in own_pairs}, times))
    return shown


def _cell(row: Difference) -> str:
    """Mean, low and high under each other; bold where the interval leaves 0 out."""
    style = "dim" if row.low <= 0.0 <= row.high else "bold"
    return f"[{style}]{row.mean:+.3f}[/]\n[dim]{row.low:+.3f}\n{row.high:+.3f}[/]"


def _table(title: str, cells: dict[tuple[str, int], str], times: Sequence[int]) -> Table:
    table = Table(
        title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    table.add_column("batches seen", no_wrap=True)
    columns = [t for t in times if any(t == at for _, at in cells)]
    for t in columns:
        table.add_column(str(t), justify="right", no_wrap=True)
    for method in dict.fromkeys(name for name, _ in cells):
        table.add_row(method, *(cells.get((method, t), "") for t in columns))
    return table


def _some(times: Sequence[int]) -> list[int]:
    """The first four, and others spread evenly to the last."""
    if len(times) <= MOST:
        return list(times)
    rest, places = times[4:], MOST - 4
    return [*times[:4], *(rest[round((i + 1) * len(rest) / places) - 1] for i in range(places))]

"""A data check as text, for a terminal: the columns as a table, then findings, the worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kerneltrail.data.checks.clock import span
from kerneltrail.data.checks.findings import SEVERITIES, ColumnSummary, Finding
from kerneltrail.data.checks.values import percent
from kerneltrail.kernels.phrases import number

if TYPE_CHECKING:
    from kerneltrail.data.checks.data_check import DataCheck

WIDTH = 100
_HEADS = ("column", "as", "missing", "distinct", "smallest", "10 %", "median", "90 %", "largest")


def lines(check: DataCheck) -> Iterator[str]:
    """The whole page."""
    yield from opening(check)
    yield ""
    yield from columns(check.columns)
    for severity in SEVERITIES:
        for finding in check.of(severity):
            yield ""
            yield from _paragraph(finding)
    yield ""
    if not check.findings:
        yield "Nothing stands out."
    if check.fine:
        yield from textwrap.wrap(f"Looked for and not found: {', '.join(check.fine)}.", WIDTH)


def opening(check: DataCheck) -> Iterator[str]:
    """How much there is, and from when to when."""
    batches = ""
    if check.batches is not None:
        batches = f", {_counted(check.batches, 'batch')} of {_range(check.rows_per_batch)} rows"
    rows = f"{_counted(check.rows, 'row')} ({_range(check.rows_per_user)} a user)"
    yield f"{check.source}: {_counted(check.users, 'user')}, {rows}{batches}"
    times = check.times
    if times is not None:
        yield f"from {times.first} to {times.last}" + ("" if times.kind == "times" else f" ({times.kind})")
        if times.step is not None and times.longest is not None:
            usual = f"half of the rows come within {span(times.step)} of the user's row before"
            yield f"{usual}; the longest gap is {span(times.longest)} (user {times.user!r})"


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}{'es' if thing.endswith('ch') else 's'}"


def _range(sizes: tuple[int, float, int]) -> str:
    return str(sizes[0]) if sizes[0] == sizes[2] else f"{sizes[0]} to {sizes[2]}"


def cells(column: ColumnSummary) -> list[str]:
    """One column as a row of a table: shares, and smallest, 10 %, median, 90 % and largest value."""
    name = f"{column.name} ({column.unit})" if column.unit else column.name
    missing = percent(column.missing) if column.missing else "–"
    inner = [column.quantiles[i] for i in (0, 2, 3, 4, 6)] if column.quantiles else []
    return [name, column.role, missing, str(column.distinct), *map(number, inner)]


def level_shares(column: ColumnSummary) -> str:
    """The levels of a categorical covariate with their shares."""
    return ", ".join(f"{level} {percent(count / max(column.rows, 1))}" for level, count in column.levels.items())


def columns(summaries: Sequence[ColumnSummary]) -> Iterator[str]:
    """The columns as a table of text."""
    rows = [cells(column) for column in summaries]
    widths = [max(len(row[i]) for row in (_HEADS, *rows) if i < len(row)) for i in range(len(_HEADS))]

    def laid(row: Sequence[str]) -> str:
        aligned = [
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=False))
        ]
        return "  ".join(aligned).rstrip()

    yield laid(_HEADS)
    for column, row in zip(summaries, rows, strict=True):
        yield laid(row) + (f"  {level_shares(column)}" if column.levels else "")


def _paragraph(finding: Finding) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{finding.severity}: {sentence(finding.message)}", WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )
    if finding.advice:
        yield from textwrap.wrap(
            finding.advice, WIDTH, initial_indent="  → ", subsequent_indent="    ", break_on_hyphens=False
        )


def sentence(message: str) -> str:
    """What was seen, with a full stop."""
    return message if message.endswith((".", "?", "!")) else f"{message}."


def brief(findings: Sequence[Finding], more: str, most: int = 5) -> list[str]:
    """A few lines for a command that goes on anyway: what was seen, and who says more."""
    warnings = [finding for finding in findings if finding.severity != "note"]
    shown = [f"warning: {sentence(finding.message)}" for finding in warnings[:most]]
    left = len(warnings) - most
    return [*shown, f"{f'and {left} more; ' if left > 0 else ''}{more}"] if shown else []

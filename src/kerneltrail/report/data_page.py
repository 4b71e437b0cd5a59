"""The page about a table before anything is fitted: findings in words, columns in numbers, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from kerneltrail.data import DataCheck
from kerneltrail.data.checks import ColumnSummary
from kerneltrail.data.checks.page import cells, level_shares, opening
from kerneltrail.kernels.phrases import number
from kerneltrail.report import figures
from kerneltrail.report.findings import HEADINGS, Findings
from kerneltrail.report.page import Block, Paragraph, Picture, Section, Table, page

PER_PICTURE = 12
"""Histograms in one picture: taller ones break badly on paper."""
_LONG = 26
"""Letters of a column's name above its histogram."""


def data_page(check: DataCheck, title: str | None = None) -> str:
    """A data check as one HTML file that fetches nothing."""
    first, *rest = opening(check)
    blocks: list[Block] = [Findings(severity, check.of(severity)) for severity in HEADINGS if check.of(severity)]  # type: ignore[arg-type]
    if not blocks:
        blocks = [Paragraph("Nothing stands out.")]
    fine = Paragraph(f"Looked for and not found: {', '.join(check.fine)}.")
    return page(
        title or f"A first look at {check.source}",
        f"{'. '.join([first, *(line[:1].upper() + line[1:] for line in rest)])}. Nothing was changed.",
        [
            Section("Findings", [*blocks, *([fine] if check.fine else [])], "findings"),
            Section("Columns in numbers", _tables(check.columns), "columns"),
            Section("How values are spread", _pictures(check.columns), "spread"),
        ],
        footer=f"Written by kerneltrail {version('kerneltrail')}.",
    )


def _tables(columns: Sequence[ColumnSummary]) -> list[Block]:
    heads = ("column", "as", "missing", "distinct", "smallest", "1 %", "10 %", "median", "90 %", "99 %", "largest")
    rows = [[*cells(column)[:4], *map(number, column.quantiles)] for column in columns if not column.levels]
    tables: list[Block] = [Table("A tenth of the values lies below the one at 10 %, and so on.", heads, rows)]
    named = [[*cells(column)[:3], level_shares(column)] for column in columns if column.levels]
    if named:
        tables.append(Table("Categorical covariates", ("column", "as", "missing", "levels"), named, words=True))
    return tables


def _pictures(columns: Sequence[ColumnSummary]) -> list[Block]:
    drawn = [column for column in columns if column.histogram is not None or column.levels]
    if not drawn:
        return [Paragraph("There is nothing to draw.")]
    compared = any(column.pilot is not None for column in drawn)
    caption = "How many rows have which value, in the units of the table."
    caption += " Shaded: from the smallest to the largest value of the pilot users." if compared else ""
    caption += " Values far from all others are left out and counted above." if any(map(_outside, drawn)) else ""
    pictures: list[Block] = []
    for begin in range(0, len(drawn), PER_PICTURE):
        part = drawn[begin : begin + PER_PICTURE]
        alt = "Histograms of " + ", ".join(column.name for column in part)
        panels = [_bars(column) for column in part]
        pictures.append(
            Picture.of(
                lambda width, panels=panels: figures.histograms(panels, columns=3 if width > 6 else 2, width=width),  # type: ignore[misc]
                alt,
                caption if begin + PER_PICTURE >= len(drawn) else "",
            )
        )
    return pictures


def _outside(column: ColumnSummary) -> int:
    return column.histogram.outside if column.histogram is not None else 0


def _bars(column: ColumnSummary) -> figures.Bars:
    name = column.name if len(column.name) <= _LONG else f"{column.name[: _LONG - 1]}…"
    if column.histogram is None:
        edges = [i - 0.5 for i in range(len(column.levels) + 1)]
        return figures.Bars(name, "", edges, list(column.levels.values()), True, list(column.levels))
    title = f"{name} ({_outside(column)} far)" if _outside(column) else name
    drawn = column.histogram
    return figures.Bars(title, column.unit, drawn.edges, drawn.counts, drawn.discrete, band=column.pilot)

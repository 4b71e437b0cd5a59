"""Checks of columns that would have been covariates had all of their cells been numbers."""

from __future__ import annotations

from collections.abc import Iterator

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.columns import decimal_commas, number_or_none
from kerneltrail.kernels.phrases import listing

_MOSTLY = 0.8
_SHOWN = 3


def texts(data: Inspection) -> Iterator[Finding]:
    """Columns of texts that are numbers but for some cells, or are written with decimal commas."""
    table = data.rows.table
    for name in data.candidates if table is not None else ():
        if table is None or name in data.schema.covariates:
            continue
        commas = decimal_commas(table, name)
        if commas:
            message = f"column {name!r} {commas}"
            yield Finding("warning", "decimal-comma", (name,), (), (), message, "As it is, the column is not used.")
            continue
        cells = {row: value for row, value in enumerate(table.column(name)) if value is not None}
        odd = [row for row, value in cells.items() if number_or_none(table, value) is None]
        if odd and len(odd) <= (1.0 - _MOSTLY) * len(cells):
            shown = [f"{cells[row]!r} in {table.place(row)}" for row in odd[:_SHOWN]]
            more = [f"{len(odd) - _SHOWN} more"] if len(odd) > _SHOWN else []
            message = f"column {name!r} holds numbers in {len(cells) - len(odd)} of {len(cells)} rows, but "
            message += listing([*shown, *more])
            advice = "As it is, the column is not used. Write numbers throughout, and leave empty what is not known."
            numbers = tuple(row + 1 for row in odd)
            yield Finding("warning", "text", (name,), (), numbers, message, advice)


CHECKS = (Check("numbers written as texts", texts, lambda data: bool(data.candidates)),)

"""Checks of columns that would have been covariates had all of their cells been numbers."""

from __future__ import annotations

from collections.abc import Iterator

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.columns import decimal_commas, number_or_none
from kerneltrail.data.table import Table
from kerneltrail.kernels.phrases import listing

LEFT_OUT = "left-out"
"""The code of columns that are no covariates since they hold no numbers."""
_MOSTLY = 0.8
_SHOWN, _NAMED = 3, 10


def texts(data: Inspection) -> Iterator[Finding]:
    """Columns of texts: numbers but for some cells, or with decimal commas, and all others, which are not used."""
    table = data.rows.table
    others: list[str] = []
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
        elif odd:
            others.append(name)
    if table is not None and others:
        yield _left_out(table, others)


def _left_out(table: Table, names: list[str]) -> Finding:
    """What is told of columns that hold no numbers, which nobody asked for."""
    several = len(names) > 1
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    shown = listing([*map(repr, names[:_NAMED]), *more])
    message = f"column{'s' if several else ''} {shown} {'hold' if several else 'holds'} no numbers and "
    message += f"{'are' if several else 'is'} not used"
    advice = (
        "To use one, declare its levels in their order, --levels NAME=a,b,c (categorical= in Python), or make columns "
        "of 0 and 1 where they have none, such as places."
    )
    truths = [name for name in names if _is_truth(table, name)]
    if truths:
        which = "it" if len(truths) == len(names) == 1 else listing(map(repr, truths))
        use = f"To use {which}, of true and false, name all covariates with --covariates."
        advice = use if len(truths) == len(names) else f"{use} {advice}"
    return Finding("note", LEFT_OUT, tuple(names), (), (), message, advice)


def _is_truth(table: Table, name: str) -> bool:
    return all(str(value).strip().lower() in ("true", "false") for value in table.column(name) if value is not None)


CHECKS = (Check("numbers written as texts", texts, lambda data: bool(data.candidates)),)

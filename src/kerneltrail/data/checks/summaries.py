"""Columns in numbers: quantiles, shares, and what a histogram needs."""

from __future__ import annotations

import numpy as np

from kerneltrail.data.checks.findings import QUANTILES, ColumnSummary, Histogram
from kerneltrail.data.checks.inspection import Inspection
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.kernels import Array

_BINS = 30
_FEW = 40
"""Whole numbers over a range of at most so many have a bar each."""


def summaries(data: Inspection) -> tuple[ColumnSummary, ...]:
    """Every column: the target first, then the covariates, then the others. What is empty in the table is missing."""
    schema = data.schema
    roles = {schema.target: "target", **dict.fromkeys(schema.covariates, "covariate")}
    for label in ("action", "availability", "probability"):
        column = getattr(schema, label)
        if column is not None:
            roles.setdefault(column, label)
    return tuple(_summary(data, name, role) for name, role in roles.items())


def _summary(data: Inspection, name: str, role: str) -> ColumnSummary:
    present = data.present(name)
    if name in data.rows.idle:
        present = present[~data.rows.idle[name][present]]
    values = data.rows.values[name][present]
    levels = data.schema.levels.get(name, ())
    counts = {level: int(np.sum(values == code)) for code, level in enumerate(levels)}
    return ColumnSummary(
        name,
        role,
        data.schema.unit(name),
        users=len(data.rows.users_of(present)),
        rows=len(values),
        missing=1.0 - len(values) / data.rows.count if data.rows.count else 0.0,
        distinct=len(np.unique(values)),
        quantiles=tuple(np.quantile(values, QUANTILES).tolist()) if len(values) and not levels else (),
        levels=FrozenDict(counts),
        histogram=histogram(data.usual(name) if name in data.measured else values, len(values)) if not levels else None,
        pilot=None if data.pilot is None else data.pilot.range(name),
    )


def histogram(values: Array, rows: int) -> Histogram | None:
    """Counts of values over their range, of `rows` in all; whole numbers of a short range have a bar each.

    >>> histogram(np.array([0.0, 1.0, 1.0, 3.0]), 5)
    Histogram(edges=(-0.5, 0.5, 1.5, 2.5, 3.5), counts=(1, 2, 0, 1), outside=1, discrete=True)
    """
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    whole = abs(low) < 1e15 and high < 1e15 and bool((values == np.round(values)).all())
    discrete = whole and high - low <= _FEW
    if whole:  # bars that hold different numbers of whole numbers would look like a pattern
        width = 1.0 if discrete else np.ceil((high - low + 1.0) / _BINS)
        edges = np.arange(low - 0.5, high + 0.5 + width, width)
    else:
        edges = np.linspace(low, high, _BINS + 1)
        if not (np.diff(edges) > 0.0).all():  # equal but for rounding
            half = 0.5 * max(abs(low), 1.0)
            edges = np.array([low - half, low + half])
    counts = np.histogram(values, edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), rows - int(counts.sum()), discrete)

"""Values of a batch far outside what pilot users had: another unit, a code for a missing value, columns mixed up.

They are taken in, with a warning: a new user may be unlike everybody else, and whoever sends rows may know better.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from kerneltrail.data.assignment import Mask
from kerneltrail.data.checks.pilot import would_fit
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import counted, listing, number
from kerneltrail.trajectory.graph import LearntGraph

_JUDGED: ContextVar[bool] = ContextVar("judged", default=False)


@contextmanager
def judged() -> Iterator[None]:
    """Within it nothing is told: rows of a table were compared with the pilot users' when it was checked."""
    token = _JUDGED.set(True)
    try:
        yield
    finally:
        _JUDGED.reset(token)


def warn_of_values(model: LearntGraph, name: str, X: Array, y: Array | None = None) -> None:
    """Tell of values, in data units, that lie beyond what is plausible of new people (`PilotSummary.plausible`).

    Outcomes are told where the pilot users' have a known end, as a rating has: others may lie anywhere.
    """
    low, high = model.pilot.bounds
    beyond = (low > X) | (high < X)
    off = None if y is None else _off_scale(model, y)
    if (off is None and not beyond.any()) or _JUDGED.get():
        return
    if not np.isfinite(X).all():  # which is refused
        return
    columns = [(column, X[:, i], beyond[:, i]) for i, column in enumerate(model.covariates) if beyond[:, i].any()]
    rows: Mask = np.asarray(beyond.any(axis=1))
    if off is not None and y is not None:
        columns.append((model.schema.target, y, off))
        rows |= off
    told = listing([_compared(model, *each, several=len(columns) > 1) for each in columns])
    fits = "".join(would_fit(values, model.pilot.quantiles.get(column, ())) for column, values, _ in columns[:1])
    count = int(rows.sum())
    warnings.warn(
        f"user {name!r}: {count} of {counted(len(rows), 'row')} {'holds' if count == 1 else 'hold'} values far outside "
        f"those of the pilot users: {told}. Is it the same unit, and the same order of columns?{fits} If the values "
        "are right, predictions there say little",
        stacklevel=4,
    )


def _off_scale(model: LearntGraph, y: Array) -> Mask | None:
    """Outcomes beyond an end of the scale, by as much as makes them implausible; None if there are none."""
    shape = model.shape
    if shape is None:
        return None
    floor, ceiling = shape.floor is not None, shape.ceiling is not None
    known = model.pilot.plausible_target if floor or ceiling else None
    if known is None or not ((floor and y.min() < known[0]) or (ceiling and y.max() > known[1])):
        return None
    return ((y < known[0]) & floor) | ((y > known[1]) & ceiling)


def _compared(model: LearntGraph, column: str, values: Array, beyond: Mask, *, several: bool) -> str:
    """A column of a batch beside the pilot users'."""
    least, most, unit = float(values.min()), float(values.max()), model.schema.unit(column)
    known = model.pilot.range(column)
    here = number(least) if np.isclose(least, most) else f"from {number(least)} to {number(most)}"
    in_rows = f", in {counted(int(beyond.sum()), 'row')}" if several else ""
    theirs = (
        f"its levels are 0 to {len(model.schema.levels[column]) - 1}"
        if known is None
        else f"theirs from {number(known[0])} to {number(known[1])}"
    )
    return f"{column} is {here}{f' {unit}' if unit else ''}{in_rows} ({theirs})"

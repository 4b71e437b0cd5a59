"""A batch of a followed user as callers hand it over, read as the model's schema says, and scaled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.arrays import read_numbers
from kerneltrail.data.assignment import IMPOSSIBLE, Assigned, Assignment
from kerneltrail.data.columns import order_cells
from kerneltrail.data.frames import NamedRows, check_same_index, read_rows
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import rounded
from kerneltrail.trajectory.beyond import warn_of_values
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.lateness import OrderCells


def covariate_rows(model: LearntGraph, X: Any, updated: str | None = None) -> tuple[NamedRows | None, Array]:
    """`read_rows` as the model's schema says."""
    return read_rows(X, model.covariates, model.schema, updated)


def read_batch(model: LearntGraph, name: str, X: Any, y: Any, assigned: Assigned) -> tuple[User, OrderCells | None]:
    """A batch of the user of that name, scaled and less the population mean; and its times, where it came with some.

    Who was given no name takes that of the rows, so that nobody else's can come after them.
    """
    named, rows = covariate_rows(model, X, name)
    schema, times = model.schema, None
    if named is not None:
        name = named.user_of(schema.user, name)
        if schema.order in named.table:
            times = order_cells(named.table, schema.order, schema.time_format)
    if y is None:
        if named is None:
            raise DataError(f"user {name!r}: rows without names need their outcomes beside them: update(X, y)")
        y = named.target(schema.target)
    else:
        check_same_index(X, y)
    target = np.array(read_numbers(y, "rows"), ndmin=1)
    if target.shape != (len(rows),):
        raise DataError(
            f"user {name!r}: an update needs one outcome for each of {len(rows)} rows, got shape {target.shape}"
        )
    logged = assignment_of(model, name, named, assigned, "update")
    assignment = filled(model, logged)
    columns: dict[str, Array | None] = {}
    if assignment is not None:
        assignment = assignment.checked(len(target), f"user {name!r}: an update")
        available = assignment.available
        if schema.available_only and available is not None and not available.all():
            raise DataError(
                f"user {name!r}: nobody could act in {_place(named, int(np.argmin(available)))}; the model was learnt "
                "without such rows: leave them out"
            )
        columns = {"action": assignment.action, "probability": assignment.probability, "availability": available}
    batch = User(name, model.covariates, rows, target, (len(target),), **columns)
    if not isinstance(assigned[0], Assignment):  # what was read before was judged then
        if logged is not None:
            _warn_of_contradictions(name, logged.checked(len(target), f"user {name!r}: an update"), named)
        warn_of_values(model, name, batch.X, batch.y)
    scaled = model.scaler.apply(batch)
    return scaled if model.mean is None else model.mean.centred(scaled), times


def read_ahead(
    model: LearntGraph, name: str, X: Any, assigned: Assigned, *, fresh: bool = False
) -> tuple[NamedRows | None, Array, Assignment | None]:
    """Rows to predict for the user of that name, as they came, scaled, and with what is assigned there.

    Of somebody `fresh`, of whom neither a name nor a row is known, the same is said whoever the rows are of.
    """
    named, rows = covariate_rows(model, X)
    if named is not None and not fresh:
        named.user_of(model.schema.user, name, "a prediction")
    assignment = filled(model, assignment_of(model, name, named, assigned, "predict"))
    if assignment is not None:
        assignment.valid(len(rows), f"user {name!r}", "a prediction")
    scaled = model.scaler.transform(rows)
    if not isinstance(assigned[0], Assignment):
        warn_of_values(model, name, rows)
    return named, scaled, assignment


def _warn_of_contradictions(name: str, assignment: Assignment, named: NamedRows | None) -> None:
    """Tell of rows that were logged wrongly; an app has no `kerneltrail check` that looks at its batches."""
    for rows, said, so in (
        (assignment.impossible, IMPOSSIBLE, "nothing is learnt from such a row of what the action does"),
        (
            assignment.contradicted,
            "action 1 although its probability is 0, or action 0 although that is 1",
            "the probability has to be that of action 1",
        ),
    ):
        if count := int(rows.sum()):
            more = f", and in {count} of {len(rows)} rows altogether" if count > 1 else ""
            first = _place(named, int(np.argmax(rows)))
            warnings.warn(f"user {name!r}: {said}, in {first}{more}; {so}", stacklevel=4)


def _place(named: NamedRows | None, row: int) -> str:
    return f"row {row + 1}" if named is None else named.table.place(row)


def assignment_of(
    model: LearntGraph, name: str, named: NamedRows | None, assigned: Assigned, asked: str
) -> Assignment | None:
    """What was assigned, for a reward model, which needs it; left aside without one, as by every method.

    Where nobody could act, neither action nor probability needs to be there, as in a table.
    """
    reward, schema = model.reward, model.schema
    if reward is None or not reward.acts:
        return None
    if named is not None:
        assigned = named.assigned(schema, assigned)
    assignment = Assignment.read(*assigned)
    if assignment is None:
        needs = f"user {name!r}: this model has a reward model, so {asked} needs action="
        if named is None or schema.action is None:
            raise DataError(needs)
        try:
            named.table.column(schema.action, schema.roles)
        except DataError as lack:
            raise DataError(f"{needs}, or its column: {lack}") from None
    assert assignment is not None
    typical = reward.typical
    if named is not None and assignment is not assigned[0] and asked == "update":
        lacks = f"user {name!r}: the rows have no column {{!r}}, with which the model was learnt, so "
        if assignment.probability is None and typical is not None and schema.probability:
            usual = rounded(typical, min(typical, 1.0 - typical))
            warnings.warn(
                f"{lacks.format(schema.probability)}the action is taken to have its usual probability, {usual}; give "
                "the column, or probability=",
                stacklevel=4,
            )
        if assignment.available is None and schema.availability:
            warnings.warn(
                f"{lacks.format(schema.availability)}the user is taken to have been available in all of them; give the "
                "column, or available=",
                stacklevel=4,
            )
    return assignment.settled()


def filled(model: LearntGraph, assignment: Assignment | None) -> Assignment | None:
    """With what was not logged, so that all batches have the same columns.

    Everybody could act, and the action had its typical probability.
    """
    return None if assignment is None or model.reward is None else assignment.filled(model.reward.typical)

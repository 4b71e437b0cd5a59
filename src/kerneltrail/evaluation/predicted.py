"""What is written of a prediction, row by row: one set of columns for every table of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Prediction
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.kernels import Array
from kerneltrail.trajectory.advantage import Advantage
from kerneltrail.trajectory.new_user import NewUser

PREDICTED = ("mean", "sd", "lower_50", "upper_50", "lower_90", "upper_90")
"""Columns of a prediction: mean and standard deviation of a new observation, its 50 % and 90 % intervals."""

OF_ENDS = ("chance_lowest", "chance_highest")
"""Further ones where many rows have exactly the lowest outcome, or the highest: its probability (method (76))."""

ACTED = (
    "mean_action_0", "mean_action_1", "advantage", "advantage_lower_90", "advantage_upper_90", "advantage_positive",
)  # fmt: skip
"""Further ones with a reward model: the mean without and with the action, their difference (method (33)) with its
central 90 % interval, and the probability that it is above 0."""

TABLE_ROW, OUTSIDE, OUTCOME = "table_row", "outside", "y"
"""Columns beside them: a row's number in its table, counted from 1; covariates beyond the pilot users' range; the
outcome where it is known."""


def predicted_columns(prediction: Prediction) -> dict[str, Array]:
    """The columns `PREDICTED`, and those of `OF_ENDS` that there are, each (m,).

    >>> columns = predicted_columns(Prediction(np.array([5.0]), np.array([3.0]), 1.0))
    >>> {name: round(float(values[0]), 2) for name, values in columns.items()}
    {'mean': 5.0, 'sd': 2.0, 'lower_50': 3.65, 'upper_50': 6.35, 'lower_90': 1.71, 'upper_90': 8.29}
    """
    values = (prediction.mean, prediction.sd, *prediction.interval(0.5), *prediction.interval(0.9))
    columns = dict(zip(PREDICTED, values, strict=True))
    if prediction.shape is not None:
        chances = (prediction.shape.chance_of(prediction.bell, place) for place in (0, -1))
        every = zip(OF_ENDS, chances, strict=True)
        columns |= {name: chance for name, chance in every if name in ends_of(prediction.shape)}
    return columns


def ends_of(shape: OutcomeShape | None) -> tuple[str, ...]:
    """Those of `OF_ENDS` that predictions with a shape have."""
    ends = () if shape is None else zip(OF_ENDS, (shape.floor, shape.ceiling), strict=True)
    return tuple(name for name, end in ends if end is not None)


def under_both(user: NewUser, X: Array, assignment: Assignment) -> tuple[Prediction, Prediction]:
    """Predictions at rows in data units had there been no action in any of them, and had there been one in all."""
    nothing, everything = np.zeros(len(assignment)), np.ones(len(assignment))
    return (
        user.predict(X, action=replace(assignment, action=nothing)),
        user.predict(X, action=replace(assignment, action=everything)),
    )


def before_draw(both: tuple[Prediction, Prediction], chance: Array) -> Prediction:
    """The prediction where the action is taken with that chance, by its mean and variance."""
    without, acted = both
    zero, one = without.bell.mean, acted.bell.mean
    mean = (1.0 - chance) * zero + chance * one
    within = (1.0 - chance) * without.variance + chance * acted.variance
    variance = within + chance * (1.0 - chance) * (one - zero) ** 2
    freedom = without.freedom
    if freedom is not None and acted.freedom is not None:
        freedom = (1.0 - chance) * freedom + chance * acted.freedom
    return Prediction(mean, variance, without.noise, freedom=freedom).shaped(without.shape)


def acted_columns(
    both: tuple[Prediction, Prediction], advantage: Advantage, available: Array | None
) -> dict[str, Array]:
    """The columns `ACTED`, each (m,). Where nobody could act there is a mean without the action; the others are NaN."""
    means = (prediction.mean for prediction in both)
    values = (*means, advantage.mean, *advantage.interval(0.9), advantage.positive)
    columns = dict(zip(ACTED, values, strict=True))
    if available is not None:
        columns |= {name: np.where(available > 0, columns[name], np.nan) for name in ACTED[1:]}
    return columns


def cells(columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Columns as rows of a table, numbers as Python's; what is NaN does not apply, and is left out."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [{name: value for name, value in zip(columns, row, strict=True) if value == value} for row in rows]

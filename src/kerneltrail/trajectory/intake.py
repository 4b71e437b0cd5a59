"""A batch taken in: what fits read of it, and of the rows before it.

Outcomes are read around the user's level, of which covariates say something, and where tails are heavy drawn in. As
long as rows are kept, both are done anew for all of them at every batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Array
from kerneltrail.trajectory.drawing import drawn_rows
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.lateness import OrderCells, lateness
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.repeated import repeated
from kerneltrail.trajectory.user_state import CONTEXTS, UserState

COUNTS = 0.25
"""Probability from which a kernel has a say in where the function is, in those of the most probable one."""

MOST_ROWS = 200
"""Rows up to which all are drawn in anew, even where more are kept: it takes a factor of their covariance, and so many
rows know the function well."""

Ahead = Callable[[UserState, Array, Assignment | None], Prediction]
"""What was predicted of a batch."""


class Intake(NamedTuple):
    """A batch, and a state's rows with it, as fits read them."""

    batch: User
    kept: User
    recent: User
    outcomes: Array | None
    level: float


def warn_of_old_rows(model: LearntGraph, state: UserState, batch: User, times: OrderCells | None) -> None:
    """Tell of rows that may be known already: the same as the newest ones, or else not later than they are."""
    if repeated(state, batch, drawn=model.drawing is not None):
        warnings.warn(
            f"user {batch.name!r}: the {batch.rows} rows of this batch are the same as the newest rows; they are taken "
            "as further ones, and if they were sent twice, intervals are too narrow now",
            stacklevel=3,
        )
    elif times is not None and (said := lateness(model.schema.order, times, state.latest)):
        warnings.warn(f"user {batch.name!r}: {said}", stacklevel=3)


def taken_in(model: LearntGraph, state: UserState, batch: User, ahead: Ahead) -> Intake:
    """A batch, scaled and centred, around the user's level and with outcomes drawn in as the model says."""
    state, batch = levelled(model, state, batch)
    drawing, outcomes = model.drawing, None
    if drawing is not None and state.rows <= state.refine:
        outcomes = batch.y if state.outcomes is None else np.concatenate([state.outcomes, batch.y])
    anew = state.rows <= min(state.refine, MOST_ROWS)
    if drawing is not None and not anew:
        prediction = ahead(state, batch.X, batch.assignment)
        stated = prediction.total / (drawing.widening * model.stretch**2)  # a stretch is for who reads, not for fits
        shift = drawing.drawn(batch.y - prediction.mean, stated)
        batch = batch.with_y(prediction.mean + shift)
    kept = batch if state.kept is None else state.kept.extend(batch)
    if drawing is not None and outcomes is not None and anew:
        least = COUNTS * float(state.weights.max())
        counted = zip(state.weights.tolist(), state.fits, strict=True)
        kernels = [(weight, fit.hyperparameters) for weight, fit in counted if weight >= least]
        kept = drawn_rows(kept, outcomes, kernels, block_of(kept, model.reward_after(kept.rows)), drawing)
        return Intake(
            batch.with_y(kept.y[kept.rows - batch.rows :]), kept, kept.newest(CONTEXTS), outcomes, state.level
        )
    recent = batch if state.recent is None else state.recent.extend(batch)
    return Intake(batch, kept, recent.newest(CONTEXTS), outcomes, state.level)


def levelled(model: LearntGraph, state: UserState, batch: User) -> tuple[UserState, User]:
    """A state and a batch less what the covariates of all rows so far say of the user's level (method (73)).

    Once rows are no longer kept it stays: they have said by themselves how high they lie.
    """
    level = state.level
    if model.mean is not None and model.mean.level is not None and (state.kept is not None or not state.rows):
        total = state.level * state.rows + float(model.mean.level_at(batch.X).sum())
        level = total / max(state.rows + batch.rows, 1)
        moved = state.level - level
        state = replace(
            state,
            kept=None if state.kept is None else state.kept.with_y(state.kept.y + moved),
            recent=None if state.recent is None else state.recent.with_y(state.recent.y + moved),
            outcomes=None if state.outcomes is None else state.outcomes + moved,
            level=level,
        )
    return state, batch.with_y(batch.y - level) if level else batch

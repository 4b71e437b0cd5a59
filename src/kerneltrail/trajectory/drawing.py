"""A user's rows with outcomes drawn in where tails are heavy, around what the rows say (method §8.7).

As long as rows are kept, all outcomes are drawn in anew at every batch, the first too: a row that looked far out may
look so no more once there are others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock, Prediction
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Array, Hyperparameters
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.user_state import UserState, newest

ROUNDS = 20
"""Most times that outcomes are drawn in around what the drawn ones say; the next batch goes on from there."""

SETTLED = 0.01
"""Standard deviations of the noise by which outcomes may still move in the end."""

FARTHEST = 5.0
"""Standard deviations of the noise around the rows' median within which outcomes begin."""

COUNTS = 0.25
"""Probability from which a kernel has a say in where the function is, in those of the most probable one."""

MOST_ROWS = 200
"""Rows up to which all are drawn in anew, even where more are kept: it takes a factor of their covariance, and so many
rows know the function well."""

Ahead = Callable[[UserState, Array, Assignment | None], Prediction]
"""What was predicted of a batch."""


class Intake(NamedTuple):
    """A batch and what a state keeps, as fits read them: the batch, all rows kept, the newest, outcomes as they are."""

    batch: User
    kept: User
    recent: User
    outcomes: Array | None


def taken_in(model: LearntGraph, state: UserState, batch: User, ahead: Ahead) -> Intake:
    """A batch, scaled and centred, with outcomes drawn in as the model says."""
    drawing, outcomes = model.drawing, None
    if drawing is not None and state.rows <= state.refine:
        outcomes = batch.y if state.outcomes is None else np.concatenate([state.outcomes, batch.y])
    anew = state.rows <= min(state.refine, MOST_ROWS)
    if drawing is not None and not anew:
        prediction = ahead(state, batch.X, batch.assignment)
        shift = drawing.drawn(batch.y - prediction.mean, prediction.total / drawing.widening)
        batch = batch.with_y(prediction.mean + shift)
    kept = batch if state.kept is None else state.kept.extend(batch)
    if drawing is not None and outcomes is not None and anew:
        least = COUNTS * float(state.weights.max())
        counted = zip(state.weights.tolist(), state.fits, strict=True)
        kernels = [(weight, fit.hyperparameters) for weight, fit in counted if weight >= least]
        kept = drawn_rows(kept, outcomes, kernels, block_of(kept, model.reward), drawing)
        return Intake(batch.with_y(kept.y[kept.rows - batch.rows :]), kept, newest(kept), outcomes)
    return Intake(batch, kept, newest(batch if state.recent is None else state.recent.extend(batch)), outcomes)


def drawn_rows(
    rows: User,
    outcomes: Array,
    kernels: Sequence[tuple[float, Hyperparameters]],
    block: LinearBlock | None,
    drawing: Drawing,
) -> User:
    """Rows with their outcomes drawn in around what kernels say of the function, given the drawn ones.

    Args:
        rows: scaled and centred, with targets to start from: drawn in before, or as they are.
        outcomes: as they are, (n,).
        kernels: how probable each is; their noise is that of outcomes drawn in.
        block: the linear block of the rows.
        drawing: how.
    """
    posteriors: list[tuple[float, gp.Posterior]] = []
    for weight, hyperparameters in kernels:
        try:
            posteriors.append((weight, gp.Posterior.fit(rows, hyperparameters, block=block)))
        except NumericalError:  # what the others say will do
            continue
    if not posteriors or not rows.rows:
        return rows
    weights = np.array([weight for weight, _ in posteriors])
    weights /= weights.sum()
    noise = float(weights @ [each.hyperparameters.values_array[-1] for _, each in posteriors])
    median, most = float(np.median(rows.y)), FARTHEST * np.sqrt(noise)
    y = np.clip(rows.y, median - most, median + most)
    for _ in range(ROUNDS):
        middle, before = weights @ np.array([each.smoothed(y) for _, each in posteriors]), y
        y = middle + drawing.drawn(outcomes - middle, noise)
        if np.abs(y - before).max() <= SETTLED * np.sqrt(noise):
            break
    return rows.with_y(y)

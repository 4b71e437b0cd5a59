"""A user's rows with outcomes drawn in where tails are heavy, around what the rows say (method §8.7).

A row that looked far out may look so no more once there are others, so outcomes are drawn in around what the drawn ones
say, until they settle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Array, Hyperparameters

ROUNDS = 20
"""Most times that outcomes are drawn in around what the drawn ones say; the next batch goes on from there."""

SETTLED = 0.01
"""Standard deviations of the noise by which outcomes may still move in the end."""

FARTHEST = 5.0
"""Standard deviations of the noise around the rows' median within which outcomes begin."""


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

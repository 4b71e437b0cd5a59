"""Covariates that move on, such as the day of the study: do kernels on them tell what comes next (method (78))?

A new batch lies beyond all days that a user has had, so a kernel on the day always extrapolates, and how well it suits
the rows that are there says little of the next ones. Neighbouring rows that are alike for a reason that nobody
measured, as a sensor's are, look like a slow change over days; carried forward, it is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kerneltrail.data import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.kernels import Array
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.pilot_predictions import predicted_batches, some_of

MOST = 0.5
"""Share of the batches after the first, above which a covariate that goes beyond all before moves on."""


def advancing(users: Sequence[User]) -> frozenset[str]:
    """Covariates that move on: most batches begin where the user's rows before ended, or beyond, and end beyond.

    >>> days, hours = np.arange(6.0) // 2.0, np.array([8.0, 20.0, 9.0, 19.0, 8.0, 21.0])
    >>> sorted(advancing([User("Ann", ("day", "hour"), np.column_stack([days, hours]), days, (1, 3, 6))]))
    ['day']
    """
    beyond, batches = np.zeros(len(users[0].covariates)), 0
    for user in users:
        for start, end in pairwise(user.ends):
            (low, high), (least, most) = (_span(rows) for rows in (user.X[:start], user.X[start:end]))
            beyond += ((least >= high) & (most > high)) | ((most <= low) & (least < low))
            batches += 1
    return frozenset(name for name, count in zip(users[0].covariates, beyond, strict=True) if count > MOST * batches)


def _span(rows: Array) -> tuple[Array, Array]:
    return rows.min(axis=0), rows.max(axis=0)


def densities(model: TrajectoryModel, users: Sequence[User]) -> Array:
    """Mean log density of a row of each pilot user's batches, predicted from those before; nan of whom none was."""
    with one_blas_thread():
        return np.array([_density(model, user) for user in some_of(users)])


def _density(model: TrajectoryModel, user: User) -> float:
    rows = [ahead.bell.log_density(batch.y) for _, batch, ahead in predicted_batches(model, user)]
    return float(np.mean(np.concatenate(rows))) if rows else float("nan")

"""Whether a batch is what the user's newest rows are, as when an app that heard no answer sends it once more.

A state knows its rows scaled, centred and without their times, and only the newest of them.
"""

from __future__ import annotations

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.assignment import Mask
from kerneltrail.kernels import Array
from kerneltrail.trajectory.user_state import ASSIGNED, CONTEXTS, UserState

LEAST = 3
"""Rows from which it is odd that they are the same as the newest ones."""


def repeated(state: UserState, batch: User, *, drawn: bool) -> bool:
    """Whether a batch, scaled and centred, has the covariates, actions and outcomes of the newest rows.

    Nothing is said of rows that are alike by nature: where covariates are the same throughout, or come with another
    outcome, too. Nor where it cannot be told: outcomes that are `drawn` in are not kept as they were for long.
    """
    count = min(batch.rows, CONTEXTS)
    outcomes = _outcomes(state, drawn)
    if state.recent is None or outcomes is None or not LEAST <= count <= state.recent.rows:
        return False
    ours, known = batch.newest(count), state.recent
    y, seen = ours.y - state.level, outcomes[-known.rows :]
    if not (_same_inputs(ours, known.newest(count)) and _close(y, seen[-count:]).all()):
        return False
    alike = (known.X[:, None] == ours.X).all(axis=2)
    return bool((ours.X[0] != ours.X).any()) and not (alike & ~_close(seen[:, None], y)).any()


def _outcomes(state: UserState, drawn: bool) -> Array | None:
    """Of the newest rows at least, less the user's level."""
    if drawn:
        return state.outcomes
    return None if state.recent is None else state.recent.y


def _same_inputs(ours: User, theirs: User) -> bool:
    columns = [(getattr(ours, name), getattr(theirs, name)) for name in ASSIGNED]
    return np.array_equal(ours.X, theirs.X) and all(
        one is other if one is None or other is None else np.array_equal(one, other) for one, other in columns
    )


def _close(ours: Array, theirs: Array) -> Mask:
    """Levels are added and taken away again, which rounds."""
    return np.isclose(ours, theirs, rtol=1e-9, atol=1e-9)

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

RARE = 0.001
"""Probability with which other rows would have come out the same, above which nothing is said."""

FIRST = 2.0
"""Rows that count for how often two outcomes are the same at all, beside those with the same covariates."""


def repeated(state: UserState, batch: User, *, drawn: bool) -> bool:
    """Whether a batch, scaled and centred, has the covariates, actions and outcomes of the newest rows, beyond chance.

    Days with the same hours and the same rating are alike by nature. It cannot be told where outcomes that are `drawn`
    in are not kept as they were for long.
    """
    count = min(batch.rows, CONTEXTS)
    outcomes = _outcomes(state, drawn)
    if state.recent is None or outcomes is None or not LEAST <= count <= state.recent.rows:
        return False
    ours, known = batch.newest(count), state.recent
    y, seen = ours.y - state.level, outcomes[-known.rows :]
    if not (_same_inputs(ours, known.newest(count)) and _close(y, seen[-count:]).all()):
        return False
    same = _close(seen[:, None], seen)
    return _chance((known.X[:, None] == ours.X).all(axis=2), same[:, -count:], _ties(same)) <= RARE


def _ties(same: Mask) -> float:
    """How often two rows have the same outcome; hardly ever, if none have so far."""
    n = len(same)
    return (0.5 * float(same.sum() - n) + 0.1) / (0.5 * n * (n - 1) + 0.1)


def _chance(inputs: Mask, outcomes: Mask, ties: float) -> float:
    """How probable it is that rows which were not sent twice come out like the newest ones.

    Covariates that other rows have, too, may come again as a matter of course, with the outcomes that they had there.
    Others are as rare as they have been, and outcomes as frequent as in all rows.

    Args:
        inputs, outcomes: whether each known row has those of each row of the batch, (n, rows of the batch).
        ties: how often two rows have the same outcome.
    """
    n, count = inputs.shape
    others = np.ones((n, count), dtype=bool)
    others[n - count + np.arange(count), np.arange(count)] = False  # what it is compared with
    known, alike = (inputs & others).sum(axis=0), (inputs & outcomes & others).sum(axis=0)
    there = (alike + FIRST * ties) / (known + FIRST)
    anywhere = ((outcomes & others).sum(axis=0) + FIRST * ties) / (n - 1 + FIRST)
    return float(np.prod(np.where(known > 0, there, anywhere / (n - count + 1))))


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

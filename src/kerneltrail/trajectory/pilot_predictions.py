"""Pilot users followed as new ones would be: what was predicted of each batch from those before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from kerneltrail.data import User
from kerneltrail.errors import KerneltrailError
from kerneltrail.gp import Prediction
from kerneltrail.trajectory.model import TrajectoryModel

T = TypeVar("T")

MOST_USERS = 40
"""Pilot users who are followed: a few numbers need no more."""


def some_of(users: Sequence[T]) -> Sequence[T]:
    """At most so many users, evenly from all."""
    return users[:: max(-(-len(users) // MOST_USERS), 1)]


def predicted_batches(model: TrajectoryModel, user: User) -> Iterator[tuple[int, User, Prediction]]:
    """Number, rows and prediction of each batch, as far as the user can be followed."""
    followed = model.new_user(user.name)
    for t in range(1, user.batches + 1):
        batch = user.batch(t)
        action = batch.assignment if model.takes_action else None
        try:
            ahead = followed.predict(batch.X, action=action)
            if t < user.batches:
                followed.update(batch.X, batch.y, action=action)
        except (KerneltrailError, ArithmeticError, ValueError):  # a finished fit is worth more than one user
            return
        yield t, batch, ahead

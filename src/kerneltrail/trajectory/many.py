"""Batches of many followed users at once: what one service that follows thousands takes in per request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kerneltrail import gp
from kerneltrail.data.columns import text_of
from kerneltrail.data.frames import NamedRows
from kerneltrail.errors import DataError, TrajectoryError
from kerneltrail.kernels.phrases import counted
from kerneltrail.names import nearest, shortened
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_state import SelectionStep


@dataclass(frozen=True)
class Updates:
    """What became of the batches of many users.

    Attributes:
        steps: what was selected, for each user whose batch was taken in.
        failures: why not, for each of the others, who are as they were before.
    """

    steps: Mapping[str, SelectionStep]
    failures: Mapping[str, Exception]

    def __repr__(self) -> str:
        refused = [f"{name} ({problem})" for name, problem in self.failures.items()]
        failed = f", {len(refused)} not: {shortened(refused)}" if refused else ""
        return f"Updates: {counted(len(self.steps), 'user')} updated{failed}"


def update_many(model: LearntGraph, users: Mapping[Any, NewUser], rows: Any) -> Updates:
    """One batch more for each user who has rows, the same to the bit as `NewUser.update` one by one.

    Args:
        model: what the users are followed on.
        users: the followed users by name.
        rows: a long table (a frame, a dict of columns) with the model's user column and all that `NewUser.update` reads
            from a frame; or a mapping from names to what `update` takes: a frame, a dict of columns, or a pair (X, y).

    Raises:
        DataError: if the long table cannot be read or does not say whose a row is; nobody is updated then.
    """
    batches = _by_user(model, rows)
    users = {text_of(name): user for name, user in users.items()}  # as the names of rows are read
    gp.compilation.ensure_compiled()  # once, before the first user
    steps: dict[str, SelectionStep] = {}
    failures: dict[str, Exception] = {}
    for name, batch in batches.items():
        try:
            given = batch if isinstance(batch, tuple) else (batch,)
            steps[name] = _followed(model, users, name).update(*given)
        except Exception as problem:  # whatever it is, it must not cost the others their updates
            failures[name] = problem
    return Updates(steps, failures)


def _followed(model: LearntGraph, users: Mapping[str, NewUser], name: str) -> NewUser:
    user = users.get(name)
    if user is None:
        raise TrajectoryError(f"nobody who is followed is called {name!r}; {nearest(name, tuple(users))}")
    if user.model is not model:
        raise TrajectoryError(f"user {name!r} is followed on another model than this one")
    user.take_name(name)
    return user


def _by_user(model: LearntGraph, rows: Any) -> Mapping[str, Any]:
    """What each user is updated with, in the order in which users first occur."""
    column = model.schema.user
    if isinstance(rows, Mapping) and column not in rows:
        return {text_of(name): batch for name, batch in rows.items()}
    named = NamedRows.read(rows)
    if named is None:
        raise DataError(f"rows of many users need names: a table with the column {column!r}, or a mapping by user")
    table = named.table
    places: dict[str, list[int]] = {}
    for i, user in enumerate(table.column(column)):
        if user is None or not text_of(user):
            raise DataError(f"column {column!r} is missing in {table.place(i)}: nobody knows whose row that is")
        places.setdefault(text_of(user), []).append(i)
    return {user: table.of_one_user(at, column) for user, at in places.items()}

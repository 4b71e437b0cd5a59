"""What was assigned at a user's rows: the action, the probability with which it was drawn, and whether it could be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.arrays import real_numbers
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array

Assigned = tuple[Any, Any, Any]
"""Action, its probability and availability, each as a caller gives it, or None."""

Mask = NDArray[np.bool_]

IMPOSSIBLE = "action 1 although the user was not available"
"""What people are told of rows that are `impossible`."""


def check_shares(column: Array, who: str, what: str) -> None:
    """Refuse what no action, availability (0 or 1) or probability (from 0 to 1) can be, missing ones too, by its row.

    Users, updates and predictions are all checked by this rule.
    """
    share = what == "probability"
    allowed = (column >= 0.0) & (column <= 1.0) if share else (column == 0.0) | (column == 1.0)
    if not allowed.all():
        row = int(np.flatnonzero(~allowed)[0])
        rule = "lie in [0, 1]" if share else "be 0 or 1"
        raise DataError(f"{who}: {what} must {rule}, is {column[row]:g} in row {row + 1} of {len(column)}")


def impossible(action: Array, available: Array) -> Mask:
    """Rows with an action although nobody could act."""
    return (available == 0.0) & (action == 1.0)


def certain(probability: Array, available: Array | None) -> Mask:
    """Rows at which somebody could act, but the action's probability was exactly 0 or 1."""
    could = np.ones(len(probability)) if available is None else available
    return (could > 0) & ((probability == 0.0) | (probability == 1.0))


def never_drawn(column: Array, available: Array) -> Mask:
    """Where actions, or their probabilities, are missing because nobody could act: nothing was drawn, so both are 0.

    Tables and batches of a followed user are both read by this rule.
    """
    return np.isnan(column) & (available == 0.0)


def settled(column: Array, available: Array | None) -> Array:
    """Actions or their probabilities with 0 where one was `never_drawn`."""
    if available is None or column.shape != available.shape:  # `Assignment.checked` refuses another number of rows
        return column
    return np.where(never_drawn(column, available), 0.0, column)


@dataclass(frozen=True)
class Assignment:
    """The action at each of n rows, and how it came about.

    Attributes:
        action: 0 or 1, (n,).
        probability: of the action being 1, (n,), or None where nobody logged it.
        available: 1 where somebody could act, 0 where nobody could, (n,); None where everybody always could.
    """

    action: Array
    probability: Array | None = None
    available: Array | None = None

    @classmethod
    def read(cls, action: Any, probability: Any = None, available: Any = None) -> Assignment | None:
        """From columns as callers give them; an `Assignment` stays as it is, and no action is None."""
        if isinstance(action, Assignment):
            return action
        if action is None:
            return None
        named = ((probability, "the probability"), (available, "the availability"))
        columns = [None if each is None else np.atleast_1d(real_numbers(each, what)) for each, what in named]
        return cls(np.atleast_1d(real_numbers(action, "the action")), *columns)

    def __len__(self) -> int:
        return len(self.action)

    @property
    def impossible(self) -> Mask:
        """Rows with an action although nobody could act, (n,)."""
        return impossible(self.action, np.ones(len(self)) if self.available is None else self.available)

    @property
    def contradicted(self) -> Mask:
        """Rows at which somebody could act, and the action is the one that had probability 0, (n,)."""
        if self.probability is None:
            return np.zeros(len(self), dtype=np.bool_)
        return certain(self.probability, self.available) & (self.action != self.probability)

    def settled(self) -> Assignment:
        """With 0 for actions and probabilities that are missing where nobody could act."""
        probability = None if self.probability is None else settled(self.probability, self.available)
        return Assignment(settled(self.action, self.available), probability, self.available)

    def filled(self, typical: float | None) -> Assignment:
        """With what nobody logged filled in: all rows available, and the typical probability if there is one."""
        available = np.ones(len(self)) if self.available is None else self.available
        probability = self.probability
        if probability is None and typical is not None:
            probability = np.full(len(self), typical)
        return Assignment(self.action, probability, available)

    def checked(self, rows: int, what: str) -> Assignment:
        """Itself, if every column has so many rows; else refused in the name of `what` needs it."""
        for name in ("action", "probability", "available"):
            column = getattr(self, name)
            if column is not None and column.shape != (rows,):
                raise DataError(f"{what} needs one {name} for each of {rows} rows, got shape {column.shape}")
        return self

    def valid(self, rows: int, who: str, asked: str) -> Assignment:
        """Itself, if it is `checked` and all its values are possible; else refused in the name of who asked for it."""
        self.checked(rows, f"{who}: {asked}")
        named = (("action", self.action), ("probability", self.probability), ("availability", self.available))
        for what, column in named:
            if column is not None:
                check_shares(column, who, what)
        return self

    def coded(self, typical: float | None) -> tuple[Array, ...]:
        """What multiplies an advantage's features at each row (method (32), (41)).

        Plainly, with `typical` None, it is the action. Centred, it is the action less its probability, and then, for a
        block of its own, the probability; `typical` stands in for one that nobody logged. Where nobody could act, both
        are 0: such a row speaks of the baseline alone.
        """
        could = np.ones(len(self)) if self.available is None else self.available
        if typical is None:
            return (self.action * could,)
        probability = np.full(len(self), typical) if self.probability is None else self.probability
        return (self.action - probability) * could, probability * could

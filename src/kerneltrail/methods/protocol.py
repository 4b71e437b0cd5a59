"""What every method of following a user has in common: the trajectory model's, and those it is compared with.

A *selector* is somebody followed: rows go in batch by batch, a composition and predictions come out. A *method* makes
selectors, and is all that was learnt from training users. A *learner* is the short way to a method: two pure functions
of the rows seen so far, from which `Following` makes the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data import User
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition, layout_of

Array = NDArray[np.float64]


@runtime_checkable
class Selector(Protocol):
    """Somebody followed batch by batch; `kerneltrail.NewUser` is one. X and y are in data units throughout."""

    @property
    def name(self) -> str:
        """Of the user."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        ...

    @property
    def batches(self) -> int:
        """Number of batches seen."""
        ...

    def update(self, X: ArrayLike, y: ArrayLike, *, action: ArrayLike | None = None) -> object:
        """One batch more: X (b, d) in the order of the training cohort's covariates, y (b,)."""
        ...

    def predict(self, X: ArrayLike, *, action: ArrayLike | None = None) -> Prediction:
        """Mean and variance at the rows of X in the target's units; before any row, what is believed beforehand."""
        ...

    @property
    def composition(self) -> Composition:
        """The composition selected; it may be empty."""
        ...

    def copy(self) -> Self:
        """An independent copy."""
        ...


@runtime_checkable
class Method(Protocol):
    """What was learnt from training users, and can follow somebody new. Immutable."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        ...

    @property
    def takes_action(self) -> bool:
        """Whether `update` and `predict` need the action."""
        ...

    @property
    def in_pieces(self) -> bool:
        """Whether rows given in several batches end in the same state as the same rows given in one."""
        ...

    def __call__(self, name: str = "new") -> Selector:
        """Somebody whose rows are yet to come."""
        ...

    def save(self, selector: Selector) -> bytes:
        """A followed user as bytes, without the method."""
        ...

    def load(self, data: bytes) -> Selector:
        """The user that `save` of the same method kept: as if never stopped, bit for bit."""
        ...


class Fit(Protocol):
    """What a learner makes of the rows seen so far. Immutable."""

    @property
    def composition(self) -> Composition:
        """The composition selected; it may be empty."""
        ...

    def predict(self, X: Array, action: Array | None) -> Prediction:
        """Mean and variance in data units, at rows that were checked."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What cannot be computed from the rows again without the history, as plain values."""
        ...


@runtime_checkable
class Counted(Protocol):
    """A fit or a selector that says how many hyperparameters its kernel has: where they are not its composition's."""

    @property
    def hyperparameter_count(self) -> int:
        """Hyperparameters of the kernel selected; the noise counts as one."""
        ...


def hyperparameter_count(followed: Selector | Fit) -> int:
    """How many hyperparameters the kernel selected has, noise included: what it says itself, or its composition's."""
    if isinstance(followed, Counted):
        return followed.hyperparameter_count
    return layout_of(followed.composition).size


class Learner(Protocol):
    """A method as two pure functions of the rows; immutable, seeded. `Following` makes a `Method` of it."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        ...

    @property
    def takes_action(self) -> bool:
        """Whether the action is needed."""
        ...

    @property
    def in_pieces(self) -> bool:
        """Whether `fit` depends on the rows alone: not on where the batches end, nor on the fit before."""
        ...

    def fit(self, rows: User, before: Fit | None) -> Fit:
        """The fit to all rows seen so far, in data units; `before` is the fit of the batch before. No rows are legal.

        Nobody is told how `before` came about: a learner that was stopped and restored must not differ.
        """
        ...

    def restore(self, rows: User, stored: Mapping[str, Any]) -> Fit:
        """The fit to these rows of which `to_json` was kept."""
        ...

"""What every method of following a user has in common: the trajectory model's, and those it is compared with.

A *followed user* takes rows batch by batch and gives a composition and predictions. A *method* is all that was learnt
from training users, and makes followed users. A *learner* is the short way to a method: two pure functions of the rows
seen so far, from which `RefittingMethod` makes the rest.

Two things are optional, and asked for by `hyperparameter_count` and `probabilities_of`: a followed user or a fit may
say how many hyperparameters its kernel has, and how probable compositions are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.frames import UNNAMED
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition, layout_of

Array = NDArray[np.float64]


@runtime_checkable
class FollowedUser(Protocol):
    """Somebody followed batch by batch; `kerneltrail.NewUser` is one. X and y are in data units throughout."""

    @property
    def name(self) -> str:
        """Of the user."""

    @property
    def rows(self) -> int:
        """Number of rows seen."""

    @property
    def batches(self) -> int:
        """Number of batches seen."""

    def update(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        action: Assignment | ArrayLike | None = None,
        probability: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> object:
        """One batch more: rows of a frame, by name, or of an array in the order of the covariates; y (b,).

        What a method has no use for (the action, its probability, availability) it leaves aside.
        """

    def predict(
        self, X: Any, *, action: Assignment | ArrayLike | None = None, probability: ArrayLike | None = None
    ) -> Prediction:
        """Mean and variance at the rows of X in the target's units; before any row, what is believed beforehand."""

    @property
    def composition(self) -> Composition:
        """The composition selected; it may be empty."""

    def copy(self) -> Self:
        """An independent copy."""


class Traits(Protocol):
    """What is known of a method, or of its learner, before anybody is followed."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""

    @property
    def takes_action(self) -> bool:
        """Whether `update` and `predict` need the action."""

    @property
    def in_pieces(self) -> bool:
        """Whether rows given in several batches end in the same state as the same rows given in one."""


@runtime_checkable
class Method(Traits, Protocol):
    """What was learnt from training users, and can follow somebody new. Immutable."""

    def __call__(self, name: str = UNNAMED) -> FollowedUser:
        """Somebody whose rows are yet to come."""

    def save(self, followed: FollowedUser) -> bytes:
        """A followed user as bytes, without the method."""

    def load(self, data: bytes) -> FollowedUser:
        """The user that `save` of the same method kept: as if never stopped, bit for bit."""


class Fit(Protocol):
    """What a learner makes of the rows seen so far. Immutable."""

    @property
    def composition(self) -> Composition:
        """The composition selected; it may be empty."""

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units, at rows that were checked."""

    def to_json(self) -> dict[str, Any]:
        """What cannot be computed from the rows again without the history, as plain values."""


def hyperparameter_count(followed: FollowedUser | Fit) -> int:
    """How many hyperparameters the kernel selected has, noise included.

    It is what the followed user or fit says itself as `hyperparameter_count`: where products share hyperparameters they
    are not the composition's. Else it is the composition's.
    """
    count = getattr(followed, "hyperparameter_count", None)
    return layout_of(followed.composition).size if count is None else int(count)


def probabilities_of(followed: FollowedUser | Fit) -> Mapping[Composition, float]:
    """How probable compositions are, as the followed user or fit says it as `probabilities`; empty if it does not."""
    probabilities: Mapping[Composition, float] = getattr(followed, "probabilities", {})
    return probabilities


class Learner(Traits, Protocol):
    """A method as two pure functions of the rows; immutable, seeded. `RefittingMethod` makes a `Method` of it.

    It is `in_pieces` if `fit` depends on the rows alone: not on where the batches end, nor on the fit before.
    """

    def fit(self, rows: User, before: Fit | None) -> Fit:
        """The fit to all rows seen so far, in data units; `before` is the fit of the batch before. No rows are legal.

        Nobody is told how `before` came about: a learner that was stopped and restored must not differ.
        """

    def restore(self, rows: User, stored: Mapping[str, Any]) -> Fit:
        """The fit to these rows of which `to_json` was kept."""

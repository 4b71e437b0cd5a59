"""From a learner to a method: users who keep their rows, refit with every batch, and are saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.data import Schema, User
from kerneltrail.data.assignment import Assigned, Assignment
from kerneltrail.data.frames import UNNAMED, NamedRows, check_same_index, read_rows
from kerneltrail.errors import DataError, ModelFileError
from kerneltrail.gp import Prediction
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.gp.prediction import rows_of
from kerneltrail.kernels import Composition
from kerneltrail.methods.protocol import Array, Fit, FollowedUser, Learner, hyperparameter_count, probabilities_of

SCHEMA = 1
"""Version of the stored form of a user."""
ASSIGNED = ("action", "probability", "availability")
"""What is stored of how rows were assigned."""


class RefittedUser:
    """Somebody followed by a learner; a `FollowedUser`. An update that is refused leaves everything as it was.

    Attributes:
        seen: all rows so far, in data units.
        fit: what the learner makes of them.
        shape: how outcomes lie around its predictions, where that is no bell.
    """

    def __init__(self, learner: Learner, name: str, shape: OutcomeShape | None = None) -> None:
        self.learner = learner
        self.name = name
        self.shape = shape
        self.seen = User(name, learner.covariates, np.empty((0, len(learner.covariates))), np.empty(0), ())
        self.fit: Fit = learner.fit(self.seen, None)

    @classmethod
    def resume(
        cls, learner: Learner, seen: User, stored: Mapping[str, Any], shape: OutcomeShape | None = None
    ) -> RefittedUser:
        """The user who has seen these rows, with the stored fit."""
        user = cls.__new__(cls)
        user.learner, user.name, user.seen, user.shape = learner, seen.name, seen, shape
        user.fit = learner.restore(seen, stored)
        return user

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        return self.seen.rows

    @property
    def batches(self) -> int:
        """Number of batches seen."""
        return self.seen.batches

    @property
    def composition(self) -> Composition:
        """The composition selected; it may be empty."""
        return self.fit.composition

    @property
    def hyperparameter_count(self) -> int:
        """Hyperparameters of the kernel selected, noise included: the fit's own number, or its composition's."""
        return hyperparameter_count(self.fit)

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """How probable compositions are; empty where the learner only chooses."""
        return probabilities_of(self.fit)

    def update(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        action: Assignment | ArrayLike | None = None,
        probability: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Fit:
        """One batch more, in data units; the action is left aside by learners that do not take it."""
        named, rows = read_rows(X, self.learner.covariates, self._schema, self.name)
        name = self.name
        if named is not None and self._schema is not None:
            name = named.user_of(self._schema.user, name)
        if y is None:
            target_name = None if self._schema is None else self._schema.target
            if named is None or target_name is None:
                raise DataError(f"user {name!r}: an update needs the rows' outcomes: update(X, y)")
            y = named.target(target_name)
        else:
            check_same_index(X, y)
        target = np.array(y, dtype=np.float64, ndmin=1)
        assigned = self._assignment((action, probability, available), named)
        batch = _rows(name, self.learner.covariates, rows, target, (len(target),), assigned)
        seen = self.seen.with_name(name).extend(batch)
        fit = self.learner.fit(seen, self.fit)
        self.seen, self.fit, self.name = seen, fit, name
        return fit

    def predict(
        self, X: Any, *, action: Assignment | ArrayLike | None = None, probability: ArrayLike | None = None
    ) -> Prediction:
        """Mean and variance at the rows of X, in data units."""
        named, given = read_rows(X, self.learner.covariates, self._schema)
        rows = rows_of(given, self.learner.covariates)
        chosen = self._assignment((action, probability, None), named)
        if chosen is not None:
            chosen.valid(len(rows), f"user {self.name!r}", "a prediction")
        prediction = self.fit.predict(rows, chosen).shaped(self.shape)
        return prediction if named is None else replace(prediction, given=named.given)

    @property
    def _schema(self) -> Schema | None:
        """How the training users' table was read, if the learner knows it."""
        return getattr(self.learner, "schema", None)

    def _assignment(self, given: Assigned, named: NamedRows | None) -> Assignment | None:
        if not self.learner.takes_action:
            return None
        if named is not None and self._schema is not None:
            given = named.assigned(self._schema, given)
        assignment = Assignment.read(*given)
        if assignment is None:
            raise DataError(f"user {self.name!r}: this method has a reward model, so it needs action=")
        return _coded(assignment.settled(), self.learner)

    def copy(self) -> RefittedUser:
        """An independent copy; all parts are immutable, so it is cheap."""
        return copy(self)


def _coded(assignment: Assignment, learner: Learner) -> Assignment:
    """What the reward model reads, in the same columns at every batch, whatever was logged."""
    typical = getattr(learner, "typical", None)
    whole = assignment.filled(typical)
    return whole if typical is not None else replace(whole, probability=None)


def _rows(
    name: str, covariates: tuple[str, ...], X: Array, y: Any, ends: Sequence[int], assigned: Assignment | None
) -> User:
    columns = {} if assigned is None else {
        "action": assigned.action, "availability": assigned.available, "probability": assigned.probability
    }  # fmt: skip
    return User(name, covariates, X, y, ends, **columns)


@dataclass(frozen=True)
class RefittingMethod:
    """The method of a learner, with its name in the registry, and the shape of its predictions (method (76))."""

    method: str
    learner: Learner
    shape: OutcomeShape | None = None

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.learner.covariates

    @property
    def takes_action(self) -> bool:
        """Whether the action is needed."""
        return self.learner.takes_action

    @property
    def in_pieces(self) -> bool:
        """Whether rows in several batches end in the same state as in one."""
        return self.learner.in_pieces

    def __call__(self, name: str = UNNAMED) -> RefittedUser:
        """Somebody whose rows are yet to come."""
        return RefittedUser(self.learner, name, self.shape)

    def save(self, followed: FollowedUser) -> bytes:
        """A followed user as bytes: the rows in data units and what the learner keeps."""
        if not isinstance(followed, RefittedUser) or followed.learner is not self.learner:
            raise ModelFileError(f"{followed.name!r} is not followed by this {self.method}")
        seen = followed.seen
        content = {
            "schema": SCHEMA,
            "method": self.method,
            "covariates": list(seen.covariates),
            "name": seen.name,
            "X": seen.X.tolist(),
            "y": seen.y.tolist(),
            "ends": list(seen.ends),
            **{name: None if (each := getattr(seen, name)) is None else each.tolist() for name in ASSIGNED},
            "fit": followed.fit.to_json(),
        }
        # JSON writes the shortest digits that read back as the same float64.
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()

    def load(self, data: bytes) -> RefittedUser:
        """The user that `save` kept.

        Raises:
            ModelFileError: if it is something else, or was followed by another method.
        """
        try:
            content = json.loads(data)
            schema, method, covariates = content["schema"], content["method"], tuple(content["covariates"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ModelFileError(f"not a user who was followed by {self.method}") from None
        if schema != SCHEMA or method != self.method or covariates != self.covariates:
            raise ModelFileError(
                f"a user followed by {method} (schema {schema}) on {', '.join(map(str, covariates))} cannot be "
                f"followed further by {self.method} (schema {SCHEMA}) on {', '.join(self.covariates)}"
            )
        try:
            X = np.array(content["X"], dtype=np.float64).reshape(-1, len(self.covariates))
            columns = [content.get(name) for name in ASSIGNED]  # older files have the action alone
            assigned = Assignment.read(*columns) if self.takes_action else None
            assigned = None if assigned is None else _coded(assigned, self.learner)
            seen = _rows(content["name"], self.covariates, X, content["y"], content["ends"], assigned)
            return RefittedUser.resume(self.learner, seen, content["fit"], self.shape)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as problem:
            raise ModelFileError(f"the stored user is damaged: {problem!r}") from None

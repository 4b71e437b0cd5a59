"""Methods whose predictions have the shape of the training users' outcomes, as the trajectory model's have (§10.3).

They tell what of a difference in density is due to that shape (method (76)), and what to the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import Signature
from typing import Any

from kerneltrail.data import Cohort, User
from kerneltrail.errors import KerneltrailError
from kerneltrail.gp.outcome_shape_search import Predicted, learn_shape
from kerneltrail.methods.builder import LearnsFrom, MethodBuilder
from kerneltrail.methods.hgp import HGP
from kerneltrail.methods.linear import LMM
from kerneltrail.methods.refit import RefittingMethod
from kerneltrail.methods.registry import METHODS
from kerneltrail.trajectory.pilot_predictions import some_of


@dataclass(frozen=True)
class ShapedBuilder:
    """Builds another builder's method, with the shape of the training users' outcomes around what it predicts of them.

    Attributes:
        name: of the method.
        plain: builds it without the shape.
    """

    name: str
    plain: MethodBuilder

    def __call__(self, cohort: Cohort, *, seed: int, **settings: Any) -> RefittingMethod:
        """The method; each training user is followed as somebody new would be."""
        method = self.plain(cohort, seed=seed, **settings)
        shape = learn_shape([_predicted(method, user) for user in some_of(cohort.raw)])
        return replace(method, method=self.name, shape=shape)

    @property
    def learns_from(self) -> LearnsFrom:
        """Whose rows: the group's, since the shape is."""
        return "group"

    @property
    def __signature__(self) -> Signature:
        """What the settings are."""
        return self.plain.__signature__


def _predicted(method: RefittingMethod, user: User) -> Predicted:
    batches = []
    followed = method(user.name)
    for t in range(1, user.batches + 1):
        batch = user.batch(t)
        try:
            batches.append((followed.predict(batch.X, action=batch.assignment).bell, batch.y))
            if t < user.batches:
                followed.update(batch.X, batch.y, action=batch.assignment)
        except (KerneltrailError, ArithmeticError, ValueError):  # what could be predicted will do
            break
    return Predicted.of(batches)


for _plain in (LMM, HGP):
    METHODS.add(f"{_plain.name}-shaped", ShapedBuilder(f"{_plain.name}-shaped", _plain))

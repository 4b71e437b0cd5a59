"""Methods that are the trajectory model with something taken out of it, so that a comparison tells what it is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any, ClassVar

from kerneltrail.data import Cohort
from kerneltrail.methods.builder import LearnsFrom
from kerneltrail.methods.registry import METHODS
from kerneltrail.methods.trajectory import TrajectoryMethod, trajectory
from kerneltrail.trajectory.model import TrajectoryModel

Change = Callable[[Cohort, TrajectoryModel], TrajectoryModel]
"""From the training users and the model that was learnt from them to the model with something taken out."""


@dataclass(frozen=True)
class Variant:
    """Builds a method from the learnt model, changed. Its settings are the trajectory model's.

    Attributes:
        learn: what is changed.
        rests_on: the method whose model is given to it where that was asked for too, so that it is learnt once.
    """

    learn: Change

    learns_from: ClassVar[LearnsFrom] = "group"
    rests_on: ClassVar[str] = "trajectory"

    def __call__(self, cohort: Cohort, *, seed: int, **settings: Any) -> TrajectoryMethod:
        """The method: of a given `model`, or of one that is learnt from the training users."""
        base = trajectory(cohort, seed=seed, **settings)
        assert isinstance(base, TrajectoryMethod)  # the registry knows it as any method
        return TrajectoryMethod(self.learn(cohort, base.model))

    @property
    def __signature__(self) -> Signature:
        """What the settings are."""
        return signature(trajectory)


def register_variant(name: str, learn: Change) -> Variant:
    """Make a variant of the trajectory model known by name."""
    variant = Variant(learn)
    METHODS.add(name, variant)
    return variant

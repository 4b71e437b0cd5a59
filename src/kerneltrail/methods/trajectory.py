"""The trajectory model behind the same protocol as the methods it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.data.frames import UNNAMED
from kerneltrail.engines import Engine
from kerneltrail.errors import ModelFileError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.protocol import FollowedUser
from kerneltrail.methods.registry import METHODS
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.sampler.chains import FitProgress
from kerneltrail.trajectory.settings import Settings


@dataclass(frozen=True, eq=False)
class TrajectoryMethod:
    """A trajectory model as a `Method`; its followed users are `NewUser`s.

    `changes` are of the model's settings of selection, for the users followed.
    """

    model: TrajectoryModel
    changes: Mapping[str, Any] = field(default_factory=dict)

    in_pieces = False

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.model.covariates

    @property
    def takes_action(self) -> bool:
        """Whether there is a reward model."""
        return self.model.takes_action

    def __call__(self, name: str = UNNAMED) -> NewUser:
        """Somebody whose rows are yet to come."""
        return self.model.new_user(name, **self.changes)

    def save(self, followed: FollowedUser) -> bytes:
        """A followed user as the bytes of its file."""
        if not isinstance(followed, NewUser):
            raise ModelFileError(f"{followed.name!r} is not followed on a trajectory model")
        return followed.to_bytes()

    def load(self, data: bytes) -> NewUser:
        """The user that `save` kept."""
        return NewUser.from_bytes(data, self.model)


@METHODS.named("trajectory")
def trajectory(
    cohort: Cohort,
    *,
    seed: int,
    model: TrajectoryModel | None = None,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    workers: Engine | int = 1,
    settings: Settings | None = None,
    changes: Mapping[str, Any] | None = None,
    progress: Callable[[FitProgress], None] | None = None,
) -> TrajectoryMethod:
    """The trajectory model fitted with `settings` and `changes` of single ones; or a given one.

    Of a given model, `changes` may be of selection, memory and refine: how users are followed. `progress` is called as
    the fit goes on.
    """
    if model is not None:
        return TrajectoryMethod(model, changes or {})
    every = {"seed": seed, "progress": progress, **(changes or {})}
    return TrajectoryMethod(
        fit(cohort, pool=pool, priors=priors, reward=reward, engine=workers, settings=settings, **every)
    )

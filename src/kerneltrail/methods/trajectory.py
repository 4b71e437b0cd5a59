"""The trajectory model behind the same protocol as the methods it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.errors import ModelFileError
from kerneltrail.methods.protocol import Selector
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_file import user_from_bytes, user_to_bytes


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A trajectory model as a `Method`; its selectors are `NewUser`s.

    Attributes:
        model: what was learnt.
    """

    model: TrajectoryModel

    in_pieces = False

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.model.covariates

    @property
    def takes_action(self) -> bool:
        """Whether there is a reward model."""
        return self.model.takes_action

    def __call__(self, name: str = "new") -> NewUser:
        """Somebody whose rows are yet to come."""
        return self.model.new_user(name)

    def save(self, selector: Selector) -> bytes:
        """A followed user as the bytes of its file."""
        if not isinstance(selector, NewUser):
            raise ModelFileError(f"{selector.name!r} is not followed on a trajectory model")
        return user_to_bytes(selector)

    def load(self, data: bytes) -> NewUser:
        """The user that `save` kept."""
        return user_from_bytes(data, self.model)

"""The trajectory model: the learnt graph, and what can be done with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kerneltrail.data.frames import UNNAMED
from kerneltrail.errors import ModelFileError
from kerneltrail.store.atomic import read, write
from kerneltrail.store.cache import Format
from kerneltrail.trajectory import model_file
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.many import Updates, update_many
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.views import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrajectoryModel(LearntGraph):
    """What was learnt from pilot users; immutable. Make one with `fit`, keep it with `save`, use it with `new_user`."""

    def new_user(self, name: object = UNNAMED, **changes: Any) -> NewUser:
        """Somebody whose rows are yet to come; `changes` override the settings of selection.

        An id that is a number becomes a text; nothing, or an empty text, is refused.
        """
        return NewUser.start(self, name, **changes)

    def update_many(self, users: Mapping[Any, NewUser], rows: Any) -> Updates:
        """One batch more for each user who has rows.

        One user's bad rows fail that user alone: `failures` says why, by name, and nobody else's state depends on it.
        The numbers are those of `NewUser.update`, to the bit.

        Args:
            users: the followed users by name; those without rows stay as they are.
            rows: a frame, a dict of columns or a pair (X, y) for each user by name, as `NewUser.update` takes them; or
                one long table with the model's user column.
        """
        return update_many(self, users, rows)

    def plot(self, *, width: float = 9.0) -> Figure:
        """The learnt graph as a Matplotlib figure, at least `width` inches wide."""
        return show("model.figure", self, width=width)

    def _repr_html_(self) -> str:
        return show("model.html", self)

    def load_user(self, path: str | os.PathLike[str]) -> NewUser:
        """The user in a file, to be followed further on this model: as if never stopped, bit for bit.

        Raises:
            ModelFileError: as for a model's file, and if the user was followed on another model.
        """
        return NewUser.from_bytes(read(path, error=ModelFileError), self, os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the model in one file, which `TrajectoryModel.load` reads back bit for bit.

        Raises:
            ModelFileError: if it cannot be written; what stood there before is untouched then.
        """
        write(path, model_file.to_bytes(self), error=ModelFileError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TrajectoryModel:
        """The model in a file: equal to the one that was saved, and behaving the same, bit for bit.

        Raises:
            ModelFileError: if there is no such file, or it is not a model, cut short, damaged, of another schema
                version, or made of kernels that are not registered here.
        """
        return model_file.from_bytes(read(path, error=ModelFileError), cls, os.fspath(path))


save = TrajectoryModel.save
load = TrajectoryModel.load


def from_bytes(data: bytes, shown: str = "the model") -> TrajectoryModel:
    """The model of a file's bytes; `shown` is what messages call it."""
    return model_file.from_bytes(data, TrajectoryModel, shown)


MODEL: Format[TrajectoryModel] = Format(model_file.to_bytes, from_bytes)
"""How the store keeps a model."""

"""The trajectory model: the learnt graph, and what can be done with it."""

from __future__ import annotations

import os
from typing import Any

from kerneltrail.trajectory import model_file
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser


class TrajectoryModel(LearntGraph):
    """What was learnt from pilot users; immutable. Make one with `fit`, keep it with `save`, use it with `new_user`."""

    def new_user(self, name: str = "new", **changes: Any) -> NewUser:
        """Somebody whose rows are yet to come; `changes` override the settings of selection."""
        return NewUser.start(self, name, **changes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the model in one file, which `TrajectoryModel.load` reads back bit for bit."""
        model_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TrajectoryModel:
        """The model that `save` kept."""
        return model_file.load(path, cls)


def save(model: TrajectoryModel, path: str | os.PathLike[str]) -> None:
    """Keep a model in one file.

    Raises:
        ModelFileError: if it cannot be written; what stood there before is untouched then.
    """
    model.save(path)


def load(path: str | os.PathLike[str]) -> TrajectoryModel:
    """The model in a file: equal to the one that was saved, and behaving the same, bit for bit.

    Raises:
        ModelFileError: if there is no such file, or it is not a model, cut short, damaged, of another schema version,
            or made of kernels that are not registered here.
    """
    return TrajectoryModel.load(path)

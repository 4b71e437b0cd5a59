"""A folder of finished pieces, one file each, written beside and renamed: stopped anywhere, the rest goes on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from kerneltrail.errors import KerneltrailError, ModelFileError
from kerneltrail.evaluation.follow import Followed as Piece
from kerneltrail.store.atomic import write
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.model_file import load, save


@dataclass(frozen=True)
class Pieces:
    """Where pieces and models are kept, by digest of all they depend on."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Pieces:
        """The folder, made if it is not there; refused at once where it cannot be written."""
        goal = Path(folder)
        write(goal / ".trial", b"", shown=goal)
        (goal / ".trial").unlink(missing_ok=True)
        return cls(goal)

    def _piece(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Piece | None:
        """The piece under a key; None if there is none, or if it cannot be read: then it is computed again."""
        try:
            return Piece.from_json(json.loads(self._piece(key).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, piece: Piece) -> None:
        """Keep a piece; one with failures is not kept, so that it is tried again."""
        if not piece.failures:
            write(self._piece(key), json.dumps(piece.to_json(), allow_nan=False))

    def model(self, key: str) -> TrajectoryModel | None:
        """The model under a key, if there is one that can be read."""
        path = self.folder / f"{key}.trail"
        try:
            return load(path) if path.exists() else None
        except (ModelFileError, KerneltrailError):
            return None

    def put_model(self, key: str, model: TrajectoryModel) -> None:
        """Keep a model."""
        save(model, self.folder / f"{key}.trail")

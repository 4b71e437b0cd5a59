"""The models of a trial, by their fingerprint: read from a folder when they are first needed, and kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from kerneltrail.errors import ModelFileError, UnknownName
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.model_file import fingerprint

SUFFIX = ".trail"
"""Of a model's file."""

ModelsAt = str | os.PathLike[str] | Mapping[str, LearntGraph]
"""A folder of model files, or models by their fingerprint."""


class Models:
    """Models by their fingerprint, from a folder or from a mapping; threads may share it."""

    def __init__(self, source: ModelsAt) -> None:
        self._known: dict[str, LearntGraph] = {}
        self._folder: Path | None = None
        if isinstance(source, Mapping):
            self._known.update(source)
        else:
            self._folder = Path(source)
        self._read: set[tuple[Path, int]] = set()  # files with the time of their last change
        self._lock = threading.RLock()

    def get(self, model_id: str) -> LearntGraph:
        """The model with a fingerprint.

        Raises:
            UnknownName: if there is none; files that cannot be read are named.
        """
        with self._lock:
            damaged = [] if model_id in self._known else self._look(model_id)
            if model_id in self._known:
                return self._known[model_id]
        where = "among those given" if self._folder is None else f"in {self._folder}"
        more = f" ({'; '.join(damaged)})" if damaged else ""
        raise UnknownName(f"there is no model with the fingerprint {model_id[:12]}… {where}{more}")

    def keep(self, model: TrajectoryModel) -> str:
        """Keep a model in memory, and return its fingerprint."""
        model_id = fingerprint(model)
        with self._lock:
            self._known.setdefault(model_id, model)
        return model_id

    def save(self, model_id: str) -> None:
        """Write a model that is kept into the folder, if there is one; raises `ModelFileError` if it cannot be."""
        model = self.get(model_id)
        if self._folder is not None and isinstance(model, TrajectoryModel):
            self._folder.mkdir(parents=True, exist_ok=True)
            model.save(self._folder / f"{model_id[:16]}{SUFFIX}")

    def _look(self, model_id: str) -> list[str]:
        """Read files that were not read yet until the model is met; what is wrong with others."""
        if self._folder is None or not self._folder.is_dir():
            return []
        damaged = []
        named = self._folder / f"{model_id[:16]}{SUFFIX}"
        for path in sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: path != named):
            try:
                mark = (path, path.stat().st_mtime_ns)
                if mark in self._read:
                    continue
                model = TrajectoryModel.load(path)
            except (ModelFileError, OSError) as problem:
                damaged.append(str(problem))
                continue
            self._read.add(mark)
            self._known.setdefault(fingerprint(model), model)
            if model_id in self._known:
                break
        return damaged

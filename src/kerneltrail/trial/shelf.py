"""Followed participants in files beside the ledger, so that a restart need not compute them anew.

A file's name is a digest of the model and of every row that the state has seen: a state of other rows is never taken
for it. The folder is a cache: it may be deleted at any time, and what is replayed is never read from it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kerneltrail.errors import KerneltrailError
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.rows import Row, arrays

KEPT = 3
"""Newest files that are kept of each participant."""


def digests(model_id: str, participant: str, batches: Sequence[Sequence[Row]], covariates: Sequence[str]) -> list[str]:
    """A digest for each number of batches from the first on: of the model, the participant and all their rows."""
    state = hashlib.sha256(f"{len(model_id)} {model_id} {participant}".encode())
    names = []
    for rows in batches:
        X, y, assignment = arrays(rows, covariates)
        state.update(f"\n{len(rows)}\n".encode())
        for column in (X, y, assignment.action, assignment.probability, assignment.available):
            if column is not None:
                state.update(column.tobytes())
        names.append(state.hexdigest())
    return names


class Shelf:
    """A folder of followed participants; what cannot be read or written there is computed, and nothing is said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _of(self, participant: str) -> Path:
        return self.folder / hashlib.sha256(participant.encode()).hexdigest()[:24]

    def read(self, participant: str, name: str, model: LearntGraph) -> NewUser | None:
        """The user of a digest, or None."""
        path = self._of(participant) / f"{name}.user"
        with suppress(OSError, KerneltrailError):
            if path.exists():
                return NewUser.from_bytes(path.read_bytes(), model, str(path))
        return None

    def write(self, participant: str, name: str, user: NewUser) -> None:
        """Keep a user, and only the newest of theirs."""
        folder = self._of(participant)
        with suppress(OSError, KerneltrailError):
            folder.mkdir(parents=True, exist_ok=True)
            user.save(folder / f"{name}.user")
            old = sorted(folder.glob("*.user"), key=lambda path: path.stat().st_mtime_ns)[:-KEPT]
            for path in old:
                path.unlink(missing_ok=True)

    def forget(self, participant: str) -> None:
        """Delete all files of a participant; one that cannot be deleted is an error, since data should be gone."""
        folder = self._of(participant)
        if folder.exists():
            shutil.rmtree(folder)

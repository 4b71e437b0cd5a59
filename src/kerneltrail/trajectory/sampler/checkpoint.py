"""Checkpoints of a fit: killed at any moment, it resumes bit for bit.

A folder with one line per MAP fit (append-only; a line cut short by a kill is dropped, and one of other users, pool,
priors, settings or code is left aside) and one file per chain (written beside and renamed). Numbers are written as
Python prints them, which reads back to the same bits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.map_table import Fits, MapTable


class Checkpoint:
    """A folder that belongs to one fit: same users, pool, priors, settings and code.

    Attributes:
        folder: where the files are.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrajectoryError(f"the checkpoint folder {self.folder} cannot be made: {error}") from None
        owner = self.folder / "fit.json"
        if owner.exists():
            found = _read(owner).get("key")
            if found != key:
                raise TrajectoryError(
                    f"the checkpoint in {self.folder} belongs to another fit (other data, pool, priors, settings or "
                    "code); remove it or name another folder"
                )
        else:
            _write(owner, {"key": key})

    @property
    def _fits(self) -> Path:
        return self.folder / "fits.jsonl"

    def read_fits(self, table: MapTable) -> int:
        """Put all fits of such a table that were kept into it; how many.

        The file may come from another fit of the same users, with other chains; of anything else nothing is taken.
        """
        if not self._fits.exists():
            return 0
        data = self._fits.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # the last line was cut short: drop it for good, so that appending stays sound
            with self._fits.open("r+b") as file:
                file.truncate(whole)
        kept = [_parsed(line, self._fits) for line in data[:whole].splitlines()]
        kept = [stored for stored in kept if stored.get("of") == table.digest]
        for stored in kept:
            theta = np.array(stored["theta"])
            table.put(
                stored["user"],
                stored["mask"],
                Fits(
                    theta,
                    np.array(stored["log_likelihood"]),
                    np.array(stored["log_laplace"]),
                    np.array(stored["precision"]).reshape(*theta.shape, theta.shape[1]),
                ),
            )
        return len(kept)

    def add_fits(self, table: MapTable, pairs: list[tuple[int, int]]) -> None:
        """Append fits that were just computed."""
        text = ""
        for user, mask in pairs:
            fits = table.get(user, mask)
            text += json.dumps(
                {
                    "of": table.digest,
                    "user": user,
                    "mask": mask,
                    "theta": fits.theta.tolist(),
                    "log_likelihood": fits.log_likelihood.tolist(),
                    "log_laplace": fits.log_laplace.tolist(),
                    "precision": fits.precision.tolist(),
                }
            )
            text += "\n"
        with self._fits.open("a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def read_chain(self, chain: int) -> dict[str, Any] | None:
        """The chain as it was last kept, or None."""
        path = self.folder / f"chain-{chain}.json"
        return _read(path) if path.exists() else None

    def write_chain(self, chain: int, stored: Mapping[str, Any]) -> None:
        """Keep a chain."""
        _write(self.folder / f"chain-{chain}.json", stored)


def _read(path: Path) -> dict[str, Any]:
    return _parsed(path.read_bytes(), path)


def _parsed(text: bytes, path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise TrajectoryError(
            f"the checkpoint file {path} is damaged ({error}); remove its folder or name another"
        ) from None


def _write(path: Path, stored: Mapping[str, Any]) -> None:
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("w") as file:
        json.dump(stored, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)

"""Checkpoints of a fit: killed at any moment, it resumes bit for bit.

A folder of the store with a log of MAP fits (one of other users, pool, priors, settings or code is left aside) and a
log of each chain's legs. Numbers are written as Python prints them, which reads back to the same bits. What is damaged
is refused by name, never used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kerneltrail.errors import DataError, TrajectoryError
from kerneltrail.kernels import layout_of
from kerneltrail.store.cache import JSON, Cache, Log
from kerneltrail.store.validate import reading
from kerneltrail.trajectory.map_table import Fits, MapTable

T = TypeVar("T")


class Checkpoint:
    """A folder that belongs to one fit: same users, pool, priors, settings and code."""

    def __init__(self, folder: str | os.PathLike[str], key: str) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrajectoryError(f"the checkpoint folder {self.folder} cannot be made: {error}") from None
        self._cache = Cache(self.folder)
        with self._refused():
            owner = self._cache.read("fit", JSON)
        if owner is None:
            self._cache.put("fit", key, JSON)
        elif owner.value != key:
            raise TrajectoryError(
                f"the checkpoint in {self.folder} belongs to another fit (other data, pool, priors, settings or "
                "code); remove it or name another folder"
            )

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """What is wrong with a file, as an error of a fit that says what to do."""
        try:
            yield
        except DataError as problem:
            raise TrajectoryError(f"{problem}. Remove the checkpoint {self.folder}, or name another folder") from None

    @property
    def fits(self) -> Log:
        """The log of MAP fits."""
        return self._cache.log("fits")

    def read_fits(self, table: MapTable) -> int:
        """Put all fits of such a table that were kept into it; how many.

        The file may come from another fit of the same users, with other chains; of anything else nothing is taken.
        """
        count = 0
        with self._refused(), reading(str(self.fits.path)):
            for stored in self.fits.read():
                if stored["of"] == table.digest:
                    table.put(*_decode(stored, table))
                    count += 1
        return count

    def add_fits(self, table: MapTable, pairs: list[tuple[int, int]]) -> None:
        """Append fits that were just computed."""
        for user, mask in pairs:
            fits = table.get(user, mask)
            values = {name: getattr(fits, name).tolist() for name in fits.__dataclass_fields__}
            self.fits.append({"of": table.digest, "user": user, "mask": mask, **values})

    def read_legs(self, number: int, from_json: Callable[[Mapping[str, Any]], T]) -> list[T]:
        """The legs of a chain that were kept, in order."""
        log = self._cache.log(f"chain-{number}")
        with self._refused(), reading(str(log.path)):
            return [from_json(stored) for stored in log.read()]

    def add_leg(self, number: int, stored: Mapping[str, Any]) -> None:
        """Keep the next leg of a chain."""
        self._cache.log(f"chain-{number}").append(stored)


def _decode(stored: Mapping[str, Any], table: MapTable) -> tuple[int, int, Fits]:
    user, mask = stored["user"], stored["mask"]
    if user not in range(len(table.users)):
        raise DataError(f"there is no user {user}")
    batches, size = table.users[user].batches, layout_of(table.pool.composition(mask)).size
    shapes = {"theta": (batches, size), "log_likelihood": (batches,), "log_laplace": (batches,)}
    shapes["precision"] = (batches, size, size)
    values = {name: np.array(stored[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()}
    if stored.get("ends"):  # files of before have none
        values["ends"] = np.array(stored["ends"], dtype=np.float64).reshape(-1, size)
    return user, mask, Fits(**values)

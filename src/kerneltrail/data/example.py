"""A small simulated study that ships with the package: eight pilot users, four new ones, and a few missing values."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from kerneltrail.store.atomic import check_writable, write

PILOT, NEW = "pilot.csv", "new.csv"


def write_example(folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Copy the tables that ship with the package into a folder; returns the paths of pilot.csv and new.csv."""
    goal = Path(folder)
    shipped = {name: (files("kerneltrail.data") / "examples" / name).read_bytes() for name in (PILOT, NEW)}
    for name in shipped:
        check_writable(goal / name)
    pilot, new = (write(goal / name, content) for name, content in shipped.items())
    return pilot, new

"""A small simulated study that ships with the package: eight pilot users, four new ones, and their next two days."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from kerneltrail.store.atomic import check_writable, write

PILOT, NEW, NEXT = "pilot.csv", "new.csv", "next.csv"


def write_example(folder: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Copy the tables that ship with the package into a folder; returns the paths of pilot.csv, new.csv and next.csv.

    The last one has rows without an outcome, to be predicted.
    """
    goal = Path(folder)
    shipped = {name: (files("kerneltrail.data") / "examples" / name).read_bytes() for name in (PILOT, NEW, NEXT)}
    for name in shipped:
        check_writable(goal / name)
    pilot, new, following = (write(goal / name, content) for name, content in shipped.items())
    return pilot, new, following

"""Files that are never seen half written."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

from kerneltrail.errors import DataError


def write(path: str | os.PathLike[str], content: str | bytes, *, shown: Path | None = None) -> Path:
    """Write a file beside its goal, then rename it, so that a reader sees the old file or the new one.

    Folders on the way are made. An error names the path, or what is to be `shown` instead.

    Raises:
        DataError: where the path cannot be written.
    """
    goal = Path(path)
    beside = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
            beside.replace(goal)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        raise DataError(f"{shown or goal} cannot be written: {problem.strerror or problem}") from None
    return goal


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written now, rather than after a long computation.

    Raises:
        DataError: where the path cannot be written.
    """
    goal = Path(path)
    trial = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
    if goal.is_dir():
        raise DataError(f"{goal} cannot be written: it is a folder")
    made = [folder for folder in goal.parents if not folder.exists()]
    write(trial, b"", shown=goal)
    trial.unlink(missing_ok=True)
    with suppress(OSError):  # work that fails later must not leave empty folders behind
        for folder in made:
            folder.rmdir()

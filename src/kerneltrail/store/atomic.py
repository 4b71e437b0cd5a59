"""Files that are never seen half written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kerneltrail.errors import DataError, KerneltrailError


def write(
    path: str | os.PathLike[str],
    content: str | bytes | Iterator[bytes],
    *,
    shown: Path | None = None,
    error: type[KerneltrailError] = DataError,
) -> Path:
    """Write a file beside its goal, down to the disk, then rename it: a reader sees the old file or the new one.

    Folders on the way are made. Whatever fails, nothing is left beside the goal, and what stood there is untouched; an
    `error` names the goal, or the path `shown` in its place. Text is written as UTF-8;
    what comes in pieces is written piece by piece.
    """
    goal = Path(path)
    beside = goal.with_name(f".{uuid.uuid4().hex}.tmp")  # a name of its own: the goal's may be as long as names can be
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("xb") as file:
                text = content.encode("utf-8") if isinstance(content, str) else content
                file.writelines([text] if isinstance(text, bytes) else text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(goal)
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(goal.parent)
    except OSError as problem:
        raise error(f"{shown or goal} cannot be written: {problem.strerror or problem}") from None
    return goal


def read(path: str | os.PathLike[str], *, error: type[KerneltrailError] = DataError) -> bytes:
    """All of a file; an error of the class given says why it cannot be read."""
    source = Path(path)
    try:
        return source.read_bytes()
    except FileNotFoundError:
        raise error(f"there is no file {source}") from None
    except IsADirectoryError:
        raise error(f"{source} cannot be read: it is a folder, not a file") from None
    except (OSError, ValueError) as problem:  # ValueError: a path with a null character
        raise error(f"{source} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written now, rather than after a long computation."""
    goal = Path(path)
    if goal.is_dir():
        raise DataError(f"{goal} cannot be written: it is a folder")
    new_folders = [folder for folder in goal.parents if not folder.exists()]
    trial = goal.with_name(f".{uuid.uuid4().hex}.trial")
    write(trial, b"", shown=goal)
    trial.unlink(missing_ok=True)
    with suppress(OSError):  # work that fails later must not leave empty folders behind
        for folder in new_folders:
            folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """A renamed file survives a power cut only once its folder is on the disk, too."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Files that a command writes: none may be one that it reads, or that it writes for something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


def check_outputs(written: Mapping[str, Path | None], read: Iterable[Path | None] = ()) -> None:
    """Refuse, before the work begins, a file that would replace one that is read here, and one that cannot be written.

    Args:
        written: the file of each option, None where the option is not given.
        read: files that the command reads, None where there is none.
    """
    from kerneltrail.errors import DataError
    from kerneltrail.store.atomic import check_writable

    sources = [path for path in read if path is not None]
    taken: dict[str, Path] = {}
    for option, path in written.items():
        if path is None:
            continue
        if any(_is_same(path, source) for source in sources):
            raise DataError(f"`{option}` names {path}, which is read here: name another file")
        for other, its in taken.items():
            if _is_same(path, its):
                raise DataError(f"{other} and {option} both name {path}; they need a file each")
        taken[option] = path
        check_writable(path)


def check_folder(option: str, folder: Path, names: Iterable[str], read: Iterable[Path | None]) -> None:
    """Refuse a folder in which files of some names, which are written there, would replace one that is read here."""
    from kerneltrail.errors import DataError

    sources = [path for path in read if path is not None]
    for name in names:
        if any(_is_same(folder / name, source) for source in sources):
            raise DataError(
                f"`{option}` names a folder into which {name} is written, and {folder / name} is read here: name "
                "another folder"
            )


def _is_same(path: Path, other: Path) -> bool:
    """Whether both are one file, also by a link or under another name."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()

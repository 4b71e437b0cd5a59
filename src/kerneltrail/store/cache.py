"""What was computed, kept so that a stopped computation goes on: a folder of entries by name, and of logs.

An entry is one file, written whole: a line with a sum of all that follows and what else is to be known of it (seconds),
then the value's bytes. A log is a file that grows by a line for each value, a sum before it. A file or line that is not
what was written is never used: `Cache.read` refuses it by name, `Cache.get` takes it for not there, so that it is
computed again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from kerneltrail.errors import DataError, KerneltrailError
from kerneltrail.store.atomic import check_writable, read, write
from kerneltrail.store.container import pack, unpack
from kerneltrail.store.digest import blake
from kerneltrail.store.validate import reading

T = TypeVar("T")

ENTRY = ".entry"
"""Ending of an entry's file."""
KEY = 12
"""Letters of a digest at the end of a name."""


@dataclass(frozen=True)
class Format(Generic[T]):
    """How values of one kind are kept as bytes."""

    save: Callable[[T], bytes]
    load: Callable[[bytes], T]


def json_format(to_json: Callable[[T], Any], from_json: Callable[[Any], T]) -> Format[T]:
    """The format of values that two functions turn into plain ones and back; floats keep their bits."""
    return Format(
        lambda value: json.dumps(to_json(value), ensure_ascii=False).encode(), lambda data: from_json(json.loads(data))
    )


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    return unpack(data, "arrays", "the entry")[1]


JSON: Format[Any] = json_format(lambda value: value, lambda value: value)
"""Plain values: dicts with text keys, lists, numbers (NaN and infinities too), texts, True, False, None."""
ARRAYS: Format[Mapping[str, NDArray[Any]]] = Format(lambda arrays: pack("arrays", {}, arrays), _arrays)
"""Arrays by name."""


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A value that was kept, with what else was said of it."""

    value: T
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cache:
    """A folder of entries and logs."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Cache:
        """The folder, made by what is kept first; refused at once where nothing can be written into it."""
        goal = Path(folder)
        try:
            check_writable(goal / "entry")
        except DataError as problem:
            raise DataError(str(problem).replace(str(goal / "entry"), str(goal))) from None
        return cls(goal)

    def path(self, name: str) -> Path:
        """The file of an entry."""
        return self.folder / f"{name}{ENTRY}"

    def read(self, name: str, format: Format[T]) -> Entry[T] | None:
        """The entry of a name; None if there is none. A damaged file is refused by name."""
        path = self.path(name)
        if not path.exists():
            return None
        with reading(str(path)):
            head, _, content = read(path).partition(b"\n")
            total, _, facts = head.partition(b" ")
            if total != _sum(facts, content):
                raise DataError(f"{path} is damaged: it is not what was written")
            return Entry(format.load(content), json.loads(facts))

    def get(self, name: str, format: Format[T]) -> Entry[T] | None:
        """The entry of a name; None if there is none, or if it is damaged: then it is computed again."""
        try:
            return self.read(name, format)
        except KerneltrailError:
            return None

    def put(self, name: str, value: T, format: Format[T], **facts: Any) -> T:
        """Keep a value; returns it as it will be read, so that a run that was stopped cannot differ from another."""
        content, header = format.save(value), json.dumps(facts).encode()
        write(self.path(name), _sum(header, content) + b" " + header + b"\n" + content)
        return format.load(content)

    def log(self, name: str) -> Log:
        """A log in the folder."""
        return Log(self.folder / f"{name}.log")

    def tidy(self, used: AbstractSet[str]) -> None:
        """Remove files and folders named as those in use, but for another key: `KEY` letters after a dash."""
        for path in sorted(self.folder.glob("*-*")):
            if superseded(path.name.partition(".")[0], used):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@dataclass(frozen=True)
class Log:
    """A file that grows by lines, each a plain value with its sum."""

    path: Path

    def append(self, value: Any) -> None:
        """Add a value, down to the disk; where that fails, the file is as it was before."""
        text = json.dumps(value).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                before = file.tell()
                try:
                    line = _sum(text) + b" " + text + b"\n"
                    if file.write(line) != len(line):
                        raise OSError(28, "No space left on device")
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):  # a line that is left cut short is dropped by the next reader
                        file.truncate(before)
                    raise
        except OSError as problem:
            raise DataError(f"{self.path} cannot be written: {problem.strerror or problem}") from None

    def read(self) -> Iterator[Any]:
        """All values; a damaged line is refused, and a file that is no log is left as it is.

        A last line that was cut short is removed for good, so that appending stays sound.
        """
        if not self.path.exists():
            return
        *lines, rest = read(self.path).split(b"\n")
        for number, line in enumerate(lines if _is_cut_short(rest) else [*lines, rest], start=1):
            total, _, text = line.partition(b" ")
            if total != _sum(text):
                raise DataError(f"{self.path} is damaged: line {number} is not what was written")
        if rest:
            try:
                os.truncate(self.path, sum(len(line) + 1 for line in lines))
            except OSError as problem:
                raise DataError(f"{self.path} cannot be written: {problem.strerror or problem}") from None
        for line in lines:
            with reading(str(self.path)):
                value = json.loads(line.partition(b" ")[2])
            yield value


def _is_cut_short(line: bytes) -> bool:
    """Whether it can be the beginning of a line of a log: of a sum, or of what follows one."""
    head, space, _ = line.partition(b" ")
    whole = len(_sum())
    return (len(head) == whole if space else len(head) <= whole) and set(head) <= set(b"0123456789abcdef")


def _sum(*parts: bytes) -> bytes:
    return blake(*(b"%d:%b" % (len(part), part) for part in parts)).hex().encode()


def superseded(name: str, used: AbstractSet[str]) -> bool:
    """Whether a name differs from one in use in its key alone.

    >>> used = {"fit-0-ba9876543210"}
    >>> superseded("fit-0-0123456789ab", used), superseded("fit-1-0123456789ab", used)
    (True, False)
    """
    stage, _, key = name.rpartition("-")
    known = stage in {each.rpartition("-")[0] for each in used}
    return known and name not in used and len(key) == KEY and set(key) <= set("0123456789abcdef")

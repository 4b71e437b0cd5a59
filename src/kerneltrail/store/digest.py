"""The one digest: of bytes and arrays, of values, of files, and of code by layer.

What was computed must not be taken for something else. So results are kept under a digest of all they depend on: data,
settings, and the code of the rooms that computed them. Code is compiled before it is digested, so that a comment, a
docstring or a blank line changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache, singledispatch
from pathlib import Path, PurePath
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError

HOME = Path(__file__).parents[1]
"""The package's folder."""

LAYERS = ("kernels", "data", "gp", "trajectory", "methods", "evaluation")
"""Rooms whose code decides what is computed, each on those before it; the others only show, keep or run it."""


def blake(*parts: str | bytes | NDArray[Any], size: int = 16) -> bytes:
    """The digest of texts, bytes and the bytes of arrays, one after the other."""
    total = hashlib.blake2b(digest_size=size)
    for part in parts:
        if isinstance(part, np.ndarray):
            part = np.ascontiguousarray(part).tobytes()
        total.update(part.encode() if isinstance(part, str) else part)
    return total.digest()


def seed_of(text: str) -> int:
    """A seed that depends on a text alone: 64 bits."""
    return int.from_bytes(blake(text, size=8), "big")


def digest(*values: Any) -> str:
    """A digest of `described` values, in 32 letters: equal for equal ones in every process, whatever the order of keys.

    >>> digest({"a": 1, "b": (2.0, None)}) == digest({"b": [2.0, None], "a": 1})
    True
    """
    return blake(json.dumps([described(value) for value in values], sort_keys=True, ensure_ascii=False)).hex()


@singledispatch
def described(value: Any) -> Any:
    """A value as plain JSON, for digests, and for people to read what was asked for.

    Rooms register their own values with it: a user is its fingerprint, a kernel its text. One whose content cannot be
    told, such as a function, is refused.
    """
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: described(getattr(value, field.name)) for field in fields(value) if field.compare}
        return {type(value).__name__: values}
    raise DataError(f"a setting of type {type(value).__name__} cannot be described, so its results cannot be kept")


for _kind in (type(None), bool, int, str):
    described.register(_kind, lambda value: value)
described.register(float, lambda value: value if np.isfinite(value) else str(value))
described.register(np.generic, lambda value: described(value.item()))
described.register(np.ndarray, lambda value: {"array": [str(value.dtype), list(value.shape), blake(value).hex()]})
described.register(PurePath, str)
described.register(Mapping, lambda value: {str(key): described(value[key]) for key in sorted(value, key=str)})
described.register(Set, lambda value: sorted((described(item) for item in value), key=repr))
described.register(Sequence, lambda value: [described(item) for item in value])


def content_digest(path: str | Path) -> str:
    """A file's content, or that of all files of a folder, in sixteen letters."""
    root = Path(path)
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    return blake(*(part for file in files for part in (f"{file.relative_to(root)}\n", file.read_bytes())), size=8).hex()


@cache
def code(layer: str, method: str | None = None) -> str:
    """A digest of the package's code of a layer and of all before it: a fit depends on ``code("trajectory")``.

    With `method`, a module or package of ``methods`` such as ``cks``, only those packages count that it imports.
    Modules that lie directly in ``methods`` belong to every method.
    """
    files: list[Path] = []
    for room in LAYERS[: LAYERS.index(layer) + 1]:
        if room == "methods" and method is not None:
            files += sorted((HOME / room).glob("*.py"))
            files += [file for name in sorted(_imported(method)) for file in sorted((HOME / room / name).rglob("*.py"))]
        else:
            files += sorted((HOME / room).rglob("*.py"))
    return blake(*(part for file in files for part in (f"{file.relative_to(HOME)}\n", compiled(file))), size=8).hex()


def _imported(method: str) -> set[str]:
    """A module or package of ``methods``, with all of that room which it imports, directly or not."""
    known: set[str] = set()
    new = [method]
    while new:
        name = new.pop()
        if name not in known:
            known.add(name)
            for file in (HOME / "methods" / f"{name}.py", *(HOME / "methods" / name).rglob("*.py")):
                if file.is_file():
                    new += re.findall(r"kerneltrail\.methods\.(\w+)", file.read_text(encoding="utf-8"))
    return known


@cache
def compiled(path: Path) -> bytes:
    """A digest of a module as it runs: without comments, docstrings, assertions and the numbers of lines."""
    source = path.read_bytes()
    try:
        return blake(*instructions(compile(source, "", "exec", optimize=2, dont_inherit=True)))
    except (SyntaxError, ValueError):  # it does not run here, so it is what it says
        return blake(source)


def instructions(code: CodeType) -> Iterable[bytes]:
    """Compiled code as bytes, functions inside it included; where it stands in a file does not matter."""
    yield code.co_code
    yield code.co_exceptiontable
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
    yield repr((code.co_name, names, counts)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from instructions(constant)
        elif isinstance(constant, frozenset):  # of `x in {"a", "b"}`: its order is another in every process
            yield repr(sorted(map(repr, constant))).encode()
        else:
            yield repr(constant).encode()

"""What a finished stage of an experiment is kept as, and what it depends on."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import kerneltrail

COMPUTING = ("kernels", "data", "gp", "trajectory", "baselines", "evaluation")
"""Folders whose code decides what a stage computes; the others only show it."""


class Codec(Protocol):
    """How values of one kind are kept in a file."""

    @property
    def suffix(self) -> str:
        """Ending of the file's name."""
        ...

    def save(self, value: Any) -> bytes:
        """The file's content."""
        ...

    def load(self, data: bytes) -> Any:
        """The value that `save` was given; what is computed anew is passed through both, so that nothing differs."""
        ...


class _Json:
    suffix = "json"

    def save(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode()  # floats read back to the same bits

    def load(self, data: bytes) -> Any:
        return json.loads(data)


class _Arrays:
    suffix = "npz"

    def save(self, value: Mapping[str, NDArray[Any]]) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(file, **value)  # type: ignore[arg-type]
        return file.getvalue()

    def load(self, data: bytes) -> dict[str, NDArray[Any]]:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


JSON: Codec = _Json()
"""Plain values: dicts with text keys, lists, numbers (NaN and infinities too), texts, True, False, None."""
ARRAYS: Codec = _Arrays()
"""Arrays by name."""


def fingerprint(path: str | Path) -> str:
    """A file's content, or that of all files of a folder, in sixteen letters."""
    root = Path(path)
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def code_of(compute: Callable[..., Any]) -> str:
    """The code that a stage depends on: the library's computing folders, and the module of `compute` itself."""
    module = sys.modules[compute.__module__]
    file = getattr(module, "__file__", None)
    own = "" if file is None else fingerprint(file)
    return f"{_library()} {own}"


@cache
def _library() -> str:
    home = Path(str(kerneltrail.__file__)).parent
    digest = hashlib.blake2b(digest_size=8)
    for folder in COMPUTING:
        for file in sorted((home / folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def key_of(parts: Mapping[str, Any]) -> str:
    """Plain values in twelve letters: equal for equal values, whatever the order of keys."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

"""The code that results depend on, as digests: what other code computed must not be taken for this one's."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
"""The package's folder."""

COMPUTING = ("kernels", "data", "gp", "trajectory", "methods", "evaluation")
"""Folders whose code decides what is computed; the others only show it."""


def code_of(compute: Callable[..., Any]) -> str:
    """The code that a function's results depend on: the library's computing folders, and the function's own module."""
    file = getattr(sys.modules.get(compute.__module__), "__file__", None)
    own = "" if file is None else content_digest(file)
    return f"{library()} {own}"


@cache
def library() -> str:
    """A digest of the library's computing folders, names of files included."""
    return _joined(HOME, [file for folder in COMPUTING for file in sorted((HOME / folder).rglob("*.py"))])


def content_digest(path: str | Path) -> str:
    """A file's content, or that of all files of a folder, in sixteen letters."""
    root = Path(path)
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    return _joined(root, files)


def _joined(root: Path, files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()

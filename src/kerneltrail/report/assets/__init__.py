"""Style and scripts of the pages, kept as files of their own kind."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """The text of a file in this folder."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")

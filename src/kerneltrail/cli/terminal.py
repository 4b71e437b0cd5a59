"""What the commands print: results on standard output, warnings on standard error, as progress is (`progress`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from kerneltrail.data import Finding

NO_EDGE = 1000
"""Characters of a line where nobody knows how wide it may be: in a file or a pipe, a table must lose no number."""


def results() -> Console:
    """Standard output, as wide as the terminal is; where it is none, as wide as tables need."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=NO_EDGE)


def say(lines: Iterable[str] = ("",), *, style: str | None = None) -> None:
    """Print lines as they are: kernels have brackets, which must not be taken for markup, and nothing is wrapped."""
    console = results()
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def warn(findings: Sequence[Finding], more: str = "kerneltrail check --model says more.") -> None:
    """Print what is odd about a table beside the pilot users on standard error, briefly; nothing if all is fine."""
    from rich.console import Console

    from kerneltrail.data.checks import brief

    console = Console(stderr=True)
    for line in brief(findings, more):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def title(text: str) -> None:
    """Print a heading."""
    say(["", text], style="bold")

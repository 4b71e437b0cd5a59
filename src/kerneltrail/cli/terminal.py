"""What the commands print as their results, on standard output; progress goes to standard error (`progress`)."""

from __future__ import annotations

from collections.abc import Iterable


def say(lines: Iterable[str] = ("",), *, style: str | None = None) -> None:
    """Print lines as they are: kernels have brackets, which must not be taken for markup, and nothing is wrapped."""
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def title(text: str) -> None:
    """Print a heading."""
    say(["", text], style="bold")

"""What the commands print, and where: results to standard output, progress to standard error."""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

FIRST, EVERY, SELDOM = 1.0, 5.0, 15.0
"""Seconds before the first line of progress, between the next ones, and between those of work that takes long."""


def say(lines: Iterable[str] = ("",), *, style: str | None = None) -> None:
    """Print lines as they are: kernels have brackets, which must not be taken for markup, and nothing is wrapped."""
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def title(text: str) -> None:
    """Print a heading."""
    say(["", text], style="bold")


class ProgressDisplay(ABC):
    """How far long work is, for people."""

    @abstractmethod
    def update(self, stage: str, done: int = 0, total: int | None = None, message: str = "") -> None:
        """Show how far a stage is; `total` is None where nobody knows how many steps there will be."""

    def counter(self, stage: str, total: int) -> Callable[[str], None]:
        """What to call before each of `total` steps of a stage, with the step's name."""
        begun = -1

        def next_step(name: str) -> None:
            nonlocal begun
            begun += 1
            self.update(stage, begun, total, name)

        return next_step


class _Bars(ProgressDisplay):
    """A bar for each stage, on a terminal."""

    def __init__(self, bars: Progress, start: str) -> None:
        self._bars = bars
        self._start: TaskID | None = bars.add_task("", stage=start, total=None)
        self._tasks: dict[str, TaskID] = {}

    def update(self, stage: str, done: int = 0, total: int | None = None, message: str = "") -> None:
        if self._start is not None:
            self._bars.remove_task(self._start)
            self._start = None
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task("", stage=stage, total=None)
        self._bars.update(self._tasks[stage], completed=done, total=total, description=message)


class _Lines(ProgressDisplay):
    """A line every few seconds, where nobody watches a terminal: in a log, through a pipe, in a notebook."""

    def __init__(self, start: str) -> None:
        self._line = start
        self._began = time.monotonic()
        self._finished = threading.Event()
        self._stream = sys.stderr
        # A thread, so that a line also comes where a single step takes minutes.
        self._thread = threading.Thread(target=self._print_lines, daemon=True)
        self._thread.start()

    def update(self, stage: str, done: int = 0, total: int | None = None, message: str = "") -> None:
        count = "" if total is None else f" {done}/{total}"
        self._line = f"{stage}{count}{f': {message}' if message else ''}"

    def _print_lines(self) -> None:
        wait = FIRST
        while not self._finished.wait(wait):
            elapsed = time.monotonic() - self._began
            with suppress(OSError, ValueError):  # a reader that has gone away must not end the work
                print(f"{elapsed:5.0f} s  {self._line}", file=self._stream, flush=True)
            wait = min(max(EVERY, elapsed / 10), SELDOM)

    def close(self) -> None:
        self._finished.set()
        self._thread.join()


@contextmanager
def progress(start: str = "starting", *, keep: bool = False) -> Iterator[ProgressDisplay]:
    """The display of one piece of long work: bars on a terminal, lines elsewhere; `keep` leaves the bars at the end.

    It shows `start` from the first second until the first update.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(start)
        try:
            yield lines
        finally:
            lines.close()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[stage]}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    # Standard output may be a file: what is printed there must not be drawn above the bars.
    with Progress(*columns, console=console, transient=not keep, redirect_stdout=False) as bars:
        yield _Bars(bars, start)

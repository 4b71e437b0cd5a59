"""How far long work is: what it says of itself, and how people see it, as bars on a terminal or as lines elsewhere.

Work that takes long has stages, one after the other. It says how far it is with a `Progress`; whoever wants to know
gives it a function that takes one. `show_progress` is the display for people, and `reporting` lets a function of the
library have either.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, Group

FIRST, EVERY, SELDOM = 0.8, 5.0, 15.0
"""Seconds before the first line of progress, between the next ones, and between those of work that takes long."""

ROWS = 12
"""Stages that are shown at once on a terminal, the newest ones."""

Bound = Literal["about", "at least", "at most"]
"""How an estimate of the time left is meant: `at least` where steps may be added, `at most` where it may end early."""


@dataclass(frozen=True)
class Progress:
    """How far a stage of long work is.

    Attributes:
        stage: what is being done, in words.
        done, total: steps of the stage; no total where nobody knows how many there are.
        said: what is at hand.
        bound: how an estimate from these numbers is meant.
    """

    stage: str
    done: int = 0
    total: int | None = None
    said: str = ""
    bound: Bound = "about"

    @property
    def count(self) -> str:
        """Steps done and in all; a plus sign where more may come.

        >>> Progress("fitting candidates", 3, 8, bound="at least").count
        '3/8+'
        """
        return "" if self.total is None else f"{self.done}/{self.total}{'+' if self.bound == 'at least' else ''}"


Tell = Callable[[Progress], None]
"""Hears how far work is."""

P = TypeVar("P", bound=Progress)


def in_words(seconds: float) -> str:
    """A time that need not be exact.

    >>> in_words(0.2), in_words(41.7), in_words(100), in_words(4000)
    ('1 s', '42 s', '2 min', '1 h 7 min')
    """
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Stage:
    """A stage on the display: how far it is, since when, and how long the rest will take at its pace."""

    def __init__(self, name: str, now: float) -> None:
        self.progress = Progress(name)
        self.began = now
        self.ended: float | None = None
        self._samples: deque[tuple[float, int]] = deque()
        self._counted = now  # since when steps are counted
        self._start = 0  # how many there were then

    def update(self, progress: Progress, now: float) -> None:
        """Hear how far it is."""
        anew = self.progress.total is None or progress.done < self.progress.done
        self.progress = progress
        if progress.total is None:
            return
        if anew:  # a count that falls is that of the next part of the stage
            self._counted, self._samples, self._start = now, deque(), progress.done
        if progress.done == self._start:  # the first step takes what starting takes: the pace is that of those after it
            return
        self._samples.append((now, progress.done))
        # Of these, that of the later half of the time: early steps may be quicker or slower than those to come.
        middle = 0.5 * (self._counted + now)
        while len(self._samples) > 2 and self._samples[1][0] <= middle:
            self._samples.popleft()

    def left(self, now: float) -> float | None:
        """Seconds that the rest will take; None where nothing is known of it yet."""
        progress, samples = self.progress, self._samples
        total = progress.total
        if total is None or progress.done >= total:
            return None if total is None else 0.0
        if not samples or samples[-1][1] <= samples[0][1]:
            return None
        (since, before), (last, done) = samples[0], samples[-1]
        step = (last - since) / (done - before)
        # The step at hand has taken a while already. Where it takes longer than others, it is said to end any moment.
        return max((total - done) * step - (now - last), (total - done - 1) * step)

    def rest(self, now: float) -> str:
        """What `left` says, for people; nothing where nothing is left."""
        left = None if self.ended is not None else self.left(now)
        return "" if not left else f"{self.progress.bound} {in_words(left)} left"


class ProgressDisplay:
    """What people see of long work: its stages with their number, how far each is, and how long it will take.

    Make one with `show_progress`. The stages that are planned are counted; one that nobody planned counts when it
    comes.
    """

    def __init__(self, *stages: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._planned: list[str] = []
        self._counted = False
        self._clock = clock
        self._began = clock()
        self._stages: dict[str, _Stage] = {}
        self._current: _Stage | None = None
        self.pause: Callable[[], AbstractContextManager[object]] = nullcontext
        """A block in which others may print."""
        self.plan(*stages)
        if stages:
            self.show(Progress(stages[0]))

    def plan(self, *stages: str) -> None:
        """Add stages that are to come; only then is it said of how many a stage is one."""
        self._planned = list(dict.fromkeys((*self._planned, *stages)))
        self._counted = self._counted or bool(stages)

    def show(self, progress: Progress) -> None:
        """Show how far a stage is; stages before it have ended."""
        now = self._clock()
        stage = self._stages.get(progress.stage)
        if stage is None:
            self._planned = list(dict.fromkeys((*self._planned, progress.stage)))
            stage = self._stages[progress.stage] = _Stage(progress.stage, now)
        if self._current is not stage:
            if self._current is not None:
                self._current.ended = now
            self._current, stage.ended = stage, None
        stage.update(progress, now)

    def counter(self, stage: str, total: int) -> Callable[[str], None]:
        """What to call before each of `total` steps of a stage, with the step's name."""
        begun = -1

        def next_step(name: str) -> None:
            nonlocal begun
            begun += 1
            self.show(Progress(stage, begun, total, name))

        return next_step

    def line(self) -> str:
        """All that matters now, in a line."""
        now, stage = self._clock(), self._current
        elapsed = f"{now - self._began:5.0f} s  "
        if stage is None:
            return f"{elapsed}starting"
        progress, rest = stage.progress, stage.rest(now)
        count = f" {progress.count}" if progress.count else ""
        said = f": {progress.said}" if progress.said else ""
        return f"{elapsed}{self._title(stage)}{count}{f', {rest}' if rest else ''}{said}"

    def bars(self) -> Group:
        """A row with a bar for every stage that has begun, and below the last one what is at hand."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now, grid = self._clock(), Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(max_width=20, min_width=6)  # what gives way where the terminal is narrow
        for _ in range(2):
            grid.add_column(no_wrap=True)
        for stage in list(self._stages.values())[-ROWS:]:
            progress, rest = stage.progress, stage.rest(now)
            ended, total = stage.ended is not None, progress.total or 1
            bar = ProgressBar(total, total if ended else progress.done, pulse=not ended and not progress.total)
            minutes, seconds = divmod(int((now if stage.ended is None else stage.ended) - stage.began), 60)
            time = f"{minutes}:{seconds:02d}{f', {rest}' if rest else ''}"
            grid.add_row(Text(self._title(stage)), bar, Text(progress.count), Text(time))
        said = "starting" if self._current is None else self._current.progress.said
        return Group(grid, *([Text(f"  {said}", style="dim", no_wrap=True, overflow="ellipsis")] if said else []))

    def end(self) -> None:
        """Show the last stage as ended too."""
        if self._current is not None:
            self._current.ended = self._clock()

    def _title(self, stage: _Stage) -> str:
        """A stage's name with its number: a single stage needs none."""
        name = stage.progress.stage
        if len(self._planned) == 1:
            return name
        number, many = self._planned.index(name) + 1, f" of {len(self._planned)}" if self._counted else ""
        return f"stage {number}{many}: {name}"


@contextmanager
def show_progress(*stages: str, keep: bool = False) -> Iterator[ProgressDisplay]:
    """The display of one piece of long work with these stages: bars on a terminal, lines on standard error elsewhere.

    The first stage begins at once. `keep` leaves the bars at the end.
    """
    display = ProgressDisplay(*stages)
    console = _terminal()
    with _lines(display) if console is None else _bars(display, console, keep=keep):
        yield display
        display.end()


@contextmanager
def reporting(progress: Callable[[P], None] | bool | None, *stages: str) -> Iterator[Callable[[P], None]]:
    """Whom to tell of progress: the function given; with True a display with these stages; else nobody."""
    if progress is True:
        with show_progress(*stages) as display:
            yield display.show
    else:
        yield progress or (lambda now: None)


def _terminal() -> Console | None:
    """The terminal that standard error goes to, if it is one."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    return console if console.is_terminal else None


@contextmanager
def _bars(display: ProgressDisplay, console: Console, *, keep: bool) -> Iterator[None]:
    from rich.live import Live

    def begin() -> Live:
        # Standard output may be a file: what is printed there must not be drawn above the bars.
        live = Live(
            get_renderable=display.bars,
            console=console,
            transient=not keep,
            refresh_per_second=5,
            redirect_stdout=False,
        )
        live.start(refresh=True)
        return live

    live = begin()

    @contextmanager
    def pause() -> Iterator[None]:
        nonlocal live
        live.transient = True
        live.stop()
        try:
            yield
        finally:
            live = begin()  # a new one: the old one would go back to where its own lines were

    display.pause = pause
    try:
        yield
    finally:
        live.stop()


@contextmanager
def _lines(display: ProgressDisplay) -> Iterator[None]:
    """A line every few seconds, where nobody watches a terminal: in a log, through a pipe, in a notebook."""
    finished, stream, began = threading.Event(), sys.stderr, time.monotonic()

    def print_lines() -> None:
        wait = FIRST
        while not finished.wait(wait):
            with suppress(OSError, ValueError):  # a reader that has gone away must not end the work
                print(display.line(), file=stream, flush=True)
            wait = min(max(EVERY, (time.monotonic() - began) / 10), SELDOM)

    # A thread, so that a line also comes where a single step takes minutes.
    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()

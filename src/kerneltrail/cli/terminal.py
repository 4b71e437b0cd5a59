"""What the commands print, and where: results to standard output, progress to standard error if somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kerneltrail.methods.cks import SearchProgress
    from kerneltrail.studies.experiments import StageProgress
    from kerneltrail.trajectory.sampler.chains import FitProgress


def say(lines: Iterable[str] = ("",), *, style: str | None = None) -> None:
    """Print lines as they are: kernels have brackets, which must not be taken for markup, and nothing is wrapped."""
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def title(text: str) -> None:
    """Print a heading."""
    say(["", text], style="bold")


@contextmanager
def fit_bar() -> Iterator[Callable[[FitProgress], None]]:
    """A bar for each stage of a fit; yields what to call as it goes on. Silent when nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(progress: FitProgress) -> None:
            stage = progress.stage
            if stage not in tasks:
                tasks[stage] = bar.add_task("", stage=stage)
            bar.update(tasks[stage], completed=progress.done, total=progress.total, description=_standing(progress))

        yield tell


def _standing(progress: FitProgress) -> str:
    """Where the chains stand, in a few words."""
    said = []
    if progress.log_joint is not None:
        said.append(f"log joint {progress.log_joint:.1f}")
    if progress.nodes is not None:
        said.append(f"{progress.nodes} nodes")
    if progress.edges is not None:
        said.append(f"{progress.edges} edges")
    if progress.rhat is not None and progress.rhat == progress.rhat:  # not a number before the second look
        said.append(f"R-hat {progress.rhat:.3f}")
    return ", ".join(said)


@contextmanager
def user_bar(total: int) -> Iterator[Callable[[str], None]]:
    """A bar over users; yields what to call with each user's name. Silent when nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        begun = False

        def tell(name: str) -> None:
            nonlocal begun
            bar.update(task, advance=1 if begun else 0, description=name)
            begun = True

        yield tell


@contextmanager
def experiment_bar() -> Iterator[Callable[[StageProgress], None]]:
    """A bar for each stage of an experiment, which stays when the stage is done. Silent when nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[stage]}", markup=False), BarColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def hear(told: StageProgress) -> None:
            if told.stage not in tasks:
                tasks[told.stage] = bar.add_task("", stage=told.stage, total=None)
            said = f"{told.said}, kept from an earlier run" if told.kept else told.said
            bar.update(tasks[told.stage], completed=told.done, total=told.total or None, description=said)

        yield hear


@contextmanager
def search_bar(depth: int) -> Iterator[Callable[[SearchProgress], None]]:
    """A bar for each level of a kernel search, with the best so far. Silent when nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[stage]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[int, TaskID] = {}

        def tell(progress: SearchProgress) -> None:
            if progress.level not in tasks:
                stage = "held-out rows" if progress.judging else f"level {progress.level} of {depth}"
                tasks[progress.level] = bar.add_task("", stage=stage)
            best = "" if progress.best is None else f"BIC {progress.best[1]:.1f}  {progress.best[0]}"
            bar.update(tasks[progress.level], completed=progress.done, total=progress.total, description=best)

        yield tell

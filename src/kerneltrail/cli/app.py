"""The command line. Imports of the library stand inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from kerneltrail.cli import register
from kerneltrail.errors import KerneltrailError

if TYPE_CHECKING:
    from rich.console import Console

REFUSED, INTERRUPTED = 2, 130
"""Exit codes: what was asked cannot be done; the user pressed Ctrl-C (as shells report it)."""


class _Edge(TyperGroup):
    """Commands whose expected failures end in a message, not in a traceback."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override, unused-ignore]
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KerneltrailError as problem:
            from rich.text import Text

            _console(stderr=True).print(Text(str(problem), style="red"), soft_wrap=True)
            raise typer.Exit(REFUSED) from None
        except KeyboardInterrupt:
            _console(stderr=True).print("Stopped.")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    rich_markup_mode="markdown",
    cls=_Edge,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Gaussian-process kernels that grow with a user's data.",
)


class Benchmark(StrEnum):
    """The benchmarks on offer."""

    evidence = "evidence"
    map = "map"
    methods = "methods"
    nested = "nested"
    recovery = "recovery"
    update = "update"
    train = "train"
    select = "select"
    all = "all"


def main() -> None:
    """Entry point of the command ``kerneltrail``."""
    app()


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; yields what to call before each step. Silent when nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = _console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        begun = False

        def tick(said: str) -> None:
            nonlocal begun
            bar.update(task, advance=1 if begun else 0, description=said)
            begun = True

        yield tick


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kerneltrail {version('kerneltrail')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Gaussian-process kernels that grow with a user's data."""


@app.command()
def bench(
    which: Annotated[Benchmark, typer.Argument(help="What to measure.")] = Benchmark.all,
    json: Annotated[Path | None, typer.Option("--json", help="Write the rows to this file.", dir_okay=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and users, rougher ratios.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of data and hyperparameters.")] = 0,
) -> None:
    """Measure this machine: evidence, MAP, updates, training and selection, beside LAPACK and other libraries."""
    from kerneltrail.store.atomic import check_writable
    from kerneltrail.studies import bench as benches

    if json is not None:
        check_writable(json)
    about = {**benches.machine(), "seed": seed, "quick": quick}  # the load before we add to it
    with _progress(benches.steps(which.value, quick=quick)) as tick:
        rows = list(benches.run(which.value, seed=seed, quick=quick, tick=tick))
    console = _console()
    for table in benches.tables(rows):
        console.print(table)
    if json is not None:
        console.print(f"{len(rows)} rows written to {benches.save(json, rows, about)}", soft_wrap=True, markup=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the page and its pictures.", file_okay=False)] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulated users.")] = 0,
) -> None:
    """Learn a graph of kernels from simulated pilot users, follow new users on it, and write a page about it all."""
    from kerneltrail.studies import demo as demonstration

    with _progress(demonstration.STEPS) as tick:
        page = demonstration.run(out, seed=seed, tick=tick)
    console = _console()
    console.print(f"Open {page}", soft_wrap=True, markup=False)
    console.print(f"Look at the model: kerneltrail show {out / demonstration.MODEL}", soft_wrap=True, markup=False)


@app.command()
def describe(
    kernel: Annotated[str, typer.Argument(help="A kernel, such as 'LIN[x] + PER[hour]'.")],
    target: Annotated[str, typer.Option("--target", help="What to call the target.")] = "y",
) -> None:
    """Say in plain words what a kernel means, with its hyperparameters at the prior's medians."""
    from kerneltrail.kernels import Hyperparameters, Priors, parse
    from kerneltrail.report.description import describe as said

    composition = parse(kernel)
    medians = Hyperparameters(composition, tuple(Priors.synthetic().moments(composition)[0]))
    console = _console()
    console.print(composition.text or "(no kernel: noise alone)", style="bold", markup=False, soft_wrap=True)
    for sentence in said(medians, target=target):
        console.print(f"• {sentence}", markup=False, highlight=False)
    for name, value in medians.items():
        console.print(f"    {name} = {value:.3g}", style="dim", markup=False, highlight=False, soft_wrap=True)


register(app)

if __name__ == "__main__":
    main()

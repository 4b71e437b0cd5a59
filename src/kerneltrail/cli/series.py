"""`kerneltrail series`: benchmarks of methods for one series, beside published errors or a known truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.progress import Tell

series = typer.Typer(
    name="series",
    no_args_is_help=True,
    help="Run a benchmark of CKS or shrinkage on single series and print its table as Markdown.",
)
Out = Annotated[Path, typer.Option("--out", help="File to which results are appended; what is in it is not run again.")]


@contextmanager
def _study(out: Path, *read: Path) -> Iterator[Tell]:
    """What to call with how far the work is; an output that is read too, or cannot be written, is refused first."""
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.progress import show_progress

    with show_progress() as display:
        from kerneltrail.engines import keep_freed_memory

        check_outputs({"--out": out}, read)
        keep_freed_memory()
        yield display.show


@series.command("cks")
def cks_series(
    folder: Annotated[
        Path, typer.Argument(help="Where <series>-train.csv and <series>-test.csv are: columns x, y without a header.")
    ],
    published: Annotated[Path, typer.Option("--published", help="JSON file of published errors.")],
    out: Out,
    names: Annotated[
        list[str] | None, typer.Option("--series", help="A series, or the beginning of its name; all by default.")
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", min=0, help="Grammar steps at most.")] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="How many of each level are expanded.")] = None,
    choose: Annotated[str | None, typer.Option("--choose", help="What decides: holdout, bic or average.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that fit candidates.")] = 1,
) -> None:
    """CKS on published time series, the last tenth extrapolated, beside published errors."""
    with _study(out, published) as tell:
        from dataclasses import replace

        from kerneltrail.studies.series.cks import SETTINGS, run_all

        given: dict[str, Any] = {"depth": depth, "beam": beam, "choose": choose, "workers": workers}
        settings = replace(SETTINGS, **{name: value for name, value in given.items() if value is not None})
        table = run_all(folder, published, out, settings, names=names or (), tell=tell)
    typer.echo(table)


@series.command("shrinkage")
def shrinkage_series(
    file: Annotated[Path, typer.Argument(help="CSV with a header and columns x, y.")],
    out: Out,
    test: Annotated[int, typer.Option("--test", min=1, help="Rows at the end to predict.")] = 14,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 5,
) -> None:
    """Shrinkage on a series, its last rows predicted, seed by seed."""
    with _study(out, file) as tell:
        from kerneltrail.gp import one_blas_thread
        from kerneltrail.studies.series.shrinkage import series_study

        with one_blas_thread():
            table = series_study(file, test, seeds, out, tell)
    typer.echo(table)


@series.command("recovery")
def shrinkage_recovery(
    out: Out,
    draws: Annotated[int, typer.Option("--draws", min=0, help="Draws of two components.")] = 40,
    noise: Annotated[int, typer.Option("--noise", min=0, help="Draws of noise alone.")] = 20,
    rows: Annotated[
        list[int] | None, typer.Option("--rows", min=4, help="Rows of a draw; 30, 100 and 200 by default. Repeatable.")
    ] = None,
) -> None:
    """How often shrinkage selects exactly the two of eight components that rows were simulated from."""
    with _study(out) as tell:
        from kerneltrail.gp import one_blas_thread
        from kerneltrail.studies.series.shrinkage import ROWS, recovery_study

        with one_blas_thread():
            table = recovery_study(draws, noise, rows or ROWS, out, tell)
    typer.echo(table)

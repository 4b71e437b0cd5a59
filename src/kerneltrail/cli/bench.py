"""`kerneltrail bench`: how fast this machine is, and how good, measured side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    which: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="evidence, map, update, train, select, or all of these; methods, nested, recovery, effects, hostile "
            "or searches by themselves.",
        ),
    ] = "all",
    json: Annotated[Path | None, typer.Option("--json", help="Write the rows to this file.", dir_okay=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and users, rougher ratios.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of data and hyperparameters.")] = 0,
) -> None:
    """Measure this machine: evidence, MAP, updates, training and selection, beside LAPACK and other libraries.

    `kerneltrail tables FILE` prints the rows written by --json as Markdown.
    """
    from rich.console import Console

    from kerneltrail.cli.terminal import say
    from kerneltrail.progress import show_progress

    with show_progress() as display:
        from kerneltrail.store.atomic import check_writable
        from kerneltrail.studies import bench as benchmarks

        chosen = benchmarks.chosen(which, quick=quick)
        if json is not None:
            check_writable(json)
        about = {**benchmarks.machine(), "seed": seed, "quick": quick}  # the load before we add to it
        display.plan(*(benchmark.name for benchmark in chosen))
        counted = [(benchmark, display.counter(benchmark.name, benchmark.steps)) for benchmark in chosen]
        rows = [row for benchmark, next_step in counted for row in benchmark.run(seed, next_step)]
    for table in benchmarks.tables(rows):
        Console().print(table)
    if json is not None:
        say([f"{len(rows)} rows written to {benchmarks.save(json, rows, about)}"])

"""`kerneltrail bench`: how fast this machine is, and how good, measured side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.table_options import EngineName


def bench(
    which: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="evidence, map, update, train, select, or all of these; methods, nested, recovery, effects, hostile, "
            "searches, shared, between, steps, scale or serve by themselves.",
        ),
    ] = "all",
    json: Annotated[Path | None, typer.Option("--json", help="Write the rows to this file.", dir_okay=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes and users, rougher ratios.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of data and hyperparameters.")] = 0,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="between, steps: your copy of HeartSteps V1 (suggestions.csv) or of the Fitbit table of decision "
            "points, or a folder with one file of each; may be given again. Without it, users are simulated.",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option("--splits", min=1, help="between, steps: random splits into pilot and new users.  [20]"),
    ] = None,
    simulated: Annotated[
        str | None,
        typer.Option(
            "--simulated",
            help="between, steps: simulated sets, with commas between them: slopes, heavy tails, alike; glucose, "
            "glucose half-hourly, glucose alone, brushing, brushing to 180, steps, mood.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="between: which methods, with commas between them.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="between, steps, scale: folder that keeps what is finished, so that a second run computes only what "
            "is missing; the rows are in its NAME.json.",
            file_okay=False,
        ),
    ] = None,
    blind: Annotated[
        str | None,
        typer.Option(
            "--blind",
            help="between, steps: choose, for data to choose settings on, or report, for data that were kept from it: "
            "other people of Fitbit, other splits of HeartSteps' people, other simulated people.",
        ),
    ] = None,
    fits: Annotated[
        int | None,
        typer.Option(
            "--fits",
            min=1,
            help="scale: fit kernels to so many users only and multiply their seconds up; sweeps are of all users.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="scale: 10,000 users, too.")] = False,
    engine: EngineName = None,
) -> None:
    """Measure this machine: evidence, MAP, updates, training and selection, beside LAPACK and other libraries.

    `kerneltrail tables FILE` prints the rows written by --json as Markdown.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import results, say
    from kerneltrail.progress import show_progress

    with show_progress() as display:
        from kerneltrail.data.intake_report import row_count
        from kerneltrail.studies import bench as benchmarks

        given = {
            "data": None if data is None else tuple(data),
            "splits": splits,
            "simulated": None if simulated is None else tuple(name.strip() for name in simulated.split(",")),
            "methods": None if methods is None else tuple(name.strip() for name in methods.split(",")),
            "out": out,
            "blind": blind,
            "fits": fits,
            "full": full or None,
            "engine": engine,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        chosen = benchmarks.chosen(which, quick=quick, changes=changes)
        if json is None and out is not None:
            json = out / f"{which}.json"
        check_outputs({"--json": json}, data or ())
        about = {**benchmarks.machine(), "seed": seed, "quick": quick}  # the load before we add to it
        display.plan(*(benchmark.name for benchmark in chosen))
        counted = [(benchmark, display.counter(benchmark.name, benchmark.steps)) for benchmark in chosen]
        rows = [row for benchmark, next_step in counted for row in benchmark.run(seed, next_step)]
    for table in benchmarks.tables(rows):
        results().print(table)
    if json is not None:
        say([f"{row_count(len(rows))} written to {benchmarks.save(json, rows, about)}"])

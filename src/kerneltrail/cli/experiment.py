"""`kerneltrail experiment`: one of the paper's experiments, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.table_options import EngineName, Workers


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which one: synthetic, distinct, similar or complex; with --data heartsteps or fitbit."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for results, tables, figures, model and page.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version, of three minutes at most.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="Your copy of the data, where one is needed.")] = None,
    workers: Workers = None,
    engine: EngineName = None,
) -> None:
    """Run an experiment of the paper and write everything into a folder: results.json, tables, figures, a page.

    A run that is stopped goes on where it was when the same command is given again, to the same results.
    """
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.progress import show_progress

    with show_progress(keep=True) as display:
        from kerneltrail.engines import engine_for
        from kerneltrail.studies import experiments

        chosen = experiments.EXPERIMENTS[name]
        context = experiments.Context(name, out, seed, quick, data, engine_for(engine, workers=workers), display.show)
        display.plan(*experiments.stages_of(chosen, context))
        page, outcome = experiments.run(chosen, context)
    if outcome.agreements:
        title("Beside the paper")
        say(f"{a.verdict:<10}  {a.claim}{f' ({a.of})' if a.of else ''}: {a.ours}" for a in outcome.agreements)
    title("Written")
    say([f"Open {page}", f"Every number: {out / experiments.RESULTS}"])

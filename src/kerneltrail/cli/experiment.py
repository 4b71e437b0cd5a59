"""`kerneltrail experiment`: one of the paper's experiments, end to end."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Name(StrEnum):
    """The experiments on offer."""

    synthetic = "synthetic"
    distinct = "distinct"
    similar = "similar"
    complex = "complex"
    heartsteps = "heartsteps"
    fitbit = "fitbit"


def experiment(
    name: Annotated[Name, typer.Argument(help="Which one.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for results, tables, figures, model and page.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version, of three minutes at most.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="Your copy of the data, where one is needed.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores by default.")] = None,
) -> None:
    """Run an experiment of the paper and write everything into a folder: results.json, tables, figures, a page.

    A run that is stopped goes on where it was when the same command is given again, to the same results.
    """
    from kerneltrail.cli.terminal import experiment_bar, say, title
    from kerneltrail.studies import experiments

    with experiment_bar() as hear:
        context = experiments.Context(name.value, out, seed, quick, data, workers or os.cpu_count() or 1, hear)
        page, outcome = experiments.run(experiments.find(name.value), context)
    if outcome.agreements:
        title("Beside the paper")
        say(f"{a.verdict:<10}  {a.claim}{f' ({a.of})' if a.of else ''}: {a.ours}" for a in outcome.agreements)
    title("Written")
    say([f"Open {page}", f"Every number: {out / experiments.RESULTS}"])

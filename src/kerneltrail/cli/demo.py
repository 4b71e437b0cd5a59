"""`kerneltrail demo`: the whole story on simulated users, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the page and its pictures.", file_okay=False)] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulated users.")] = 0,
) -> None:
    """Learn a graph of kernels from simulated pilot users, follow new users on it, and write a page about it all."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.progress import show_progress

    with show_progress() as display:
        from kerneltrail.studies import demo as demonstration

        display.plan(*demonstration.STAGES)
        page = demonstration.run(out, seed=seed, tell=display.show)
    say([f"Open {page}", f"Look at the model: kerneltrail show {out / demonstration.MODEL}"])

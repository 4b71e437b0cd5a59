"""`kerneltrail example`: a small simulated study to try things out on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def example(
    out: Annotated[Path, typer.Option("--out", help="Folder for pilot.csv and new.csv.", file_okay=False)],
) -> None:
    """Write two small tables to try things out on: simulated pilot users, and new ones (docs/tutorial.md)."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.data.example import write_example

    pilot, new = write_example(out)
    say([f"{pilot}: 8 pilot users", f"{new}: 4 new users"])

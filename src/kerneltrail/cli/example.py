"""`kerneltrail example`: a small simulated study to try things out on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def example(
    out: Annotated[Path, typer.Option("--out", help="Folder for pilot.csv, new.csv and next.csv.", file_okay=False)],
) -> None:
    """Write three small tables to try things out on: pilot users, new ones, and their next days (docs/tutorial.md)."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.data.example import write_example

    pilot, new, following = write_example(out)
    say([f"{pilot}: 8 pilot users", f"{new}: 4 new users", f"{following}: the next two days of 5, without outcomes"])

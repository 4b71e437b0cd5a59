"""Commands on models and tables: `fit`, `show`, `select`, `evaluate`. Each imports the library inside."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    from kerneltrail.commands.evaluate import evaluate
    from kerneltrail.commands.fit import fit
    from kerneltrail.commands.select import select
    from kerneltrail.commands.show import show

    for command in (fit, show, select, evaluate):
        app.command()(command)

"""Commands on models, tables and experiments. Each module imports the library inside its command."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    from kerneltrail.commands.cks import cks
    from kerneltrail.commands.evaluate import evaluate
    from kerneltrail.commands.example import example
    from kerneltrail.commands.experiment import experiment
    from kerneltrail.commands.fit import fit
    from kerneltrail.commands.report import report
    from kerneltrail.commands.select import select
    from kerneltrail.commands.show import show

    for command in (fit, show, select, report, evaluate, experiment, example, cks):
        app.command()(command)

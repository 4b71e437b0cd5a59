"""Commands on models, tables and experiments. Each module imports the library inside its command."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    from kerneltrail.cli.cks import cks
    from kerneltrail.cli.evaluate import evaluate
    from kerneltrail.cli.example import example
    from kerneltrail.cli.experiment import experiment
    from kerneltrail.cli.fit import fit
    from kerneltrail.cli.report import report
    from kerneltrail.cli.select import select
    from kerneltrail.cli.show import show

    for command in (fit, show, select, report, evaluate, experiment, example, cks):
        app.command()(command)

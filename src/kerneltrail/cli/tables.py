"""`kerneltrail tables`: finished results as Markdown, for documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def tables(
    results: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file of `bench --json`, or the folder of an `evaluate`.")
    ],
) -> None:
    """Print the tables of a finished benchmark or evaluation as Markdown."""
    from kerneltrail.errors import DataError

    if results.is_dir():
        from kerneltrail.evaluation import load_evaluation
        from kerneltrail.studies.evaluation_markdown import markdown

        typer.echo(markdown(load_evaluation(results)), nl=False)
        return
    from kerneltrail.studies.bench import summary

    if not results.exists():
        raise DataError(f"there is no file or folder {results}")
    try:
        stored = json.loads(results.read_text(encoding="utf-8"))
        text = summary(stored["rows"], stored["machine"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{results} holds no results of `kerneltrail bench --json`; name such a file, or a folder of `evaluate`"
        ) from None
    typer.echo(text, nl=False)

"""`kerneltrail check`: a look at a table before anything is fitted, or at new users before they are followed."""

from __future__ import annotations

import json as plain_json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli.table_options import TableOptions, as_written, with_table_options

if TYPE_CHECKING:
    from kerneltrail.data import DataCheck

WITH_MODEL = ("--batch-size", "--batch-column", "--time-format", "--delimiter", "--decimal")
"""Options of the table that may differ from the pilot users' table; all others are the model's."""


@with_table_options()
def check(
    data: Annotated[Path, typer.Argument(help="Table of users, CSV or Parquet.", dir_okay=False)],
    table: TableOptions,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="A model: the table is of new users, read as the model's and compared with it."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the page with histograms to this file.", dir_okay=False)
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.", dir_okay=False)] = None,
) -> None:
    """Look at a table before fitting: every column in numbers, and what is probably a mistake, with rows and users.

    Takes the options of `fit` that describe the table. Nothing is changed. The exit code is 2 if the table or a cell of
    it cannot be used, else 0, whatever is found.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say
    from kerneltrail.errors import DataError
    from kerneltrail.store.atomic import write

    check_outputs({"--html": html, "--json": json}, (data, model))
    checked = _pilot_users(data, table) if model is None else _new_users(data, table, model)
    say(str(checked).splitlines())
    written = []
    if html is not None:
        from kerneltrail.report.data_page import data_page

        written.append(write(html, data_page(checked)))
    if json is not None:
        text = plain_json.dumps(checked.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        written.append(write(json, text + "\n"))
    if written:
        say(["", f"Written: {', '.join(map(str, written))}"])
    errors = checked.of("error")
    if errors:
        raise DataError("\n".join(finding.message for finding in errors))


def _pilot_users(data: Path, options: TableOptions) -> DataCheck:
    from kerneltrail.data import check_table

    table = options.table(data)
    candidates = options.left_over(table) if options.covariates is None else ()
    return check_table(options.schema(table), table, candidates=candidates)


def _new_users(data: Path, options: TableOptions, model: Path) -> DataCheck:
    from kerneltrail.data import Batching, check_table
    from kerneltrail.trajectory.model import load

    refused = [option for option in options.given() if option not in WITH_MODEL]
    if refused:
        raise typer.BadParameter("the model says what the columns mean: leave them out", param_hint=", ".join(refused))
    loaded = load(model)
    schema = as_written(loaded.schema, options.time_format, options.delimiter, options.decimal)
    if options.batch_size is not None or options.batch_column is not None:
        schema = replace(schema, batching=Batching.of(options.batch_size, options.batch_column))
    return check_table(schema, data, pilot=loaded.pilot)

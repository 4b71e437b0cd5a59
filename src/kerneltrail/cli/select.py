"""`kerneltrail select`: follow new users on a learnt graph, batch by batch, and write what was selected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.following_options import BatchColumn, BatchSize, FollowMissing, Selection, batching_of


def select(
    model: Annotated[Path, typer.Argument(help="A model file, as `kerneltrail fit` writes it.")],
    data: Annotated[Path, typer.Argument(help="Table of new users with the model's columns, CSV or Parquet.")],
    out: Annotated[Path, typer.Option("--out", help="CSV with a row per user and batch.", dir_okay=False)],
    predictions: Annotated[
        Path | None,
        typer.Option("--predictions", help="CSV with a row per row, predicted before its batch.", dir_okay=False),
    ] = None,
    selection: Selection = None,
    batch_size: BatchSize = None,
    batch_column: BatchColumn = None,
    missing: FollowMissing = None,
) -> None:
    """Select a kernel for every user after every batch, and judge it by its prediction of the next batch.

    Both tables have the time and the number (table_row, counted from 1) of a row of the input, so that they join back:
    of the row predicted, or of the last row of the batch. Rows that were left out are gaps.

    Values outside the range of the pilot users are taken as they are: nothing is clipped, and predictions there fall
    back to the prior, with its uncertainty. A user whose rows cannot be followed is named and left out of the tables,
    and the others go on; the command then ends with exit code 2.
    """
    import numpy as np

    from kerneltrail.cli.terminal import progress, say
    from kerneltrail.data import Cohort
    from kerneltrail.data.intake_report import row_count
    from kerneltrail.data.table import read_table
    from kerneltrail.errors import DataError
    from kerneltrail.evaluation.follow import left_out
    from kerneltrail.evaluation.selection_tables import SelectionTables
    from kerneltrail.evaluation.tables import csv_text
    from kerneltrail.methods.trajectory import TrajectoryMethod
    from kerneltrail.store.atomic import check_writable, write
    from kerneltrail.trajectory.model import load

    if predictions is not None and predictions.resolve() == out.resolve():
        raise DataError(f"--out and --predictions both name {out}; they need a file each")
    loaded = load(model)
    schema = loaded.schema if missing is None else loaded.schema.with_missing(missing.value)
    batching = batching_of(batch_size, batch_column)
    table = read_table(data)
    cohort = Cohort.from_schema(schema, table, batching=batching, skip_refused=True)
    for path in (out, predictions):
        if path is not None:
            check_writable(path)
    changes = {} if selection is None else {"selection": selection.value}
    tables = SelectionTables(TrajectoryMethod(loaded, changes), table.column(schema.order))
    refused = cohort.report.left_out
    with progress("users") as display, np.errstate(all="ignore"):  # what is not finite is said by name
        next_user = display.counter("users", len(cohort))
        for user in cohort.raw:
            next_user(user.name)
            failure = tables.follow(user)
            refused += [] if failure is None else [left_out(user, failure)]
    # All is computed before anything is written.
    if predictions is not None:
        write(predictions, csv_text(tables.predicted_names, tables.predicted))
    write(out, csv_text(tables.step_names, tables.steps))
    say([str(cohort.report)])
    if unlabelled := cohort.report.missing(schema.target):
        what = f"{row_count(unlabelled)} without {schema.target}: neither learnt from nor predicted"
        say([f"{what}; `kerneltrail predict` predicts such rows"])
    say([f"{len({step['user'] for step in tables.steps})} users, {len(tables.steps)} batches: {out}"])
    if predictions is not None:
        say([f"{len(tables.predicted)} rows predicted: {predictions}"])
    if refused:
        raise DataError("\n".join(refused))

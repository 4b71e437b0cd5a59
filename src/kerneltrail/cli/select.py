"""`kerneltrail select`: follow new users on a learnt graph, batch by batch, and write what was selected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli.following_options import BatchColumn, BatchSize, FollowMissing, Selection, batching_of
from kerneltrail.cli.table_options import Decimal, Delimiter, TimeFormat, as_written

if TYPE_CHECKING:
    from kerneltrail.data import User

FOLLOWING = "following users"
"""The stage that takes long, counted in batches."""


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
    time_format: TimeFormat = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Select a kernel for every user after every batch, and judge it by its prediction of the next batch.

    Values outside the range of the pilot users are taken as they are: nothing is clipped, and predictions there fall
    back to the prior, with its uncertainty. A user whose rows cannot be followed is named and left out of the tables,
    and the others go on; the command then ends with exit code 2.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say, warn
    from kerneltrail.errors import DataError
    from kerneltrail.progress import show_progress

    with show_progress(f"reading {data.name}", FOLLOWING) as display:
        from kerneltrail.data import Cohort
        from kerneltrail.data.checks import against_pilot
        from kerneltrail.data.intake_report import row_count
        from kerneltrail.data.table import read_table
        from kerneltrail.store.atomic import write
        from kerneltrail.trajectory.model import load

        loaded = load(model)
        schema = as_written(loaded.schema, time_format, delimiter, decimal)
        schema = schema if missing is None else schema.with_missing(missing.value)
        table = read_table(data, delimiter=schema.delimiter, decimal=schema.decimal)
        batching = batching_of(batch_size, batch_column)
        cohort = Cohort.from_schema(schema, table, batching=batching, skip_refused=True)
        check_outputs({"--out": out, "--predictions": predictions}, (model, data))
        # What can be refused has been.
        import numpy as np

        from kerneltrail.engines import one_blas_thread
        from kerneltrail.evaluation.follow import left_out
        from kerneltrail.evaluation.selection_tables import SelectionTables
        from kerneltrail.evaluation.tables import csv_text
        from kerneltrail.kernels.phrases import counted
        from kerneltrail.methods.trajectory import TrajectoryMethod
        from kerneltrail.progress import Progress

        changes = {} if selection is None else {"selection": selection.value}
        tables = SelectionTables(TrajectoryMethod(loaded, changes), table.column(schema.order))
        refused = cohort.report.left_out
        total, before = sum(user.batches for user in cohort.raw), 0
        for user in cohort.raw:

            def tell(batch: int, user: User = user, before: int = before) -> None:
                message = f"{user.name}, batch {batch} of {user.batches}"
                display.show(Progress(FOLLOWING, before + batch, total, message))

            tell(0)
            with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is said by name
                failure = tables.follow(user, tell)
            refused += [] if failure is None else [left_out(user, failure)]
            before += user.batches
    # All is computed before anything is written.
    if predictions is not None:
        write(predictions, csv_text(tables.predicted_names, tables.predicted))
    write(out, csv_text(tables.step_names, tables.steps))
    say([str(cohort.report)])
    warn(against_pilot(cohort, loaded.pilot))
    if unlabelled := cohort.report.missing(schema.target):
        what = f"{row_count(unlabelled)} without {schema.target}: neither learnt from nor predicted"
        say([f"{what}; `kerneltrail predict` predicts such rows"])
    followed = counted(len({step["user"] for step in tables.steps}), "user")
    say([f"{followed}, {counted(len(tables.steps), 'batch', 'batches')}: {out}"])
    if tables.limited:
        first = [f"{name} from row {row} on" for name, row in list(tables.limited.items())[:3]]
        who = ", ".join([*first, *(["…"] if len(tables.limited) > len(first) else [])])
        limited = counted(len(tables.limited), "user")
        say([f"{limited} with limited updates ({who}): some kernels kept their hyperparameters"])
    if predictions is not None:
        say([f"{row_count(len(tables.predicted))} predicted: {predictions}"])
    if refused:
        raise DataError("\n".join(refused))

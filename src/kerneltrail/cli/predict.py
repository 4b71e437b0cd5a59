"""`kerneltrail predict`: rows without an outcome, predicted from what was seen of their users, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.following_options import BatchColumn, BatchSize, FollowMissing, Selection, batching_of
from kerneltrail.cli.select import FOLLOWING
from kerneltrail.cli.table_options import Decimal, Delimiter, TimeFormat, as_written, listed


def predict(
    model: Annotated[Path, typer.Argument(help="A model file, as `kerneltrail fit` writes it.")],
    rows: Annotated[
        Path, typer.Option("--rows", help="Table of the rows to predict, CSV or Parquet. It needs no outcome.")
    ],
    out: Annotated[Path, typer.Option("--out", help="CSV with a row for each row predicted.", dir_okay=False)],
    history: Annotated[
        Path | None,
        typer.Argument(help="Table of the users' rows so far, with outcomes. Without it, everybody is a new user."),
    ] = None,
    user: Annotated[
        list[Path] | None,
        typer.Option("--user", help="File of a followed user (NewUser.save), in place of its rows. Repeatable."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="Further columns of --rows to carry along, a,b,c; user, time, batch, action are."),
    ] = None,
    selection: Selection = None,
    batch_size: BatchSize = None,
    batch_column: BatchColumn = None,
    missing: FollowMissing = None,
    time_format: TimeFormat = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Predict rows whose outcome is not known yet, with intervals, after following their users through the rows so far.

    The table has the number of each row in --rows (table_row, counted from 1), so that it joins back. With a reward
    model it also says what is expected without and with the action, what acting adds, and how probably that is above 0.
    A user whose rows cannot be used is named and left out, and the command then ends with exit code 2.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say, warn
    from kerneltrail.data.intake_report import row_count
    from kerneltrail.errors import DataError
    from kerneltrail.evaluation import forecast
    from kerneltrail.evaluation.tables import csv_text
    from kerneltrail.progress import Progress, show_progress
    from kerneltrail.store.atomic import write
    from kerneltrail.trajectory.model import load

    further = [] if keep is None else listed(keep, "--keep")
    loaded = load(model)
    users = [loaded.load_user(path) for path in user or ()]
    check_outputs({"--out": out}, (model, rows, history, *(user or ())))
    with show_progress("reading", FOLLOWING) as display:
        predicted = forecast(
            loaded,
            history,
            rows,
            users=users,
            keep=further,
            batching=batching_of(batch_size, batch_column),
            missing=None if missing is None else missing.value,
            schema=as_written(loaded.schema, time_format, delimiter, decimal),
            changes={} if selection is None else {"selection": selection.value},
            skip_refused=True,
            tell=lambda name: display.show(Progress(FOLLOWING, said=name)),
        )
    columns = predicted.to_rows()
    lines = zip(*columns.values(), strict=True)
    write(out, csv_text(list(columns), (dict(zip(columns, line, strict=True)) for line in lines)))
    for name, report in predicted.reports.items():
        say([f"{name}: {report}"])
    warn(predicted.odd)
    say([*predicted.notes, f"{row_count(len(predicted))} predicted: {out}"])
    if predicted.left_out:
        raise DataError("\n".join(predicted.left_out))

"""`kerneltrail select`: follow new users on a learnt graph, batch by batch, and write what was selected."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerneltrail.cli.table_options import Decimal, Delimiter, TimeFormat, as_written

if TYPE_CHECKING:
    from kerneltrail.data import User
    from kerneltrail.evaluation import Failure
    from kerneltrail.trajectory.model import TrajectoryModel
    from kerneltrail.trajectory.new_user import NewUser
    from kerneltrail.trajectory.user_state import SelectionStep


Selection = StrEnum("Selection", ["filter", "greedy"])

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
    selection: Annotated[
        Selection | None, typer.Option("--selection", help="How users are followed; the model's own by default.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Rows per batch; cut as the model's were by default.")
    ] = None,
    batch_column: Annotated[
        str | None, typer.Option("--batch-column", help="Column whose change ends a batch, instead of a size.")
    ] = None,
    time_format: TimeFormat = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Select a kernel for every user after every batch, and judge it by its prediction of the next batch.

    Values outside the range of the pilot users are taken as they are: nothing is clipped, and predictions there fall
    back to the prior, with its uncertainty. A user whose rows cannot be followed is named and left out of the tables,
    and the others go on; the command then ends with exit code 2.
    """
    from kerneltrail.cli.terminal import say
    from kerneltrail.errors import DataError
    from kerneltrail.progress import show_progress

    if predictions is not None and predictions.resolve() == out.resolve():
        raise DataError(f"--out and --predictions both name {out}; they need a file each")
    steps: Rows = []
    predicted: Rows = []
    with show_progress(f"reading {data.name}", FOLLOWING) as display:
        from kerneltrail.data import Batching, Cohort
        from kerneltrail.data.checks import against_pilot, brief
        from kerneltrail.store.atomic import check_writable, write
        from kerneltrail.trajectory.model import load

        loaded = load(model)
        as_learnt = batch_size is None and batch_column is None
        batching = None if as_learnt else Batching.of(batch_size, batch_column)
        schema = as_written(loaded.schema, time_format, delimiter, decimal)
        cohort = Cohort.from_schema(schema, data, batching=batching, skip_refused=True)
        for path in (out, predictions):
            if path is not None:
                check_writable(path)
        # What can be refused has been.
        import numpy as np

        from kerneltrail.engines import one_blas_thread
        from kerneltrail.evaluation.follow import left_out
        from kerneltrail.evaluation.tables import csv_text
        from kerneltrail.progress import Progress

        changes = {} if selection is None else {"selection": selection.value}
        refused = cohort.report.left_out
        total, before = sum(user.batches for user in cohort.raw), 0
        for user in cohort.raw:

            def tell(batch: int, user: User = user, before: int = before) -> None:
                message = f"{user.name}, batch {batch} of {user.batches}"
                display.show(Progress(FOLLOWING, before + batch, total, message))

            tell(0)
            with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is said by name
                failure = follow(loaded, user, steps, predicted, tell, **changes)
            refused += [] if failure is None else [left_out(user, failure)]
            before += user.batches
    # All is computed before anything is written.
    if predictions is not None:
        columns = (*PREDICTED, *ADVANTAGE) if loaded.takes_action else PREDICTED
        write(predictions, csv_text(columns, predicted))
    write(out, csv_text([*STEP, *(_evidence(node.composition.text) for node in loaded.nodes)], steps))
    odd = brief(against_pilot(cohort, loaded.pilot), "kerneltrail check --model says more.")
    say([str(cohort.report), *odd, f"{len({step['user'] for step in steps})} users, {len(steps)} batches: {out}"])
    if predictions is not None:
        say([f"{len(predicted)} rows predicted: {predictions}"])
    if refused:
        raise DataError("\n".join(refused))


STEP = ("user", "batch", "rows", "composition", "probability", "next_rows", "next_rmse", "next_log_density")
"""Columns of a selection; one for each node's log evidence follows, empty where the node was no candidate."""

PREDICTED = ("user", "batch", "row", "mean", "sd", "y")
"""Columns of a prediction: of the user's row so and so, made before its batch was seen; sd is of an observation."""

ADVANTAGE = ("advantage", "advantage_low", "advantage_high")
"""Further ones with a reward model: what acting adds at that row, and its central 90 % interval."""


def _evidence(text: str) -> str:
    return f"log_evidence {text}".rstrip()


Rows = list[dict[str, Any]]


def follow(
    model: TrajectoryModel,
    user: User,
    selected: Rows,
    predicted: Rows,
    tell: Callable[[int], None] = lambda batch: None,
    **changes: Any,
) -> Failure | None:
    """Follow a user in data units and add rows to both tables; where that fails, add none and return the failure.

    `tell` hears the number of every batch that was taken in.
    """
    import numpy as np

    from kerneltrail.evaluation.follow import BAD_ROWS
    from kerneltrail.evaluation.follow import follow as follow_batches
    from kerneltrail.methods.trajectory import TrajectoryMethod

    advantages: Rows = []
    steps: Rows = []

    def look_ahead(state: NewUser, batch: User) -> None:
        estimate = state.advantage(batch.X)
        for values in zip(estimate.mean, *estimate.interval(0.9), strict=True):
            advantages.append(dict(zip(ADVANTAGE, map(float, values), strict=True)))

    def look_back(state: NewUser, step: SelectionStep) -> None:
        steps.append(
            {
                "user": user.name,
                "batch": step.batch,
                "rows": step.rows,
                "composition": step.composition.text,
                "probability": step.probabilities[step.composition],
                **{_evidence(candidate.text): value for candidate, value in step.log_evidence.items()},
            }
        )
        tell(step.batch)

    followed = follow_batches(
        TrajectoryMethod(model, changes),
        user,
        catch=BAD_ROWS,
        before_update=look_ahead if model.takes_action else None,
        after_update=look_back,
    )
    if followed.failures:
        return followed.failures[0]
    for row, after in zip(steps, followed.steps[1:-1], strict=False):  # nothing is known of a batch after the last
        row |= {"next_rows": after.predicted, "next_rmse": after.rmse, "next_log_density": after.log_density}
    selected += steps
    advantage = iter(advantages)
    for t, prediction in enumerate(followed.predictions, start=1):
        assert prediction is not None  # there was no failure
        batch, before = user.batch(t), user.upto(t - 1).rows
        columns = (prediction.mean, np.sqrt(prediction.total), batch.y)
        for i, (mean, sd, y) in enumerate(zip(*(column.tolist() for column in columns), strict=True), start=1):
            entry = {"user": user.name, "batch": t, "row": before + i, "mean": mean, "sd": sd, "y": y}
            predicted.append(entry | next(advantage, {}))
    return None

"""`kerneltrail select`: follow new users on a learnt graph, batch by batch, and write what was selected."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data import User
    from kerneltrail.trajectory.model import TrajectoryModel


class Selection(StrEnum):
    """How users are followed."""

    filter = "filter"
    greedy = "greedy"


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
) -> None:
    """Select a kernel for every user after every batch, and judge it by its prediction of the next batch.

    Values outside the range of the pilot users are taken as they are: nothing is clipped, and predictions there fall
    back to the prior, with its uncertainty.
    """
    from kerneltrail.cli.terminal import progress, say
    from kerneltrail.data import Batching
    from kerneltrail.errors import DataError
    from kerneltrail.store.atomic import check_writable, write
    from kerneltrail.trajectory.model_file import load

    if predictions is not None and predictions.resolve() == out.resolve():
        raise DataError(f"--out and --predictions both name {out}; they need a file each")
    loaded = load(model)
    batching = None
    if batch_size is not None or batch_column is not None:
        batching = Batching.of(batch_size, batch_column)
    cohort = loaded.schema.read(data, batching=batching)
    for path in (out, predictions):
        if path is not None:
            check_writable(path)
    changes = {} if selection is None else {"selection": selection.value}
    steps: list[dict[str, Any]] = []
    predicted: list[dict[str, Any]] = []
    with progress("users") as display:
        next_user = display.counter("users", len(cohort))
        for user in cohort.raw:
            next_user(user.name)
            own_steps, own_predicted = follow(loaded, user, **changes)
            steps += own_steps
            predicted += own_predicted
    # All is computed before anything is written.
    if predictions is not None:
        columns = (*PREDICTED, *ADVANTAGE) if loaded.takes_action else PREDICTED
        write(predictions, _csv(columns, predicted))
    write(out, _csv([*STEP, *(_evidence(node.composition.text) for node in loaded.nodes)], steps))
    say([str(cohort.report), f"{len(cohort)} users, {len(steps)} batches: {out}"])
    if predictions is not None:
        say([f"{len(predicted)} rows predicted: {predictions}"])


STEP = ("user", "batch", "rows", "composition", "probability", "next_rows", "next_rmse", "next_log_density")
"""Columns of a selection; one for each node's log evidence follows, empty where the node was no candidate."""

PREDICTED = ("user", "batch", "row", "mean", "sd", "y")
"""Columns of a prediction: of the user's row so and so, made before its batch was seen; sd is of an observation."""

ADVANTAGE = ("advantage", "advantage_low", "advantage_high")
"""Further ones with a reward model: what acting adds at that row, and its central 90 % interval."""


def _evidence(text: str) -> str:
    return f"log_evidence {text}".rstrip()


def follow(model: TrajectoryModel, user: User, **changes: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One user in data units, followed from the first batch to the last: rows of selections and of predictions."""
    import numpy as np

    followed = model.new_user(user.name, **changes)
    steps: list[dict[str, Any]] = []
    predicted: list[dict[str, Any]] = []
    for t in range(1, user.batches + 1):
        batch = user.batch(t)
        prediction = followed.predict(batch.X, action=batch.action)
        if steps:
            steps[-1]["next_rows"] = batch.rows
            steps[-1]["next_rmse"] = float(np.sqrt(np.mean((batch.y - prediction.mean) ** 2)))
            steps[-1]["next_log_density"] = float(prediction.log_density(batch.y).mean())
        sd = np.sqrt(prediction.total)
        for i in range(batch.rows):
            predicted.append(
                {
                    "user": user.name,
                    "batch": t,
                    "row": followed.rows + i + 1,
                    "mean": float(prediction.mean[i]),
                    "sd": float(sd[i]),
                    "y": float(batch.y[i]),
                }
            )
        if model.takes_action:
            told = followed.advantage(batch.X)
            for row, *values in zip(predicted[-batch.rows :], told.mean, *told.interval(0.9), strict=True):
                row.update(zip(ADVANTAGE, map(float, values), strict=True))
        step = followed.update(batch.X, batch.y, action=batch.action)
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
    return steps, predicted


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()

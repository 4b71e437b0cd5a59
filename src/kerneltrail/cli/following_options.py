"""Options of the commands that follow users: how they are followed, and how their rows are cut into batches."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli.table_options import Missing

if TYPE_CHECKING:
    from kerneltrail.data import Batching

SelectionRule = StrEnum("SelectionRule", ["filter", "greedy"])

Selection = Annotated[
    SelectionRule | None, typer.Option("--selection", help="How users are followed; the model's own by default.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Rows per batch; cut as the model's were by default.")
]
BatchColumn = Annotated[
    str | None, typer.Option("--batch-column", help="Column whose change ends a batch, instead of a size.")
]
FollowMissing = Annotated[
    Missing | None,
    typer.Option("--missing", help="What to do with a row in which a value is missing; as in the fit by default."),
]


def batching_of(batch_size: int | None, batch_column: str | None) -> Batching | None:
    """How batches are cut; None to cut them as the model's were."""
    from kerneltrail.data import Batching

    return None if batch_size is None and batch_column is None else Batching.of(batch_size, batch_column)

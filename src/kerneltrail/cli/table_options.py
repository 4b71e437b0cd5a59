"""How a table of users is described on the command line: options that several commands share, and reading it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data import Cohort
    from kerneltrail.data.table import Table
    from kerneltrail.trajectory.configuration import Config


class Missing(StrEnum):
    """What to do about missing values."""

    error = "error"
    drop = "drop"


class Scaling(StrEnum):
    """How covariates are scaled."""

    group = "group"
    none = "none"


class TargetScaling(StrEnum):
    """How the target is scaled."""

    none = "none"
    standard = "standard"


Covariates = Annotated[
    str | None,
    typer.Option("--covariates", help="Columns to predict from, a,b,c. If left out, all other columns of numbers."),
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="Rows per batch.")]
BatchColumn = Annotated[
    str | None, typer.Option("--batch-column", help="Column whose change ends a batch, instead of a size.")
]
Action = Annotated[str | None, typer.Option("--action", help="Column of the action, 0 or 1.")]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Reward model: the action's effect depends on these covariates, a,b,c, or on none. Needs --action.",
    ),
]
Availability = Annotated[
    str | None, typer.Option("--availability", help="Column that says whether the user was available, 0 or 1.")
]
AvailableOnly = Annotated[
    bool, typer.Option("--available-only", help="Drop the rows at which the user was not available.")
]
OnMissing = Annotated[Missing, typer.Option("--missing", help="What to do with a row in which a value is missing.")]
ScalingOption = Annotated[
    Scaling, typer.Option("--scaling", help="Covariates to [0, 1] by the group's range, or as they are.")
]
TargetScalingOption = Annotated[
    TargetScaling, typer.Option("--target-scaling", help="The target as it is, or shifted and scaled to sd 1.")
]
Levels = Annotated[
    list[str] | None, typer.Option("--levels", help="Levels of a categorical covariate: NAME=a,b,c. Repeatable.")
]
Unit = Annotated[
    list[str] | None, typer.Option("--unit", help="Unit of a covariate or the target: NAME=hours. Repeatable.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Pool, priors, settings, reward: YAML or TOML (docs).")
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores by default.")]


def check_batches(batch_size: int | None, batch_column: str | None) -> None:
    """Refuse a table whose rows are not cut into batches in one way."""
    if (batch_size is None) == (batch_column is None):
        raise typer.BadParameter(
            "say how rows are cut into batches, in one way", param_hint="--batch-size, --batch-column"
        )


def read_cohort(
    data: Path,
    *,
    user: str,
    order: str,
    target: str,
    covariates: str | None,
    batch_column: str | None,
    action: str | None,
    availability: str | None,
    levels: list[str] | None,
    unit: list[str] | None,
    **others: Any,
) -> Cohort:
    """The cohort in a file, as the options above describe it; `others` go to `Cohort.from_table` as they are."""
    from kerneltrail.data import Cohort
    from kerneltrail.data.table import read_table

    table = read_table(data)
    categorical = {name: text.split(",") for name, text in pairs(levels, "--levels").items()}
    taken = {user, order, target, batch_column, action, availability}
    return Cohort.from_table(
        table,
        user=user,
        order=order,
        target=target,
        covariates=listed(covariates, "--covariates", "column")
        if covariates is not None
        else _numeric(table, taken, categorical),
        batch_column=batch_column,
        action=action,
        availability=availability,
        categorical=categorical,
        units=pairs(unit, "--unit"),
        **others,
    )


def with_reward(config: Config, features: str | None, action: str | None) -> Config:
    """A configuration with the reward model of ``--features``; refused where no action's column is named."""
    if features is not None:
        config = config.with_features([] if features.strip() == "none" else listed(features, "--features", "covariate"))
    if config.reward is not None and action is None:
        raise typer.BadParameter(
            "a reward model needs the column of the action: add --action COLUMN, of 0 and 1",
            param_hint="--config" if features is None else "--features",
        )
    return config


def listed(text: str, option: str, what: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"name at least one {what}", param_hint=option)
    return names


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Options of the form NAME=…, by name."""
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise typer.BadParameter(f"expected NAME=…, got {text!r}", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def _numeric(table: Table, taken: set[str | None], categorical: dict[str, Any]) -> list[str]:
    """All columns of numbers that have no other role, and the categorical ones."""
    from kerneltrail.errors import DataError

    found = [
        name
        for name, values in table.columns.items()
        if name not in taken and (name in categorical or _are_numbers(values))
    ]
    if not found:
        raise DataError(f"{table.source} has no column of numbers left to predict from; name some with --covariates")
    return found


def _are_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    try:
        return bool(present) and not any(isinstance(value, bool) or float(value) != float(value) for value in present)
    except (TypeError, ValueError):
        return False

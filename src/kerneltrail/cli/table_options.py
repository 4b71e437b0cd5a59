"""How a table of users is described on the command line: one set of options, and reading the table with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data import Cohort
    from kerneltrail.data.table import Table


Missing = StrEnum("Missing", ["error", "drop"])
Scaling = StrEnum("Scaling", ["group", "none"])
TargetScaling = StrEnum("TargetScaling", ["none", "standard"])
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Pool, priors, settings, reward: YAML or TOML (docs).")
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores by default.")]


@dataclass(frozen=True)
class TableOptions:
    """What the columns of a table of users mean, and how its rows become a cohort. Each field is an option."""

    user: Annotated[str | None, typer.Option("--user", help="Column that names the user.")] = None
    order: Annotated[str | None, typer.Option("--order", help="Column that puts a user's rows in time order.")] = None
    target: Annotated[str | None, typer.Option("--target", help="Column to be predicted.")] = None
    covariates: Annotated[
        str | None,
        typer.Option("--covariates", help="Columns to predict from, a,b,c. If left out, all other columns of numbers."),
    ] = None
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Rows per batch.")] = None
    batch_column: Annotated[
        str | None, typer.Option("--batch-column", help="Column whose change ends a batch, instead of a size.")
    ] = None
    action: Annotated[str | None, typer.Option("--action", help="Column of the action, 0 or 1.")] = None
    availability: Annotated[
        str | None, typer.Option("--availability", help="Column that says whether the user was available, 0 or 1.")
    ] = None
    available_only: Annotated[
        bool, typer.Option("--available-only", help="Drop the rows at which the user was not available.")
    ] = False
    missing: Annotated[
        Missing, typer.Option("--missing", help="What to do with a row in which a value is missing.")
    ] = Missing.error
    scaling: Annotated[
        Scaling, typer.Option("--scaling", help="Covariates to [0, 1] by the group's range, or as they are.")
    ] = Scaling.group
    target_scaling: Annotated[
        TargetScaling, typer.Option("--target-scaling", help="The target as it is, or shifted and scaled to sd 1.")
    ] = TargetScaling.none
    levels: Annotated[
        list[str] | None, typer.Option("--levels", help="Levels of a categorical covariate: NAME=a,b,c. Repeatable.")
    ] = None
    unit: Annotated[
        list[str] | None, typer.Option("--unit", help="Unit of a covariate or the target: NAME=hours. Repeatable.")
    ] = None
    label: Annotated[
        list[str] | None, typer.Option("--label", help="What people call a column: NAME='time of day'. Repeatable.")
    ] = None
    level: Annotated[
        list[str] | None,
        typer.Option("--level", help="Names of a covariate's numbers: NAME=0=morning,1=evening. Repeatable."),
    ] = None

    def check(self) -> None:
        """Refuse what can be refused before the table is read: columns not named, batches cut in no way or two."""
        if self.user is None or self.order is None or self.target is None:
            raise typer.BadParameter("a table needs all three", param_hint="--user, --order, --target")
        if (self.batch_size is None) == (self.batch_column is None):
            raise typer.BadParameter(
                "say how rows are cut into batches, in one way", param_hint="--batch-size, --batch-column"
            )

    def read(self, data: Path) -> Cohort:
        """The cohort in a file."""
        from kerneltrail.data import Cohort
        from kerneltrail.data.table import read_table

        self.check()
        table = read_table(data)
        given: dict[str, Any] = {
            name: value.value if isinstance(value, StrEnum) else value for name, value in vars(self).items()
        }
        categorical = {name: text.split(",") for name, text in pairs(given.pop("levels"), "--levels").items()}
        given["units"] = pairs(given.pop("unit"), "--unit")
        given["labels"] = pairs(given.pop("label"), "--label")
        given["value_names"] = {
            name: value_names(name, text) for name, text in pairs(given.pop("level"), "--level").items()
        }
        named = given.pop("covariates")
        covariates = self._columns_of_numbers(table, categorical) if named is None else listed(named, "--covariates")
        return Cohort.from_table(table, **given, covariates=covariates, categorical=categorical)

    def _columns_of_numbers(self, table: Table, categorical: dict[str, Any]) -> list[str]:
        """All columns of numbers that have no other role, and the categorical ones."""
        from kerneltrail.errors import DataError

        taken = {self.user, self.order, self.target, self.batch_column, self.action, self.availability}
        names = [
            name
            for name, values in table.columns.items()
            if name not in taken and (name in categorical or _are_numbers(values))
        ]
        if not names:
            raise DataError(
                f"{table.source} has no column of numbers left to predict from; name some with --covariates"
            )
        return names


def with_table_options(*required: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a command with a parameter ``table: TableOptions``: on the command line that is all its options.

    The command cannot do without those that are `required`.
    """
    options = [
        option.replace(default=inspect.Parameter.empty if option.name in required else option.default)
        for option in _by_keyword(TableOptions).values()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        by_name = _by_keyword(command)
        parameters = [each for name, one in by_name.items() for each in (options if name == "table" else [one])]

        @wraps(command)
        def run(**given: Any) -> None:
            table = TableOptions(**{option.name: given.pop(option.name) for option in options})
            command(**given, table=table)

        # Typer reads both.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _by_keyword(command: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Parameters by name, annotations evaluated; by keyword, so that those with defaults may come first."""
    parameters = inspect.signature(command, eval_str=True).parameters
    return {name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, one in parameters.items()}


def listed(text: str, option: str, what: str = "column") -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"name at least one {what}", param_hint=option)
    return names


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Options of the form NAME=…, by name."""
    values = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise typer.BadParameter(f"expected NAME=…, got {text!r}", param_hint=option)
        values[name.strip()] = value.strip()
    return values


def value_names(column: str, text: str) -> dict[float, str]:
    """Names of a covariate's values in the form 0=morning,1=evening."""
    names = {}
    for part in text.split(","):
        value, equals, name = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not (equals and name.strip()) or number in names:
            raise typer.BadParameter(
                f"expected NAME=0=morning,1=evening, got {f'{column}={text}'!r}", param_hint="--level"
            )
        names[number] = name.strip()
    return names


def _are_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    try:
        return bool(present) and not any(isinstance(value, bool) or float(value) != float(value) for value in present)
    except (TypeError, ValueError):
        return False

"""How a table of users is described on the command line: one set of options, and reading the table with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data import Cohort, Schema
    from kerneltrail.data.table import Table


Missing = StrEnum("Missing", ["error", "drop"])
Scaling = StrEnum("Scaling", ["group", "none"])
TargetScaling = StrEnum("TargetScaling", ["none", "standard"])
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Pool, priors, settings, reward: YAML or TOML (docs).")
]
TimeFormat = Annotated[
    str | None,
    typer.Option(
        "--time-format",
        help="How times are written, if not as 2015-07-22 16:31: '%d/%m/%Y %H:%M', epoch-seconds, epoch-milliseconds.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates the columns of a text file: ';', '|' or tab.")
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="What stands before the decimals of a number, if no point: a comma.")
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores by default.")]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="What runs the jobs, instead of --workers: serial, local:4, or a Dask cluster, dask://host:8786.",
    ),
]


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
    probability: Annotated[
        str | None,
        typer.Option("--probability", help="Column of the probability with which the action was drawn, 0 to 1."),
    ] = None
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
        TargetScaling, typer.Option("--target-scaling", help="The target shifted and scaled to sd 1, or as it is.")
    ] = TargetScaling.standard
    levels: Annotated[
        list[str] | None, typer.Option("--levels", help="Levels of a categorical covariate: NAME=a,b,c. Repeatable.")
    ] = None
    unit: Annotated[
        list[str] | None, typer.Option("--unit", help="Unit of a covariate or the target: NAME=hours. Repeatable.")
    ] = None
    time_format: TimeFormat = None
    delimiter: Delimiter = None
    decimal: Decimal = None
    label: Annotated[
        list[str] | None, typer.Option("--label", help="What people call a column: NAME='time of day'. Repeatable.")
    ] = None
    level: Annotated[
        list[str] | None,
        typer.Option("--level", help="Names of a covariate's numbers: NAME=0=morning,1=evening. Repeatable."),
    ] = None

    def check(self, data: Path) -> None:
        """Refuse what can be refused before all of the table is looked at: columns not named, batches cut in no way.

        A column that the table does not have is named first: whoever misspelt one should not hear of batches.
        """
        self._columns()
        if (self.batch_size is None) == (self.batch_column is None):
            self._check_names(data)
            raise typer.BadParameter(
                "say how rows are cut into batches, in one way", param_hint="--batch-size, --batch-column"
            )
        if self.probability is not None and self.action is None:
            raise typer.BadParameter("it is the probability of the action: add --action", param_hint="--probability")

    def read(self, data: Path) -> Cohort:
        """The cohort in a file."""
        from kerneltrail.data import Cohort

        self.check(data)
        table = self.table(data)
        return Cohort.from_schema(self.schema(table), table)

    def _check_names(self, data: Path) -> None:
        """Refuse columns that are named and that the table does not have."""
        self._check_columns(self.table(data))

    def _check_columns(self, table: Table) -> None:
        covariates = [] if self.covariates is None else listed(self.covariates, "--covariates")
        others = (self.batch_column, self.action, self.availability, self.probability)
        names = [name for name in (*self._columns(), *covariates, *others) if name is not None]
        for name in names:
            table.column(name, set(names))

    def table(self, data: Path) -> Table:
        """The table in a file, before anybody asks what its columns mean."""
        from kerneltrail.data.table import read_table

        return read_table(data, delimiter=self.delimiter, decimal=self.decimal)

    def schema(self, table: Table) -> Schema:
        """What the columns of a table mean; without batches named, each user's rows are one batch."""
        from kerneltrail.data import Batching, Schema
        from kerneltrail.data.columns import columns_of_numbers

        user, order, target = self._columns()
        self._check_columns(table)  # a column that nobody named may be what a misspelt one means
        levels = {name: tuple(text.split(",")) for name, text in pairs(self.levels, "--levels").items()}
        named = self.covariates
        roles = {**vars(self), "categorical": levels}
        covariates = columns_of_numbers(table, roles) if named is None else listed(named, "--covariates")
        schema = Schema(
            user=user,
            order=order,
            target=target,
            covariates=tuple(covariates),
            batching=Batching(self.batch_size, self.batch_column),
            action=self.action,
            availability=self.availability,
            probability=self.probability,
            levels=levels,
            available_only=self.available_only,
            scaling=self.scaling.value,  # type: ignore[arg-type]
            target_scaling=self.target_scaling.value,  # type: ignore[arg-type]
            units=pairs(self.unit, "--unit"),
            labels=pairs(self.label, "--label"),
            value_names={
                name: tuple(value_names(name, text).items()) for name, text in pairs(self.level, "--level").items()
            },
            time_format=self.time_format,
            delimiter=self.delimiter,
            decimal=self.decimal,
        )
        dropped = schema.values if self.missing is Missing.drop else ()
        return replace(schema, missing=dict.fromkeys(dropped, "drop"))

    def left_over(self, table: Table) -> list[str]:
        """Columns without any other role, which may be covariates."""
        taken = {
            self.user, self.order, self.target, self.batch_column, self.action, self.availability, self.probability
        }  # fmt: skip
        return [name for name in table.names if name not in taken]

    def given(self) -> list[str]:
        """The options that are not as they are by default, as they are written on the command line."""
        names = [option.name for option in fields(self) if getattr(self, option.name) != option.default]
        return [f"--{name.replace('_', '-')}" for name in names]

    def _columns(self) -> tuple[str, str, str]:
        if self.user is None or self.order is None or self.target is None:
            raise typer.BadParameter("a table needs all three", param_hint="--user, --order, --target")
        return self.user, self.order, self.target


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


def as_written(schema: Schema, time_format: str | None, delimiter: str | None, decimal: str | None) -> Schema:
    """A model's schema for a table that is written otherwise than the pilot users' was."""
    given = {"time_format": time_format, "delimiter": delimiter, "decimal": decimal}
    return replace(schema, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


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

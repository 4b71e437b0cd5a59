"""`kerneltrail fit`: a table of pilot users to a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data.table import Table
    from kerneltrail.trajectory.model import TrajectoryModel


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


class Preset(StrEnum):
    """Which procedure."""

    default = "default"
    published = "published"


def fit(
    data: Annotated[Path, typer.Argument(help="Table of pilot users, CSV or Parquet.", dir_okay=False)],
    user: Annotated[str, typer.Option("--user", help="Column that names the user.")],
    order: Annotated[str, typer.Option("--order", help="Column that puts a user's rows in time order.")],
    target: Annotated[str, typer.Option("--target", help="Column to be predicted.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.", dir_okay=False)],
    covariates: Annotated[
        str | None,
        typer.Option("--covariates", help="Columns to predict from, a,b,c. If left out, all other columns of numbers."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Rows per batch.")] = None,
    batch_column: Annotated[
        str | None, typer.Option("--batch-column", help="Column whose change ends a batch, instead of a size.")
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="Column of the action, 0 or 1.")] = None,
    availability: Annotated[
        str | None, typer.Option("--availability", help="Column that says whether the user was available, 0 or 1.")
    ] = None,
    available_only: Annotated[
        bool, typer.Option("--available-only", help="Drop the rows at which the user was not available.")
    ] = False,
    missing: Annotated[
        Missing, typer.Option("--missing", help="What to do with a row in which a value is missing.")
    ] = Missing.error,
    scaling: Annotated[
        Scaling, typer.Option("--scaling", help="Covariates to [0, 1] by the group's range, or as they are.")
    ] = Scaling.group,
    target_scaling: Annotated[
        TargetScaling, typer.Option("--target-scaling", help="The target as it is, or shifted and scaled to sd 1.")
    ] = TargetScaling.none,
    levels: Annotated[
        list[str] | None, typer.Option("--levels", help="Levels of a categorical covariate: NAME=a,b,c. Repeatable.")
    ] = None,
    unit: Annotated[
        list[str] | None, typer.Option("--unit", help="Unit of a covariate or the target: NAME=hours. Repeatable.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Pool, priors, settings, reward: YAML or TOML (docs).")
    ] = None,
    preset: Annotated[
        Preset | None, typer.Option("--preset", help="The measured default, or the paper's procedure.")
    ] = None,
    chains: Annotated[int | None, typer.Option("--chains", min=1, help="Number of chains.")] = None,
    sweeps: Annotated[int | None, typer.Option("--sweeps", min=4, help="Most sweeps of each chain.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the chains.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores by default.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Folder from which a fit that was stopped goes on.", file_okay=False),
    ] = None,
) -> None:
    """Learn from pilot users how kernels evolve as data accrues, and write the model to one file.

    By default the pool is every atom (LIN, PER, SE) on every covariate, and the priors are the paper's: those for
    HeartSteps where covariates are scaled to [0, 1], the synthetic ones with --scaling none.
    """
    from kerneltrail.commands.terminal import fit_bar, say, title
    from kerneltrail.config import Config, read_config
    from kerneltrail.data import Cohort
    from kerneltrail.data.table import read_table
    from kerneltrail.files import check_writable
    from kerneltrail.trajectory.fit import fit as learn

    if (batch_size is None) == (batch_column is None):
        raise typer.BadParameter(
            "say how rows are cut into batches, in one way", param_hint="--batch-size, --batch-column"
        )
    chosen = Config() if config is None else read_config(config)  # what can be refused at once is refused first
    if preset is not None:
        chosen = chosen.with_preset(preset.value)
    changes = {"chains": chains, "sweeps": sweeps, "seed": seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    chosen.settings_value(**changes)
    table = read_table(data)
    categorical = {name: text.split(",") for name, text in _pairs(levels, "--levels").items()}
    taken = {user, order, target, batch_column, action, availability}
    cohort = Cohort.from_table(
        table,
        user=user,
        order=order,
        target=target,
        covariates=_listed(covariates) if covariates is not None else _numeric(table, taken, categorical),
        batch_size=batch_size,
        batch_column=batch_column,
        action=action,
        availability=availability,
        available_only=available_only,
        missing=missing.value,
        scaling=scaling.value,
        target_scaling=target_scaling.value,
        categorical=categorical,
        units=_pairs(unit, "--unit"),
    )
    parts = chosen.build(cohort, **changes)
    check_writable(out)
    with fit_bar() as tell:
        model = learn(cohort, **parts, workers=workers, progress=tell, checkpoint=checkpoint)
    model.save(out)
    say([f"{len(cohort)} users; {target} from {', '.join(cohort.covariates)}", str(cohort.report)])
    _summary(model)
    title("Written")
    say([str(out)])


def _summary(model: TrajectoryModel) -> None:
    from kerneltrail.commands.graph import graph_lines
    from kerneltrail.commands.terminal import say, title

    title("Graph")
    say(graph_lines(model.pool, model.paths))
    title("Chains")
    say(chain_lines(model))


def chain_lines(model: TrajectoryModel) -> list[str]:
    """How the chains did, in two or three lines."""
    told = model.diagnostics
    rhat = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in told.rhat.items())
    lines = [f"{len(told.log_joint)} chains of {told.sweeps} sweeps; R-hat: {rhat}"]
    if told.seconds:
        lines.append(", ".join(f"{name} {value:.1f} s" for name, value in told.seconds.items()))
    if told.rhat.get("log_joint", 1.0) > model.settings.rhat:
        lines.append(
            f"The chains do not agree yet (R-hat of the log joint above {model.settings.rhat:g}): use more sweeps, and "
            "look at the alternatives (kerneltrail show)."
        )
    return lines


def _listed(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("name at least one column", param_hint="--covariates")
    return names


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
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

"""`kerneltrail fit`: a table of pilot users to a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli import table_options

if TYPE_CHECKING:
    from kerneltrail.trajectory.model import TrajectoryModel


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
    covariates: table_options.Covariates = None,
    batch_size: table_options.BatchSize = None,
    batch_column: table_options.BatchColumn = None,
    action: table_options.Action = None,
    features: table_options.Features = None,
    availability: table_options.Availability = None,
    available_only: table_options.AvailableOnly = False,
    missing: table_options.OnMissing = table_options.Missing.error,
    scaling: table_options.ScalingOption = table_options.Scaling.group,
    target_scaling: table_options.TargetScalingOption = table_options.TargetScaling.none,
    levels: table_options.Levels = None,
    unit: table_options.Unit = None,
    config: table_options.ConfigFile = None,
    preset: Annotated[
        Preset | None, typer.Option("--preset", help="The measured default, or the paper's procedure.")
    ] = None,
    chains: Annotated[int | None, typer.Option("--chains", min=1, help="Number of chains.")] = None,
    sweeps: Annotated[int | None, typer.Option("--sweeps", min=4, help="Most sweeps of each chain.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the chains.")] = None,
    workers: table_options.Workers = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Folder from which a fit that was stopped goes on.", file_okay=False),
    ] = None,
) -> None:
    """Learn from pilot users how kernels evolve as data accrues, and write the model to one file.

    By default the pool is every atom (LIN, PER, SE) on every covariate, and the priors are the paper's: those for
    HeartSteps where covariates are scaled to [0, 1], the synthetic ones with --scaling none.
    """
    from kerneltrail.cli.terminal import fit_bar, say, title
    from kerneltrail.store.atomic import check_writable
    from kerneltrail.trajectory.configuration import Config, read_config
    from kerneltrail.trajectory.fit import fit as learn

    table_options.check_batches(batch_size, batch_column)
    chosen = Config() if config is None else read_config(config)  # what can be refused at once is refused first
    if preset is not None:
        chosen = chosen.with_preset(preset.value)
    chosen = table_options.with_reward(chosen, features, action)
    changes = {"chains": chains, "sweeps": sweeps, "seed": seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    chosen.settings_value(**changes)
    cohort = table_options.read_cohort(
        data,
        user=user,
        order=order,
        target=target,
        covariates=covariates,
        batch_size=batch_size,
        batch_column=batch_column,
        action=action,
        availability=availability,
        available_only=available_only,
        missing=missing.value,
        scaling=scaling.value,
        target_scaling=target_scaling.value,
        levels=levels,
        unit=unit,
    )
    parts = chosen.build(cohort, **changes)
    check_writable(out)
    say([f"{len(cohort)} users; {target} from {', '.join(cohort.covariates)}", str(cohort.report)])  # before the wait
    try:
        with fit_bar() as tell:
            model = learn(cohort, **parts, workers=workers, progress=tell, checkpoint=checkpoint)
    except KeyboardInterrupt:
        if checkpoint is not None:
            typer.echo(f"What was done is kept in {checkpoint}: the same command goes on from there.", err=True)
        raise
    model.save(out)
    _summary(model)
    title("Written")
    say([str(out)])


def _summary(model: TrajectoryModel) -> None:
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.report.model_text import graph_lines

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
    if max(told.rhat.values(), default=1.0) > model.settings.agreed:
        lines.append(
            f"The chains do not agree yet (an R-hat is above {model.settings.agreed:g}): use more sweeps, and "
            "look at the alternatives (kerneltrail show)."
        )
    return lines

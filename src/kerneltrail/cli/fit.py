"""`kerneltrail fit`: a table of pilot users to a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli.table_options import ConfigFile, EngineName, TableOptions, Workers, listed, with_table_options

if TYPE_CHECKING:
    from kerneltrail.trajectory.configuration import Config
    from kerneltrail.trajectory.model import TrajectoryModel


Mean = StrEnum("Mean", ["automatic", "none", "population", "smooth"])
Paths = StrEnum("Paths", ["overlapping", "constant"])
Structure = StrEnum("Structure", ["chosen", "averaged"])


class Preset(StrEnum):
    """Which procedure."""

    default = "default"
    published = "published"


@with_table_options("user", "order", "target")
def fit(
    data: Annotated[Path, typer.Argument(help="Table of pilot users, CSV or Parquet.", dir_okay=False)],
    table: TableOptions,
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.", dir_okay=False)],
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            help="Reward model: the action's effect depends on these covariates, a,b,c, or on none. Needs --action.",
        ),
    ] = None,
    config: ConfigFile = None,
    preset: Annotated[
        Preset | None, typer.Option("--preset", help="The measured default, or the paper's procedure.")
    ] = None,
    mean: Annotated[
        Mean | None,
        typer.Option(
            "--mean",
            help="What users vary around: shared lines (population), curves too (smooth), or zero (none).",
        ),
    ] = None,
    paths: Annotated[
        Paths | None,
        typer.Option("--paths", help="Whether a pilot user's kernel may change with every batch, or is constant."),
    ] = None,
    structure: Annotated[
        Structure | None,
        typer.Option("--structure", help="Whether new users are followed by the chosen graph, or by all averaged."),
    ] = None,
    chains: Annotated[int | None, typer.Option("--chains", min=1, help="Number of chains.")] = None,
    sweeps: Annotated[int | None, typer.Option("--sweeps", min=8, help="Most sweeps of each chain.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the chains.")] = None,
    workers: Workers = None,
    engine: EngineName = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Folder from which a fit that was stopped goes on.", file_okay=False),
    ] = None,
) -> None:
    """Learn from pilot users how kernels evolve as data accrues, and write the model to one file.

    By default the pool is every atom (LIN, PER, SE) on every covariate, and the priors are those for covariates scaled
    to [0, 1] and a standardised target; with --target-scaling none the paper's for HeartSteps, with --scaling none the
    synthetic ones.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.progress import show_progress

    table.check(data)
    fitting = False
    try:
        with show_progress(f"reading {data.name}") as display:
            from kerneltrail.data import Cohort
            from kerneltrail.data.checks import brief
            from kerneltrail.data.checks import check as look
            from kerneltrail.data.checks.texts import LEFT_OUT
            from kerneltrail.engines import engine_for
            from kerneltrail.kernels.phrases import counted
            from kerneltrail.report.assignment_text import assignment_lines
            from kerneltrail.trajectory.configuration import Config, read_config
            from kerneltrail.trajectory.fit import STAGES
            from kerneltrail.trajectory.fit import fit as learn

            display.plan(*STAGES)
            chosen = Config() if config is None else read_config(config)  # what can be refused at once is refused first
            if preset is not None:
                chosen = chosen.with_preset(preset.value)
            chosen = _with_reward(chosen, features, table.action)
            words = {"mean": mean, "paths": paths, "structure": structure}
            numbers = {"chains": chains, "sweeps": sweeps, "seed": seed}
            changes: dict[str, str | int] = {name: word.value for name, word in words.items() if word is not None}
            changes |= {name: number for name, number in numbers.items() if number is not None}
            _check_greedy(chosen, preset, paths=paths, structure=structure)
            chosen.settings_value(**changes)
            runner = engine_for(engine, workers=workers)
            rows = table.table(data)
            cohort = Cohort.from_schema(table.schema(rows), rows)
            checked = look(cohort, rows, candidates=table.left_over(rows) if table.covariates is None else ())
            parts = chosen.build(cohort, **changes)
            check_outputs({"--out": out}, (data, config))
            with display.pause():  # before the wait
                say(
                    [
                        f"{counted(len(cohort), 'user')}; {table.target} from {', '.join(cohort.covariates)}",
                        str(cohort.report),
                    ]
                )
                say(assignment_lines(cohort, parts["reward"]))
                say(f"{each.message}. {each.advice}" for each in checked.findings if each.code == LEFT_OUT)
                say(brief(checked.findings, "kerneltrail check, with the options for the table, says more."))
            fitting = True
            model = learn(cohort, **parts, engine=runner, progress=display.show, checkpoint=checkpoint)
    except KeyboardInterrupt:
        if checkpoint is not None and fitting:
            typer.echo(f"What was done is kept in {checkpoint}: the same command goes on from there.", err=True)
        raise
    from kerneltrail.report.model_text import graph_lines

    model.save(out)
    title("Graph")
    say(graph_lines(model.pool, model.paths))
    title("Chains")
    say(chain_lines(model))
    title("Written")
    say([str(out)])


def _check_greedy(config: Config, preset: Preset | None, **asked: str | None) -> None:
    """Refuse what a greedy walk cannot have where an option makes it greedy: the settings would blame a file."""
    if preset is Preset.published and config.settings_value().selection == "greedy":
        for name, value in asked.items():
            if value in ("constant", "averaged"):
                raise typer.BadParameter(
                    f"--{name} {value} does not go with --preset published, which follows users greedily",
                    param_hint=f"--{name}",
                )


def _with_reward(config: Config, features: str | None, action: str | None) -> Config:
    """A configuration with the reward model of ``--features``; refused where no action's column is named."""
    if features is not None:
        config = config.with_features([] if features.strip() == "none" else listed(features, "--features", "covariate"))
    if config.reward is not None and action is None:
        raise typer.BadParameter(
            "a reward model needs the column of the action: add --action COLUMN, of 0 and 1",
            param_hint="--config" if features is None else "--features",
        )
    return config


def chain_lines(model: TrajectoryModel) -> list[str]:
    """How the chains did, in a few lines."""
    from kerneltrail.kernels.phrases import counted
    from kerneltrail.report.model_text import NOTHING, advancing_text, limit_text

    diagnostics = model.diagnostics
    rhat = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in diagnostics.rhat.items())
    chains = counted(len(diagnostics.log_joint), "chain")
    lines = [f"{chains} of {counted(diagnostics.sweeps, 'sweep')}; R-hat: {rhat}"]
    if diagnostics.seconds:
        lines.append(", ".join(f"{name} {value:.1f} s" for name, value in diagnostics.seconds.items()))
    if diagnostics.cut:
        cut = round(diagnostics.cut["kernels"])
        were, they = ("was", "it") if cut == 1 else ("were", "they")
        lines.append(
            f"{counted(cut, 'further kernel')} {were} promising for somebody and left out, since at most "
            f"{model.settings.candidates} are considered; {they} had {diagnostics.cut['share']:.1%} of the probability."
        )
    lines += [text for text in (limit_text(model), advancing_text(model)) if text]
    if model.averaged is not None:
        further = ", ".join(node.composition.text or NOTHING for node in model.averaged.nodes) or "none"
        lines.append(
            f"New users are followed by the average of all sampled graphs; further kernels in it: {further}; "
            f"{model.averaged.cut:.1%} of the pilot users' batches are at kernels too rare to count."
        )
    if max(diagnostics.rhat.values(), default=1.0) > model.settings.agreed:
        lines.append(
            f"The chains do not agree yet (an R-hat is above {model.settings.agreed:g}): use more sweeps, and "
            "look at the alternatives (kerneltrail show)."
        )
    return lines

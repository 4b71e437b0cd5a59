"""`kerneltrail evaluate`: all methods on the same users, each batch predicted before it is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerneltrail.cli.table_options import ConfigFile, EngineName, TableOptions, Workers, listed, with_table_options

if TYPE_CHECKING:
    from kerneltrail.data import Cohort
    from kerneltrail.evaluation import Evaluation, Spec

SIMULATED = "simulated:"

DRAWING = "drawing and writing"
"""The last stage."""


@with_table_options()
def evaluate(
    data: Annotated[
        str, typer.Argument(help="Table of users, CSV or Parquet; or simulated:paper, distinct, similar or complex.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for tables, figures, finished pieces.", file_okay=False)],
    table: TableOptions,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Which, a,b,c; all by default. 'published': the trajectory model as published."),
    ] = None,
    test: Annotated[str | None, typer.Option("--test", help="Names of the test users, a,b,c.")] = None,
    test_users: Annotated[
        int | None, typer.Option("--test-users", min=1, help="How many test users are drawn, or simulated.")
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(
            "--test-share",
            help="Share of users drawn for testing, above 0 and below 1; 0.3 by default, one user at least.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Random splits, or seeds of a simulation.")] = 1,
    config: ConfigFile = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of splits or simulations, and of methods.")] = 0,
    workers: Workers = None,
    engine: EngineName = None,
) -> None:
    """Compare methods: after every batch, predict the next one; error, density, coverage, time, size, stability.

    Every method is built from the training users and follows the test users. What is finished is kept in the folder:
    run again after a stop, it goes on. A method or user that fails is named at the end, and the others go on.
    `kerneltrail tables DIR` prints the tables as Markdown.
    """
    from kerneltrail.cli.outputs import check_folder, check_outputs
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.progress import Progress, show_progress

    names = listed(test, "--test", "user") if test is not None else None
    tested = _TestUsers(names, test_users, test_share, runs, seed)
    simulated = data.startswith(SIMULATED)
    if simulated:
        if given := table.given():
            raise typer.BadParameter(
                "they describe a table, and a simulation has none: leave them out", param_hint=", ".join(given)
            )
    else:
        table.check(Path(data))
    with show_progress("simulating" if simulated else f"reading {Path(data).name}") as display:
        from kerneltrail.engines import engine_for, keep_freed_memory
        from kerneltrail.evaluation import evaluate as compare
        from kerneltrail.evaluation import merged
        from kerneltrail.evaluation.harness import STAGES
        from kerneltrail.evaluation.result import NAME, TABLES
        from kerneltrail.kernels.phrases import counted
        from kerneltrail.report.assignment_text import assignment_lines
        from kerneltrail.trajectory.configuration import read_config

        before = [f"run {number} of {runs}: " if runs > 1 else "" for number in range(1, runs + 1)]
        display.plan(*(f"{each}{stage}" for each in before for stage in STAGES), DRAWING)
        labels = _labels(methods)
        chosen = None if config is None else read_config(config)
        runner = engine_for(engine, workers=workers)
        check_folder("--out", out, TABLES, (None if simulated else Path(data), config))
        check_outputs({"--out": out / NAME})  # what cannot be written is refused before the work begins
        cohort = None if simulated else table.read(Path(data))
        if cohort is None:
            every = _simulations(data.removeprefix(SIMULATED), tested)
        else:
            reward = None if chosen is None else chosen.build(cohort)["reward"]
            with display.pause():
                say(
                    [
                        f"{counted(len(cohort), 'user')}; {table.target} from {', '.join(cohort.covariates)}",
                        str(cohort.report),
                    ]
                )
                # Other methods leave a probability aside.
                say(f"trajectory: {line}" for line in assignment_lines(cohort, reward))
            every = _splits(cohort, tested)
        keep_freed_memory()
        results: list[Evaluation] = []
        for run, one in zip(before, every, strict=True):
            with display.pause():
                say([f"{one.label}: tested {', '.join(one.test.names)}; learnt from {', '.join(one.train.names)}"])
            parts = one.parts if chosen is None else chosen.build(one.train)

            def tell(now: Progress, run: str = run) -> None:
                display.show(replace(now, stage=f"{run}{now.stage}"))

            results.append(
                compare(
                    one.train,
                    one.test,
                    {label: _spec(label, parts) for label in labels},
                    seed=one.seed,
                    engine=runner,
                    truth=one.truth,
                    out=out / "pieces",
                    run=one.label,
                    progress=tell,
                )
            )
        display.show(Progress(DRAWING))
        from kerneltrail.cli.evaluation_tables import show

        evaluation = merged(results)
        written = [*evaluation.save(out), *_figures(evaluation, out)]
    show(evaluation)
    if evaluation.failures:
        title("Failed")
        say([str(failure) for failure in evaluation.failures], style="red")
    title("Written")
    say([str(out), "  " + ", ".join(path.name for path in written)])
    if not evaluation.steps:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _TestUsers:
    """Who is tested: users named, or drawn."""

    names: list[str] | None
    users: int | None
    share: float | None
    runs: int
    seed: int

    def __post_init__(self) -> None:
        given = [name for name in ("names", "users", "share") if getattr(self, name) is not None]
        if len(given) > 1 or (self.names is not None and self.runs > 1):
            raise typer.BadParameter(
                "name the test users, or have them drawn; several runs only if drawn",
                param_hint="--test, --test-users, --test-share, --runs",
            )
        if self.share is not None and not 0.0 < self.share < 1.0:
            raise typer.BadParameter(
                f"some users are tested and the others learnt from, so it lies above 0 and below 1, got {self.share:g}",
                param_hint="--test-share",
            )


@dataclass(frozen=True)
class _Split:
    """What one evaluation is made from; `parts` are settings of methods where no file says otherwise."""

    label: str
    train: Cohort
    test: Cohort
    seed: int
    truth: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)


def _simulations(name: str, tested: _TestUsers) -> Iterator[_Split]:
    """A simulation for every seed, with the pool and priors of its set unless a file says otherwise."""
    from kerneltrail.studies.sets import SETS

    chosen = SETS[name]
    if tested.names is not None or tested.share is not None:
        raise typer.BadParameter("a simulation has test users of its own", param_hint="--test, --test-share")
    sizes = {} if tested.users is None else {"test": tested.users}
    parts = {"pool": chosen.pool(), "priors": chosen.priors()}

    def runs() -> Iterator[_Split]:
        for seed in range(tested.seed, tested.seed + tested.runs):
            simulation = chosen.simulate(seed=seed, **sizes)
            yield _Split(f"seed {seed}", simulation.train, simulation.test, seed, simulation.truth, parts)

    return runs()


def _splits(cohort: Cohort, tested: _TestUsers) -> Iterator[_Split]:
    """The split that was asked for, or random ones; methods have one seed, so that users' own fits are shared."""
    from kerneltrail.evaluation import splits

    share = 0.3 if tested.share is None else tested.share
    count = tested.users if tested.users is not None else max(1, round(share * len(cohort)))
    chosen = [tested.names] if tested.names else splits(cohort.names, count, tested.runs, seed=tested.seed)
    every = [cohort.split(test=names) for names in chosen]
    return (_Split(f"split {i}", train, test, tested.seed) for i, (train, test) in enumerate(every, 1))


def _labels(given: str | None) -> list[str]:
    from kerneltrail.errors import DataError
    from kerneltrail.methods import methods as known
    from kerneltrail.names import nearest

    if given is None:
        return list(known())
    labels = listed(given, "--methods", "method")
    every = (*known(), "published")
    for label in labels:
        if label not in every:
            raise DataError(f"no method is called {label!r}; {nearest(label, every, 'there are')}")
    return list(dict.fromkeys(labels))


def _spec(label: str, parts: Mapping[str, Any]) -> Spec:
    """A method with the pool, priors and reward model given; other settings are the trajectory model's."""
    from kerneltrail.methods.registry import rests_on
    from kerneltrail.trajectory.settings import Settings

    shared = {name: value for name, value in parts.items() if name != "settings" and value is not None}
    if label == "published":
        return "trajectory", {**shared, "settings": Settings.published()}
    if "settings" in parts and "trajectory" in (label, rests_on(label)):
        return label, {**shared, "settings": parts["settings"]}
    return label, shared


def _figures(evaluation: Evaluation, out: Path) -> list[Path]:
    from kerneltrail.report.comparison_figures import by_batch, differences
    from kerneltrail.report.figures import png
    from kerneltrail.store.atomic import write

    if not evaluation.steps:
        return []
    averages, pairs = evaluation.summary(), evaluation.paired()
    drawn = {
        name: by_batch(averages, name, first=evaluation.first)
        for name in ("rmse", "log_density", "cpu_seconds", "right")
        if any(row.metric == name for row in averages)
    }
    if pairs:
        drawn |= {f"{name}_difference": differences(pairs, name) for name in ("rmse", "log_density")}
    return [write(out / f"{name}.png", png(figure)) for name, figure in drawn.items()]

"""`kerneltrail evaluate`: all methods on the same users, each batch predicted before it is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerneltrail.cli import table_options

if TYPE_CHECKING:
    from kerneltrail.data import Cohort
    from kerneltrail.evaluation import Evaluation, Progress, Spec

SIMULATED = "simulated:"


def evaluate(
    data: Annotated[
        str, typer.Argument(help="Table of users, CSV or Parquet; or simulated:paper, distinct, similar or complex.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for tables, figures, finished pieces.", file_okay=False)],
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
        typer.Option("--test-share", min=0.0, max=1.0, help="Share of users drawn for testing; 0.3 by default."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Random splits, or seeds of a simulation.")] = 1,
    user: Annotated[str | None, typer.Option("--user", help="Column that names the user.")] = None,
    order: Annotated[str | None, typer.Option("--order", help="Column that puts a user's rows in time order.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Column to be predicted.")] = None,
    covariates: table_options.Covariates = None,
    batch_size: table_options.BatchSize = None,
    batch_column: table_options.BatchColumn = None,
    action: table_options.Action = None,
    availability: table_options.Availability = None,
    available_only: table_options.AvailableOnly = False,
    missing: table_options.OnMissing = table_options.Missing.error,
    scaling: table_options.ScalingOption = table_options.Scaling.group,
    target_scaling: table_options.TargetScalingOption = table_options.TargetScaling.none,
    levels: table_options.Levels = None,
    unit: table_options.Unit = None,
    config: table_options.ConfigFile = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of splits or simulations, and of methods.")] = 0,
    workers: table_options.Workers = None,
) -> None:
    """Compare methods: after every batch, predict the next one; error, density, coverage, time, size, stability.

    Every method is built from the training users and follows the test users. What is finished is kept in the folder:
    run again after a stop, it goes on. A method or user that fails is named at the end, and the others go on.
    """
    from kerneltrail.cli.evaluation_tables import show
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.evaluation import evaluate as compare
    from kerneltrail.evaluation import merged
    from kerneltrail.gp import keep_freed_memory
    from kerneltrail.store.cache import Cache
    from kerneltrail.trajectory.configuration import read_config

    labels = _labels(methods)
    chosen = None if config is None else read_config(config)
    Cache.at(out)  # what cannot be written is refused before the work begins
    drawn = _Drawn(
        table_options.listed(test, "--test", "user") if test is not None else None, test_users, test_share, runs, seed
    )
    if data.startswith(SIMULATED):
        every = _simulated(data.removeprefix(SIMULATED), drawn)
    else:
        if user is None or order is None or target is None:
            raise typer.BadParameter("a table needs all three", param_hint="--user, --order, --target")
        table_options.check_batches(batch_size, batch_column)
        cohort = table_options.read_cohort(
            Path(data),
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
        say([f"{len(cohort)} users; {target} from {', '.join(cohort.covariates)}", str(cohort.report)])
        every = _splits(cohort, drawn)
    keep_freed_memory()
    found: list[Evaluation] = []
    for number, one in enumerate(every, 1):
        say([f"{one.label}: tested {', '.join(one.test.names)}; learnt from {', '.join(one.train.names)}"])
        with _bar(f"run {number} of {runs}: " if runs > 1 else "") as tell:
            parts = one.parts if chosen is None else chosen.build(one.train)
            found.append(
                compare(
                    one.train,
                    one.test,
                    {label: _spec(label, parts) for label in labels},
                    seed=one.seed,
                    workers=workers,
                    truth=one.truth,
                    out=out / "pieces",
                    run=one.label,
                    progress=tell,
                )
            )
    evaluation = merged(found)
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
class _Drawn:
    """Who is tested: users named, or drawn."""

    names: list[str] | None
    users: int | None
    share: float | None
    runs: int
    seed: int

    def __post_init__(self) -> None:
        said = [name for name in ("names", "users", "share") if getattr(self, name) is not None]
        if len(said) > 1 or (self.names is not None and self.runs > 1):
            raise typer.BadParameter(
                "name the test users, or have them drawn; several runs only if drawn",
                param_hint="--test, --test-users, --test-share, --runs",
            )


@dataclass(frozen=True)
class _Run:
    """What one evaluation is made from; `parts` are settings of methods where no file says otherwise."""

    label: str
    train: Cohort
    test: Cohort
    seed: int
    truth: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)


def _simulated(name: str, drawn: _Drawn) -> Iterator[_Run]:
    """A simulation for every seed, with the pool and priors of the recovery benchmark unless a file says otherwise."""
    from kerneltrail.errors import DataError
    from kerneltrail.kernels import Pool, Priors
    from kerneltrail.names import nearest
    from kerneltrail.studies.bench.recovery import SETS, wide_priors

    if name not in SETS:
        raise DataError(f"there is no simulation {name!r}; {nearest(name, tuple(SETS), 'there are')}")
    if drawn.names is not None or drawn.share is not None:
        raise typer.BadParameter("a simulation has test users of its own", param_hint="--test, --test-share")
    sizes = {} if drawn.users is None else {"test": drawn.users}
    priors = Priors.synthetic() if name == "paper" else wide_priors()
    parts = {"pool": Pool.paper(), "priors": priors}

    def runs() -> Iterator[_Run]:
        for seed in range(drawn.seed, drawn.seed + drawn.runs):
            made = SETS[name](seed=seed, **sizes)
            yield _Run(f"seed {seed}", made.train, made.test, seed, made.truth, parts)

    return runs()


def _splits(cohort: Cohort, drawn: _Drawn) -> Iterator[_Run]:
    """The split that was asked for, or random ones; methods have one seed, so that users' own fits are shared."""
    from kerneltrail.evaluation import splits

    share = 0.3 if drawn.share is None else drawn.share
    count = drawn.users if drawn.users is not None else max(1, round(share * len(cohort)))
    chosen = [drawn.names] if drawn.names else splits(cohort.names, count, drawn.runs, seed=drawn.seed)
    every = [cohort.split(test=names) for names in chosen]
    return (_Run(f"split {i}", train, test, drawn.seed) for i, (train, test) in enumerate(every, 1))


def _labels(given: str | None) -> list[str]:
    from kerneltrail.errors import DataError
    from kerneltrail.methods import methods as known
    from kerneltrail.names import nearest

    if given is None:
        return list(known())
    labels = table_options.listed(given, "--methods", "method")
    every = (*known(), "published")
    for label in labels:
        if label not in every:
            raise DataError(f"no method is called {label!r}; {nearest(label, every, 'there are')}")
    return list(dict.fromkeys(labels))


def _spec(label: str, parts: Mapping[str, Any]) -> Spec:
    """A method with the pool, priors and reward model given; other settings are the trajectory model's."""
    from kerneltrail.trajectory.settings import Settings

    shared = {name: value for name, value in parts.items() if name != "settings" and value is not None}
    if label == "published":
        return "trajectory", {**shared, "settings": Settings.published()}
    if label == "trajectory" and "settings" in parts:
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


@contextmanager
def _bar(before: str) -> Iterator[Callable[[Progress], None]]:
    """A bar for each stage. Silent when nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[stage]}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = {name: bar.add_task("", stage=before + name, total=None) for name in ("build", "follow")}

        def tell(progress: Progress) -> None:
            bar.update(tasks[progress.stage], completed=progress.done, total=progress.total, description=progress.said)

        yield tell

"""`kerneltrail trial simulate`: the trial before the trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltrail.cli.table_options import EngineName, Workers

if TYPE_CHECKING:
    from kerneltrail.progress import Tell
    from kerneltrail.trial.simulator.study import Study


def simulate(
    protocol: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PROTOCOL]",
            help="The protocol, or a trial's folder. Without one, a pilot study is simulated that leads to one.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for tables, page, and what is done so far.", file_okay=False)
    ] = Path("simulated"),
    people: Annotated[
        str,
        typer.Option(
            "--people",
            help="Who takes part: model (drawn from the protocol's model), pilot (from its pilot users' rows), "
            "heartsteps, brushing, or stepcount; with parameters such as stepcount:sigma=0.4. Of model and heartsteps, "
            "somebody can act at 80 % of the decision points unless you say otherwise: model:available=0.9.",
        ),
    ] = "model",
    participants: Annotated[int, typer.Option("--participants", min=2, help="Participants of a trial.")] = 40,
    days: Annotated[int, typer.Option("--days", min=1, help="Days of a trial.")] = 42,
    seeds: Annotated[
        str, typer.Option("--seeds", help="Simulated trials of each design: a number, or from:to.")
    ] = "20",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            help="What designs differ in: participants=20,40 days=… clip=0.2:0.8,0.1:0.9 slope=5,10 "
            "updates=daily,weekly,50 rule=… delta=… per_dose=…. Repeatable.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="Policies to compare: ours (the trial's own), heartsteps, intelligent-pooling, fixed, never, always, "
            "oracle, oralytics, miwaves; all by default. Repeatable.",
        ),
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", help="What acting adds, the same for everybody; 0 for none. Else as people have it."),
    ] = None,
    trouble: Annotated[
        str, typer.Option("--trouble", help="What goes wrong: none, usual or rough.")
    ] = "usual",
    drive: Annotated[
        str,
        typer.Option(
            "--drive",
            help="How the trial's policy is driven: quick; conduct, with a ledger; service, over HTTP.",
        ),
    ] = "quick",
    features: Annotated[
        str | None, typer.Option("--features", help="Without a protocol: covariates on which the effect may depend.")
    ] = None,
    allocation: Annotated[
        str, typer.Option("--allocation", help="Without a protocol: the allocation rule or preset.")
    ] = "default",
    times: Annotated[
        str | None, typer.Option("--times", help="Without a protocol: times of the decisions, such as 09:00,18:00.")
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option("--pilot", help="The pilot users' table, for --people pilot.", dir_okay=False)
    ] = None,
    workers: Workers = None,
    engine: EngineName = None,
) -> None:  # fmt: skip
    """Simulate a trial before it begins: what to expect of each design, beside other policies.

    A study that is stopped goes on where it was when the same command is given again, to the same results.
    """
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.progress import show_progress

    with show_progress("looking at what is asked for") as display:
        _check_packages()
        from kerneltrail.engines import engine_for
        from kerneltrail.store.cache import Cache
        from kerneltrail.trial.simulator.design import designs_of
        from kerneltrail.trial.simulator.outputs import PAGE, RESULTS, RUNS, write_study
        from kerneltrail.trial.simulator.study import EVERYBODY
        from kerneltrail.trial.simulator.study import simulate as run_all

        cache = Cache.at(out / RUNS)
        designs = designs_of(participants, days, grid or ())
        numbers = _seeds(seeds)
        study = _study(
            protocol, people, effect, pilot, trouble, drive, (features, times, allocation), out, display.show
        )
        jobs = engine_for(engine, workers=workers)
        runs = run_all(study, designs, numbers, policy or EVERYBODY, cache=cache, engine=jobs, tell=display.show)
        summary = write_study(out, study, runs)
    reward = study.protocol.reward
    say([study.population.availability, f"{reward.direction[0].upper()}{reward.direction[1:]}."])
    for design in summary.designs:
        title(design)
        for line in summary.of(design):
            mean, worst = line.averages["mean"], line.averages[f"p{reward.worst.percent}"]
            error = "" if mean.error is None else f" ± {mean.error:.2g}"
            say([f"{line.policy:<20} mean {mean.mean:.4g}{error}, {reward.worst.name} {worst.mean:.4g}"])
    title("Written")
    say([f"Open {out / PAGE}", f"Every number: {out / RESULTS}"])


def _check_packages() -> None:
    from importlib.util import find_spec

    from kerneltrail.errors import TrialError

    if any(find_spec(name) is None for name in ("gymnasium", "fastapi", "sqlalchemy")):
        raise TrialError("simulated trials need further packages: install kerneltrail[simulate]")


def _seeds(text: str) -> range:
    begin, colon, end = text.partition(":")
    try:
        numbers = range(int(begin), int(end)) if colon else range(int(begin))
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 0:
        raise typer.BadParameter(
            f"expected a number such as 20, or from:to such as 20:40, got {text}", param_hint="--seeds"
        )
    return numbers


def _study(
    protocol: Path | None,
    people: str,
    effect: float | None,
    pilot: Path | None,
    trouble: str,
    drive: str,
    made: tuple[str | None, str | None, str],
    out: Path,
    tell: Tell,
) -> Study:
    """The study that is asked for, with its model."""
    from kerneltrail.data import Cohort
    from kerneltrail.names import nearest
    from kerneltrail.trial.folder import MODELS, PILOT, PROTOCOL
    from kerneltrail.trial.models import Models
    from kerneltrail.trial.protocol import read_protocol
    from kerneltrail.trial.simulator.people import Source, population_of
    from kerneltrail.trial.simulator.pilot import made_for
    from kerneltrail.trial.simulator.study import Study
    from kerneltrail.trial.simulator.trouble import TROUBLES

    if trouble not in TROUBLES:
        raise typer.BadParameter(nearest(trouble, tuple(TROUBLES), "there are"), param_hint="--trouble")
    if protocol is None:
        features, times, allocation = made
        chosen = None if features is None else tuple(filter(None, features.split(",")))
        clocks = tuple(filter(None, (times or "").split(",")))
        population = population_of(people, effect=effect)
        agreed, learnt = made_for(population, out, features=chosen, allocation=allocation, times=clocks, tell=tell)
        return Study(agreed, learnt, population, TROUBLES[trouble], drive)
    file = protocol / PROTOCOL if protocol.is_dir() else protocol
    agreed = read_protocol(file)
    model = Models(file.parent / MODELS).get(agreed.model.fingerprint)
    table = pilot if pilot is not None else file.parent / PILOT
    rows = Cohort.from_schema(model.schema, table) if pilot is not None or table.exists() else None
    return Study(agreed, model, population_of(people, Source(model, rows), effect), TROUBLES[trouble], drive)

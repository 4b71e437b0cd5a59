"""`kerneltrail trial analyse` and `rerun`: after a trial, what was found, and proof that it can be found again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltrail.cli.table_options import EngineName, Workers
from kerneltrail.cli.trial import DIFFERENT, At, By, head_of
from kerneltrail.cli.trial_service import check_packages

PAGE = "analysis.html"
"""In the folder that is written."""
STAGES = (
    ("reading the ledger", "estimating effects", "counting"), ("trials under the null",), ("drawing the page",),
)  # fmt: skip
REPEATING = ("computing decisions anew", "making tables again")
"""How the analysis calls its stages; it is loaded after they are first shown."""


def analyse(
    folder: Annotated[Path, typer.Argument(help="The trial's folder, as `trial init` makes it.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the page and the tables.", file_okay=False)],
    ledger: At = None,
    moderator: Annotated[
        list[str] | None,
        typer.Option("--moderator", help="A covariate with which the effect may change, or time. Repeatable."),
    ] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(
            "--control",
            help="A covariate that explains the outcome without acting. Repeatable. By default all covariates, or none "
            "where participants are too few.",
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only decisions of this kind.")] = None,
    level: Annotated[float, typer.Option("--level", min=0.5, max=0.999, help="Level of intervals.")] = 0.95,
    resamples: Annotated[
        int, typer.Option("--resamples", min=0, help="Simulated trials, to see whether the policy personalised.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulated trials.")] = 0,
    workers: Workers = None,
    engine: EngineName = None,
    package: Annotated[
        Path | None, typer.Option("--package", help="Also write a zip with which others can run it again.")
    ] = None,
    publish_key: Annotated[
        bool, typer.Option("--publish-key", help="Put the key of the draws into the zip: the trial must have ended.")
    ] = False,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    by: By = "",
) -> None:
    """Analyse a trial: what acting changed, for whom, whether the policy personalised, and how the trial went.

    It shows outcomes by action. If the trial is still running, that it was done is noted in the ledger first.
    """
    check_packages()
    from kerneltrail.cli.terminal import say
    from kerneltrail.errors import DataError
    from kerneltrail.progress import show_progress
    from kerneltrail.store.atomic import check_writable
    from kerneltrail.trial.folder import Folder

    study = Folder(folder, ledger)
    if publish_key and package is None:
        raise DataError("--publish-key puts the key into the zip that --package names; name one")
    check_writable(out / PAGE)
    if package is not None:
        study.check_output(package)
        check_writable(package)
    draws = study.draws() if publish_key else None
    record = study.ledger()
    try:
        first, simulating, last = STAGES
        stages = (*first, *(simulating if resamples else ()), *last)
        with show_progress(*stages) as display:
            from kerneltrail.engines import engine_for
            from kerneltrail.trial.analysis.analysis import AnalysisSettings
            from kerneltrail.trial.analysis.writing import analyse_folder

            runner = engine_for(engine, workers=workers) if resamples else 1
            chosen = None if not moderator else tuple(moderator)
            controls = None if not control else tuple(control)
            settings = AnalysisSettings(chosen, controls, kind, level, resamples, seed)
            analysis, lines = analyse_folder(
                study, record, out, settings, workers=runner, package=package, draws=draws, title=title, by=by,
                tell=display.show,
            )  # fmt: skip
    finally:
        record.close()
    say([*analysis.words(), *lines])


def rerun(
    package: Annotated[Path, typer.Argument(metavar="ZIP", help="What `trial analyse --package` wrote.")],
    resamples: Annotated[
        int, typer.Option("--resamples", min=0, help="Simulated trials that are computed again, from the first on.")
    ] = 2,
    head: Annotated[
        str | None, typer.Option("--head", help="An end of the chain as it was noted before: number:hash.")
    ] = None,
) -> None:
    """Run a replication package again: verify its ledger, compute its decisions anew, make its tables again."""
    check_packages()
    from kerneltrail.cli.terminal import say
    from kerneltrail.progress import show_progress

    expected = head_of(head)
    with show_progress("reading the package", *REPEATING) as display:
        from kerneltrail.trial.analysis.repetition import repeat

        repeated = repeat(package, resamples=resamples, expected=expected, tell=display.show)
    say(repeated.lines())
    if not repeated.same:
        raise typer.Exit(DIFFERENT)

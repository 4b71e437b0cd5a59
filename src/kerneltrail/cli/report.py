"""`kerneltrail report`: a page about a model, or about the results of an experiment, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerneltrail.cli.table_options import Decimal, Delimiter, TimeFormat, as_written

if TYPE_CHECKING:
    from kerneltrail.trajectory.model import TrajectoryModel

RESULTS = ("results.json", "evaluation.json")
"""Files in a folder of results that may compare methods; the first found is read."""


def report(
    source: Annotated[
        Path, typer.Argument(metavar="MODEL|DIR", help="A model file, or a folder of results with a model in it.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The page, one HTML file.", dir_okay=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Table of the pilot users, or of new ones, to show their rows and fits."),
    ] = None,
    users: Annotated[
        int, typer.Option("--users", min=1, help="Users shown one by one; calibration takes all of them.")
    ] = 24,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    time_format: TimeFormat = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Write a page that explains a model: the graph, users on it, calibration, alternatives, chains.

    The page is one file that fetches nothing; it can be sent by mail and printed.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say, warn
    from kerneltrail.errors import DataError
    from kerneltrail.progress import Progress, show_progress

    following = () if data is None else ("following users",)
    with show_progress(f"reading {source.name}", *following, "drawing the page") as display:
        from kerneltrail.data import Cohort
        from kerneltrail.data.checks import against_pilot
        from kerneltrail.store.atomic import write

        model, results = _model_and_results(source)
        nothing = f"{source} holds neither a model (*.trail) nor results that compare methods ({RESULTS[0]})"
        if model is None and not results:
            raise DataError(nothing)
        if data is not None and model is None:
            raise DataError(f"{source} has no model file, without which --data cannot be shown")
        cohort = None
        if data is not None and model is not None:
            schema = as_written(model.schema, time_format, delimiter, decimal)
            cohort = Cohort.from_schema(schema, data, skip_refused=True)
        check_outputs({"--out": out}, (data, *_files_read(source)))
        # What can be refused has been: what draws takes a second to load.
        import numpy as np

        from kerneltrail.report.model_page import Comparison, follow_users, trail_page

        comparison = Comparison.from_results(results)
        if model is None and comparison is None:
            raise DataError(nothing)
        followed: Any = ()
        odd = () if cohort is None or model is None else against_pilot(cohort, model.pilot)
        left_out = [] if cohort is None else cohort.report.left_out
        if cohort is not None and model is not None:
            # Numbers out of range are told by who is left out and why, not by NumPy's warnings.
            with np.errstate(all="ignore"):
                followed = follow_users(
                    model, cohort.raw, detailed=users, progress=display.show, leave_out=left_out.append
                )
        display.show(Progress("drawing the page"))
        written = write(out, trail_page(title, model, followed, comparison, left_out=left_out, odd=odd))
    lines = [f"Open {written}"]
    if cohort is not None:
        lines.insert(0, str(cohort.report))
        if len(cohort) > users:
            lines.insert(1, f"{users} of {len(cohort)} users are shown one by one; --users shows more")
    say(lines)
    warn(odd)
    if left_out:
        raise DataError("\n".join(left_out))


def _models_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.trail"))


def _files_read(source: Path) -> list[Path]:
    """The files behind a model file or a folder of results."""
    return [*_models_in(source), *(source / name for name in RESULTS)] if source.is_dir() else [source]


def _model_and_results(source: Path) -> tuple[TrajectoryModel | None, Mapping[str, Any]]:
    """The model in a file or a folder, and the results that a folder holds besides."""
    import json

    from kerneltrail.errors import DataError
    from kerneltrail.trajectory.model import load

    if not source.is_dir():
        return load(source), {}
    models = _models_in(source)
    if len(models) > 1:
        names = ", ".join(path.name for path in models)
        raise DataError(f"{source} has several models ({names}); name one of them")
    results: Any = {}
    path = next((source / name for name in RESULTS if (source / name).is_file()), None)
    if path is not None:
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as problem:
            raise DataError(f"{path} cannot be read as results: {problem}") from None
    return (load(models[0]) if models else None), results if isinstance(results, dict) else {}

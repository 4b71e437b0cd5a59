"""`kerneltrail cks`: a kernel for one series or table, found by compositional kernel search."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerneltrail.cli.table_options import Decimal, Delimiter

if TYPE_CHECKING:
    from kerneltrail.data.table import Table
    from kerneltrail.kernels import Array
    from kerneltrail.methods.cks import CKSFit, SearchProgress
    from kerneltrail.progress import Progress


Choose = StrEnum("Choose", ["holdout", "bic", "average"])
"""What decides among the best kernels (`SearchSettings.choose`)."""

JUDGING = "held-out rows"
"""The last stage of a search in which kernels are judged by rows that were held out."""


def cks(
    data: Annotated[Path, typer.Argument(help="Table with a row per observation, CSV or Parquet.")],
    target: Annotated[str, typer.Option("--target", help="Column to be explained.")],
    covariates: Annotated[
        str | None, typer.Option("--covariates", help="Columns to explain it by, with commas; all others by default.")
    ] = None,
    predict: Annotated[
        Path | None, typer.Option("--predict", help="Table of rows to predict, with the covariates' columns.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV for these predictions: mean and sd.", dir_okay=False)
    ] = None,
    tree: Annotated[Path | None, typer.Option("--tree", help="CSV for all candidates.", dir_okay=False)] = None,
    depth: Annotated[int | None, typer.Option("--depth", min=0, help="Grammar steps at most.")] = None,
    beam: Annotated[int, typer.Option("--beam", min=1, help="How many of each level are expanded.")] = 1,
    choose: Annotated[
        Choose,
        typer.Option(
            "--choose", help="What decides in the end: the last rows, held out, or BIC; or the best averaged."
        ),
    ] = Choose.holdout,
    fits: Annotated[
        int | None, typer.Option("--fits", min=1, help="Begin no further fit after this many, on any machine the same.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0, help="Begin no further fit after this long.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that fit candidates.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random starts.")] = 0,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
) -> None:
    """Search sums and products of kernels for one series; show the search, the kernel in words, and predict.

    Rows without a value in any of the columns are left out. Every covariate is a number: give a date as a number of
    years or days.
    """
    from kerneltrail.cli.outputs import check_outputs
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.errors import DataError
    from kerneltrail.progress import show_progress

    if (predict is None) != (out is None):
        raise DataError("--predict says which rows to predict and --out where to write them: give both or neither")
    with show_progress(f"reading {data.name}") as display:
        import numpy as np

        from kerneltrail.data.intake_report import row_count
        from kerneltrail.data.table import read_table
        from kerneltrail.engines import keep_freed_memory
        from kerneltrail.evaluation.tables import csv_text
        from kerneltrail.kernels.phrases import counted
        from kerneltrail.methods.cks import CKS, SearchSettings
        from kerneltrail.store.atomic import write

        changes: dict[str, Any] = {} if depth is None else {"depth": depth}
        settings = SearchSettings.for_series(
            beam=beam, fits=fits, seconds=seconds, workers=workers, seed=seed, choose=choose.value, **changes
        )
        levels = [level_name(level) for level in range(settings.depth + 1)]
        display.plan(*levels, *([] if choose is Choose.bic else [JUDGING]))
        table = read_table(data, delimiter=delimiter, decimal=decimal)
        names = _names(table, target, covariates)
        hint = "; name the columns to explain it by with --covariates" if covariates is None else ""
        X, y = _numbers(table, (*names, target), hint)
        at = None if predict is None else _all_numbers(read_table(predict, delimiter=delimiter, decimal=decimal), names)
        check_outputs({"--out": out, "--tree": tree}, (data, predict))
        keep_freed_memory()
        user = CKS(names, name=data.stem, settings=settings, progress=lambda now: display.show(search_stage(now)))
        user.update(X, y)
    fit = user.found
    assert fit.tree is not None  # there were rows
    if out is not None and at is not None:
        ahead = user.predict(at)
        rows = [
            {**dict(zip(names, row, strict=True)), "mean": mean, "sd": sd}
            for row, mean, sd in zip(at.tolist(), ahead.mean.tolist(), np.sqrt(ahead.total).tolist(), strict=True)
        ]
        write(out, csv_text((*names, "mean", "sd"), rows))
    if tree is not None:
        rows = fit.tree.to_rows()
        write(tree, csv_text(tuple(rows[0]), rows))
    left = f", {row_count(table.rows - len(y))} without a value left out" if len(y) < table.rows else ""
    kernels = counted(len(fit.tree.nodes), "kernel")
    say([f"{data.name}: {row_count(len(y))}{left}; {kernels} in {fit.tree.seconds:.0f} s"])
    if fit.tree.best.held_out is not None:
        decides = "weighs the best when predicting" if choose is Choose.average else "decides"
        say([f"BIC, mean log density of held-out rows, kernel; the density {decides}"])
    say(str(fit.tree).splitlines())
    title(fit.kernel)
    say(f"• {sentence}" for sentence in sentences(fit, target))
    say((f"    {name} = {value:.4g}" for name, value in fit.in_data_units.items()), style="dim")
    for path, what in ((out, "predictions"), (tree, "candidates")):
        if path is not None:
            say([f"{what}: {path}"])


def level_name(level: int) -> str:
    """What a level of the search is called on the display; a search may end before the last."""
    return f"kernels of level {level}"


def search_stage(progress: SearchProgress) -> Progress:
    """The stage that a search is in, candidates done and in all, and the best so far, for the display."""
    from kerneltrail.progress import Progress

    stage = JUDGING if progress.judging else level_name(progress.level)
    best = "" if progress.best is None else f"BIC {progress.best[1]:.1f}  {progress.best[0]}"
    return Progress(stage, progress.done, progress.total, best)


def sentences(fit: CKSFit, target: str) -> list[str]:
    """What a kernel says in words, product by product, the largest first, and the noise last."""
    from kerneltrail.methods.cks.layout import multiplied_out
    from kerneltrail.report.description import describe

    parts = sorted(multiplied_out(fit.in_data_units), key=lambda part: -_size(part, fit))
    words = [describe(part, target=target) for part in parts]
    lines = [
        each[0].text if i == 0 else each[0].text.replace(" will ", " will also ", 1) for i, each in enumerate(words)
    ]
    return [*lines, words[0][-1].text]


def _size(part: Any, fit: CKSFit) -> float:
    """A product's mean prior variance over the rows."""
    import numpy as np

    rows = fit.prepared.scaler.inverse(fit.prepared.rows.X)
    (product,) = part.composition
    values = part.values_array
    total = np.full(len(rows), values[0])
    for atom, slots in zip(product.atoms, part.layout.atom_index[0], strict=True):
        total *= atom.spec.diagonal(rows[:, fit.prepared.rows.column_index(atom.covariate)], values[slots])
    return float(total.mean())


def _names(table: Table, target: str, covariates: str | None) -> tuple[str, ...]:
    from kerneltrail.errors import DataError

    table.column(target)
    if covariates is None:
        names = tuple(name for name in table.names if name != target)
    else:
        names = tuple(name.strip() for name in covariates.split(",") if name.strip())
    if not names or target in names or len(set(names)) < len(names):
        raise DataError(f"{table.source} needs covariates other than the target {target!r}, each once: {names}")
    return names


def _columns(table: Table, names: tuple[str, ...], hint: str) -> Array:
    """Columns of numbers beside each other."""
    import numpy as np

    from kerneltrail.data.columns import numbers

    return np.column_stack([numbers(table, name, hint) for name in names])


def _numbers(table: Table, names: tuple[str, ...], hint: str) -> tuple[Array, Array]:
    """The covariates and the target, without rows where one is missing."""
    import numpy as np

    from kerneltrail.errors import DataError

    columns = _columns(table, names, hint)
    columns = columns[~np.isnan(columns).any(axis=1)]
    if not len(columns):
        raise DataError(f"{table.source} has no row with a value in each of {', '.join(names)}")
    return columns[:, :-1], columns[:, -1]


def _all_numbers(table: Table, names: tuple[str, ...]) -> Array:
    """The covariates of rows to predict, none of them missing."""
    import numpy as np

    from kerneltrail.errors import DataError

    columns = _columns(table, names, "")
    bad = np.argwhere(np.isnan(columns))
    if len(bad):
        raise DataError(f"{names[bad[0][1]]!r} of {table.source} has no value in {table.place(int(bad[0][0]))}")
    return columns

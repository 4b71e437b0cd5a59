"""Shrinkage by itself: a published series, and how often it selects exactly what simulated rows were made of.

    python -m kerneltrail.studies.series.shrinkage series FILE --test 14 --out series.jsonl
    python -m kerneltrail.studies.series.shrinkage recovery --out recovery.jsonl

FILE has columns x, y and a header. Results are appended one line at a time, and what is there already under the same
settings is not run again; the table at the end is of all that is there under these settings.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from kerneltrail.gp import keep_freed_memory, one_blas_thread
from kerneltrail.studies.series.shrinkage_recovery import POOLS, ROWS, Draw, recovery_table, run_draw, settings_of_draws
from kerneltrail.studies.series.shrinkage_series import SeriesResult, run_series, series_learner, series_table

Kept = TypeVar("Kept", SeriesResult, Draw)


def read(path: Path, kind: type[Kept]) -> list[Kept]:
    """Results kept in a file, one a line; lines of other versions, with other fields, are left aside."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [kind(**line) for line in lines if set(line) == {field.name for field in fields(kind)}]


def _keep(path: Path, results: Sequence[SeriesResult | Draw]) -> None:
    """Append results in one piece: those of one fit belong together."""
    with path.open("a") as file:
        file.write("".join(json.dumps(asdict(result)) + "\n" for result in results))


def _series(chosen: argparse.Namespace) -> str:
    table = np.loadtxt(chosen.file, delimiter=",", skiprows=1)
    data = f"{chosen.file.stem}, last {chosen.test}"
    settings = series_learner(table[: -chosen.test], 0)[0].settings

    def kept() -> list[SeriesResult]:
        return [e for e in read(chosen.out, SeriesResult) if (e.data, e.settings) == (data, settings)]

    for seed in sorted(set(range(chosen.seeds)) - {each.seed for each in kept()}):
        _keep(chosen.out, [run_series(data, table, chosen.test, seed)])
    return series_table(kept())


def _recovery(chosen: argparse.Namespace) -> str:
    settings = settings_of_draws()
    had = {each.key for each in read(chosen.out, Draw)}
    for rows, name, active in itertools.product(chosen.rows, POOLS, (2, 0)):
        for seed in range(chosen.draws if active else chosen.noise):
            if (settings, name, rows, seed, bool(active)) not in had:
                _keep(chosen.out, run_draw(name, rows, seed, active=active))
    return recovery_table([each for each in read(chosen.out, Draw) if each.settings == settings])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the output yet, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = parser.add_subparsers(dest="what", required=True)
    series = kinds.add_parser("series", help="a series, its last rows predicted")
    series.add_argument("file", type=Path, help="CSV with a header and columns x, y")
    series.add_argument("--test", type=int, default=14, help="rows at the end to predict")
    series.add_argument("--seeds", type=int, default=5)
    recovery = kinds.add_parser("recovery", help="two of eight components, simulated")
    recovery.add_argument("--draws", type=int, default=40, help="of two components")
    recovery.add_argument("--noise", type=int, default=20, help="draws of noise alone")
    recovery.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    for each in (series, recovery):
        each.add_argument("--out", type=Path, required=True, help="file to which results are appended")
    chosen = parser.parse_args(arguments)
    keep_freed_memory()
    with one_blas_thread():
        print(_series(chosen) if chosen.what == "series" else _recovery(chosen))


if __name__ == "__main__":
    main()

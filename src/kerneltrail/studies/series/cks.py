"""CKS on the thirteen published time series (Lloyd et al. 2014), extrapolating the last tenth, beside published errors.

    python -m kerneltrail.studies.series.cks DIR --published FILE --out results.jsonl

DIR holds ``<series>-train.csv`` and ``<series>-test.csv``, each with columns x, y and no header. FILE is a JSON table
of published errors. Results are appended to the output one line at a time; a series that is there already is not run
again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from kerneltrail.evaluation import mean_log_density, rmse
from kerneltrail.gp import keep_freed_memory
from kerneltrail.methods.cks.method import CKS
from kerneltrail.methods.cks.search_tree import SearchNode
from kerneltrail.methods.cks.settings import Choice, SearchSettings

COLUMNS = {
    "ABCD": "ABCD-accuracy",
    "CKS grammar": "GPSS-old(CKS grammar, partial)",
    "spectral mixture": "SpectralMixture-BIC",
    "SE": "SE",
}
"""Published columns shown, by heading."""

SETTINGS = SearchSettings.for_series()
"""How the series are searched. The guard is not SPEC §10's: a week in daily values counts, and a period has to be seen
twice."""


@dataclass(frozen=True)
class Result:
    """One series.

    Attributes:
        series: its name.
        train, test: rows.
        kernel: what was found.
        rmse: on the test rows, in the target's units.
        log_density: mean log predictive density of the test rows.
        bic: of the kernel, on the standardised target.
        level: at which it was found.
        candidates: kernels tried.
        seconds: for the search.
        cpu: processor seconds of it; more telling than seconds where the machine has other work.
        stopped: why it ended.
        by_depth: RMSE and log density of the best up to level 0, 1, ….
        fits: the kernels fitted to all rows: level, text, BIC, unconstrained hyperparameters, held-out density.
        by_bic: RMSE and log density of the kernel with the smallest BIC, whichever was chosen.
    """

    series: str
    train: int
    test: int
    kernel: str
    rmse: float
    log_density: float
    bic: float
    level: int
    candidates: int
    seconds: float
    cpu: float
    stopped: str
    by_depth: tuple[tuple[float, float], ...] = ()
    fits: tuple[tuple[int, str, float, tuple[float, ...], float | None], ...] = ()
    by_bic: tuple[float, float] | None = None


def run(folder: Path, series: str, settings: SearchSettings = SETTINGS) -> Result:
    """Search the training rows of a series and predict its test rows."""
    train, test = (np.loadtxt(folder / f"{series}-{part}.csv", delimiter=",", ndmin=2) for part in ("train", "test"))
    followed = CKS(("x",), name=series, settings=settings)
    began, used = time.perf_counter(), time.process_time()
    followed.update(train[:, :1], train[:, 1])
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    found, tree = followed.found, followed.found.tree
    assert tree is not None  # there were rows
    said = followed.predict(test[:, :1])

    def errors(node: SearchNode) -> tuple[float, float]:
        assert node.fitted.kernel is not None  # the best of a tree is fitted
        part = type(found)(found.prepared, node.fitted.kernel).predict(test[:, :1], None)
        return rmse(part.mean, test[:, 1]), mean_log_density(part, test[:, 1])

    scores = [errors(tree.upto(depth).best) for depth in range(tree.levels)]
    return Result(
        series, len(train), len(test), found.kernel, rmse(said.mean, test[:, 1]),
        mean_log_density(said, test[:, 1]), tree.best.bic, tree.best.level, len(tree.nodes), seconds, cpu,
        tree.stopped, tuple(scores),
        tuple(
            (node.level, node.expression.text, node.bic, node.fitted.kernel.unconstrained, node.held_out)
            for node in tree.complete
            if node.fitted.kernel is not None
        ),
        errors(tree.best_by_bic),
    )  # fmt: skip


def published_errors(path: Path) -> Mapping[str, Mapping[str, tuple[float | None, float | None]]]:
    """Published (RMSE, mean log density) by series and heading; None where there is none."""
    content = json.loads(path.read_text())["tsdlr_9010_extrapolation"]
    places = {heading: content["columns"].index(name) for heading, name in COLUMNS.items()}
    return {
        series: {
            heading: (content["rmse"][series][place], content["mean_loglik"][series][place])
            for heading, place in places.items()
        }
        for series in content["rmse"]
    }


def markdown(
    results: Sequence[Result], published: Mapping[str, Mapping[str, tuple[float | None, float | None]]]
) -> str:
    """The results beside the published ones and beside BIC's choice from the same search, then ratios of RMSE."""
    lines = [
        "| series | rows | kernel found | seconds (CPU) | ours | ours, by BIC | " + " | ".join(COLUMNS) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(COLUMNS),
    ]
    for each in results:
        cells = [_cell(*published[each.series][heading]) for heading in COLUMNS]
        kernel = each.kernel.replace("[x]", "")
        lines.append(
            f"| {each.series} | {each.train} | `{kernel}` | {each.seconds:.0f} ({each.cpu:.0f}) | "
            f"{_cell(each.rmse, each.log_density)} | {_cell(*(each.by_bic or (None, None)))} | {' | '.join(cells)} |"
        )
    lines += [
        "",
        "| RMSE, ours / theirs | series | median | worst | by BIC: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    for heading in COLUMNS:
        both = [(each, error) for each in results if (error := published[each.series][heading][0]) is not None]
        ratios = [each.rmse / error for each, error in both]
        by_bic = [each.by_bic[0] / error for each, error in both if each.by_bic is not None]
        if ratios:
            lines.append(f"| {heading} | {len(ratios)} | {_middle(ratios)} | {_middle(by_bic)} |")
    return "\n".join(lines)


def _middle(ratios: Sequence[float]) -> str:
    return f"{np.median(ratios):.2f} | {max(ratios):.2f}" if ratios else "– | –"


def _cell(rmse: float | None, log_density: float | None) -> str:
    return "–" if rmse is None or log_density is None else f"{rmse:.4g} ({log_density:.2f})"


def read(path: Path) -> list[Result]:
    """Results kept in a file, one a line."""
    if not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the series that are not in the output yet, smallest first, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where <series>-train.csv and -test.csv are")
    parser.add_argument("--published", type=Path, required=True, help="JSON file of published errors")
    parser.add_argument("--out", type=Path, required=True, help="file to which results are appended")
    parser.add_argument("--depth", type=int, default=SETTINGS.depth)
    parser.add_argument("--beam", type=int, default=SETTINGS.beam)
    parser.add_argument("--choose", choices=get_args(Choice), default=SETTINGS.choose)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--series", nargs="*", help="names, or beginnings of them; all if not given")
    chosen = parser.parse_args(arguments)
    keep_freed_memory()
    published = published_errors(chosen.published)
    settings = replace(SETTINGS, depth=chosen.depth, beam=chosen.beam, choose=chosen.choose, workers=chosen.workers)
    done = {each.series for each in read(chosen.out)}
    size = {name: len((chosen.folder / f"{name}-train.csv").read_text().splitlines()) for name in published}
    for name in sorted(published, key=lambda name: (size[name], name)):
        if name in done or (chosen.series and not name.startswith(tuple(chosen.series))):
            continue
        result = run(chosen.folder, name, settings)
        with chosen.out.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        print(
            f"{name}: {result.kernel}  RMSE {result.rmse:.4g}  {result.seconds:.0f} s ({result.cpu:.0f} CPU)",
            flush=True,
        )
    print(markdown(read(chosen.out), published))


if __name__ == "__main__":
    main()

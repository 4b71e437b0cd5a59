"""CKS on the thirteen published time series (Lloyd et al. 2014), extrapolating the last tenth, beside published errors.

The folder holds ``<series>-train.csv`` and ``<series>-test.csv``, each with columns x, y and no header; a JSON table
holds the published errors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kerneltrail.errors import DataError
from kerneltrail.evaluation import mean_log_density, rmse
from kerneltrail.methods.cks.method import CKS
from kerneltrail.methods.cks.search_tree import SearchNode
from kerneltrail.methods.cks.settings import SearchSettings
from kerneltrail.progress import Progress, Tell
from kerneltrail.studies.series.files import append_results, read_results, read_series

COLUMNS = {
    "ABCD": "ABCD-accuracy",
    "CKS grammar": "GPSS-old(CKS grammar, partial)",
    "spectral mixture": "SpectralMixture-BIC",
    "SE": "SE",
}
"""Published columns shown, by heading."""

SETTINGS = SearchSettings.for_series()
"""How the series are searched. The guard is not that of method (37): a week in daily values counts, and a period has to
be seen twice."""


@dataclass(frozen=True)
class CKSResult:
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


def run_series(folder: Path, series: str, settings: SearchSettings = SETTINGS) -> CKSResult:
    """Search the training rows of a series and predict its test rows."""
    train, test = (read_series(folder / f"{series}-{part}.csv", header=False) for part in ("train", "test"))
    followed = CKS(("x",), name=series, settings=settings)
    began, used = time.perf_counter(), time.process_time()
    followed.update(train[:, :1], train[:, 1])
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    fit, tree = followed.found, followed.found.tree
    assert tree is not None  # there were rows
    prediction = followed.predict(test[:, :1])

    def errors(node: SearchNode) -> tuple[float, float]:
        assert node.fitted.kernel is not None  # the best of a tree is fitted
        part = type(fit)(fit.prepared, node.fitted.kernel).predict(test[:, :1], None)
        return rmse(part.mean, test[:, 1]), mean_log_density(part, test[:, 1])

    scores = [errors(tree.upto(depth).best) for depth in range(tree.levels)]
    return CKSResult(
        series, len(train), len(test), fit.kernel, rmse(prediction.mean, test[:, 1]),
        mean_log_density(prediction, test[:, 1]), tree.best.bic, tree.best.level, len(tree.nodes), seconds, cpu,
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
    try:
        content = json.loads(path.read_text(encoding="utf-8"))["tsdlr_9010_extrapolation"]
        places = {heading: content["columns"].index(name) for heading, name in COLUMNS.items()}
        return {
            series: {
                heading: (content["rmse"][series][index], content["mean_loglik"][series][index])
                for heading, index in places.items()
            }
            for series in content["rmse"]
        }
    except OSError as problem:
        raise DataError(f"{path} cannot be read: {problem.strerror or problem}") from None
    except (ValueError, KeyError, TypeError, IndexError) as problem:
        raise DataError(f"{path} is not a table of published errors: {problem!r}") from None


def markdown(
    results: Sequence[CKSResult], published: Mapping[str, Mapping[str, tuple[float | None, float | None]]]
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


def run_all(
    folder: Path,
    published: Path,
    out: Path,
    settings: SearchSettings = SETTINGS,
    *,
    names: Sequence[str] = (),
    tell: Tell = lambda now: None,
) -> str:
    """Run the series that are not in the output yet, smallest first; returns the table of all that are.

    Args:
        folder: where ``<series>-train.csv`` and ``-test.csv`` are.
        published: JSON file of published errors.
        out: file to which results are appended.
        settings: of the search.
        names: of series, or beginnings of them; all if there are none.
        tell: hears how far it is.
    """
    errors = published_errors(published)
    chosen = [name for name in errors if name.startswith(tuple(names) or "")]
    size = {name: len(read_series(folder / f"{name}-train.csv", header=False)) for name in chosen}
    done = {result.series for result in read_results(out, CKSResult)}
    for number, name in enumerate(sorted(chosen, key=lambda name: (size[name], name))):
        tell(Progress("series", number, len(chosen), name))
        if name not in done:
            append_results(out, [run_series(folder, name, settings)])
    return markdown(read_results(out, CKSResult), errors)

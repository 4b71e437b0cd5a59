"""Shrinkage on a published series: what it predicts of the last rows, run by run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.evaluation import mean_log_density, rmse
from kerneltrail.kernels import Pool
from kerneltrail.methods.cks import PeriodGuard, wide_priors
from kerneltrail.methods.preprocessing import own_preprocessor
from kerneltrail.methods.shrinkage.learner import Shrinkage, ShrinkageFit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeriesResult:
    """One run on a series.

    Attributes:
        data: the series and how many of its rows are predicted.
        settings: of the learner, its seed left out.
        seed: of draws and starts.
        rmse, log_density: of the test rows, in the target's units.
        highest_rmse, highest_log_density: the same, had the highest optimum predicted alone.
        optima: how many predictions are averaged over.
        bound: the evidence lower bound reached.
        selected: the composition.
        seconds, cpu: of the fit.
    """

    data: str
    settings: str
    seed: int
    rmse: float
    log_density: float
    highest_rmse: float
    highest_log_density: float
    optima: int
    bound: float
    selected: str
    seconds: float
    cpu: float


def series_learner(rows: Array, seed: int) -> tuple[Shrinkage, User]:
    """The learner of a series with columns x, y, and the series as a user."""
    preprocessor = own_preprocessor(("x",))
    user = User("series", ("x",), rows[:, :1], rows[:, 1], (len(rows),))
    prepared = preprocessor.prepare(user)
    limits = PeriodGuard(gaps=3.0, spacings=0.0, cycles=2.0).limits(prepared.rows.X, prepared.rows.covariates)
    return Shrinkage.for_series(preprocessor, Pool.paper("x"), wide_priors(limits), seed=seed), user


def run_series(data: str, rows: Array, test: int, seed: int) -> SeriesResult:
    """Fit all but the last rows of a series and predict those; columns are x, y."""
    rest = rows[-test:]
    learner, user = series_learner(rows[:-test], seed)
    began, used = time.perf_counter(), time.process_time()
    fit = learner.fit(user, None)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    alone = replace(fit, parts=((fit.factors, 0.0),))
    scores = [_scores(each, rest) for each in (fit, alone)]
    return SeriesResult(
        data,
        learner.settings,
        seed,
        *scores[0],
        *scores[1],
        len(fit.parts),
        fit.bound,
        fit.composition.text,
        seconds,
        cpu,
    )


def _scores(fit: ShrinkageFit, rows: Array) -> tuple[float, float]:
    """RMSE and mean log density of rows x, y."""
    said = fit.predict(rows[:, :1], None)
    return rmse(said.mean, rows[:, 1]), mean_log_density(said, rows[:, 1])


def series_table(results: Sequence[SeriesResult]) -> str:
    """Every run, then mean and standard deviation over seeds."""
    lines = [
        "| seed | RMSE | log density | optima | highest alone: RMSE | log density | bound | seconds (CPU) | selected |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in sorted(results, key=lambda each: each.seed):
        lines.append(
            f"| {each.seed} | {each.rmse:.1f} | {each.log_density:.2f} | {each.optima} | {each.highest_rmse:.1f} | "
            f"{each.highest_log_density:.2f} | {each.bound:.1f} | {each.seconds:.0f} ({each.cpu:.0f}) | "
            f"`{each.selected.replace('[x]', '')}` |"
        )
    scores = np.array([[e.rmse, e.log_density, e.highest_rmse, e.highest_log_density] for e in results])
    spread = scores.std(axis=0, ddof=1) if len(results) > 1 else np.zeros(4)
    rmse, density, rmse_alone, density_alone = (
        f"{mean:.{digits}f} ± {sd:.{digits}f}"
        for mean, sd, digits in zip(scores.mean(axis=0), spread, (1, 2, 1, 2), strict=True)
    )
    lines.append(f"| mean ± sd | {rmse} | {density} | | {rmse_alone} | {density_alone} | | | |")
    return "\n".join(lines)

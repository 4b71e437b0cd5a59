"""Shrinkage by itself: a published series, and how often it selects exactly what simulated rows were made of."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Cohort, User, simulate
from kerneltrail.errors import DataError
from kerneltrail.evaluation import mean_log_density, rmse
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of, parse
from kerneltrail.methods.cks import PeriodGuard, wide_priors
from kerneltrail.methods.preprocessing import Preprocessor, own_preprocessor
from kerneltrail.methods.shrinkage.learner import SelectionRule, Shrinkage, ShrinkageFit
from kerneltrail.progress import Progress, Tell
from kerneltrail.studies.series.files import append_results, read_results, read_series

Array = NDArray[np.float64]

POOLS = {
    "paper": Pool.paper("x"),
    "apart": Pool.of("LIN[a]", "LIN[b]", "LIN[c]", "SE[d]", "SE[e]", "SE[f]", "PER[g]", "PER[h]"),
}
"""The paper's eight products of one covariate, several of which can stand in for each other; and eight that cannot."""

ROWS = (30, 100, 200)
"""How many rows are simulated."""

WEAK = 0.1
"""A component whose share of the signal's variance is smaller is one that `Shrinkage.share` is meant to leave out."""


@dataclass(frozen=True)
class ShrinkageSeries:
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


def run_series(data: str, rows: Array, test: int, seed: int) -> ShrinkageSeries:
    """Fit all but the last rows of a series and predict those; columns are x, y."""
    rest = rows[-test:]
    learner, user = series_learner(rows[:-test], seed)
    began, used = time.perf_counter(), time.process_time()
    fit = learner.fit(user, None)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    alone = replace(fit, parts=((fit.factors, 0.0),))
    scores = [_scores(each, rest) for each in (fit, alone)]
    return ShrinkageSeries(
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
    prediction = fit.predict(rows[:, :1], None)
    return rmse(prediction.mean, rows[:, 1]), mean_log_density(prediction, rows[:, 1])


def series_table(results: Sequence[ShrinkageSeries]) -> str:
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


@dataclass(frozen=True)
class RecoveryDraw:
    """One simulated user, as one judge sees it.

    Attributes:
        settings: of the learner, its seed left out.
        judge: what decided.
        pool: name of the pool.
        rows: number of rows.
        seed: of the simulation.
        truth: what the rows were made of; empty for noise alone.
        smallest: the smaller true component's expected share of the signal's variance at these rows; 1 for noise alone.
        selected: what was selected.
        cpu: processor seconds of the fit, and of the judge.
    """

    settings: str
    judge: str
    pool: str
    rows: int
    seed: int
    truth: str
    smallest: float
    selected: str
    cpu: float

    @property
    def true_composition(self) -> Composition:
        """The true composition."""
        return parse(self.truth)

    @property
    def composition(self) -> Composition:
        """The selected one."""
        return parse(self.selected)

    @property
    def key(self) -> tuple[str, str, int, int, bool]:
        """What tells it from other draws."""
        return (self.settings, self.pool, self.rows, self.seed, bool(self.truth))


def settings_of_draws() -> str:
    """The settings of the learner that draws are given to."""
    return _learner(Preprocessor.of(Cohort.from_users([_nobody()], scaling="none")), POOLS["paper"], 0).settings


def _nobody() -> User:
    return User("nobody", ("x",), [[0.0]], [0.0], (1,))


def _learner(preprocessor: Preprocessor, pool: Pool, seed: int) -> Shrinkage:
    return Shrinkage(preprocessor, pool, Priors.synthetic(), pairs=4, seed=seed)


def run_draw(name: str, rows: int, seed: int, *, active: int = 2) -> tuple[RecoveryDraw, ...]:
    """Draw `active` products of a pool and all hyperparameters from the paper's priors, simulate, fit and select.

    Covariates are uniform on [-4, 4] (method §9.1). There is one fit, from which each judge selects.
    """
    pool, priors = POOLS[name], Priors.synthetic()
    rng = np.random.default_rng([seed, rows, active])
    X = rng.uniform(-4.0, 4.0, (rows, len(pool.covariates)))
    truth = Composition(tuple(pool.products[i] for i in rng.permutation(len(pool))[:active]))
    theta = Hyperparameters(truth, tuple(priors.sample(truth, 1, rng)[0]))
    user = simulate.user(truth, theta, X, rng, covariates=pool.covariates)
    learner = _learner(Preprocessor.of(Cohort.from_users([user], scaling="none")), pool, seed)
    used = time.process_time()
    fit = learner.fit(user, None)
    fitted = time.process_time() - used
    weak, draws = smallest_share(theta, user), []
    for judge in get_args(SelectionRule):
        used = time.process_time()
        selected = replace(fit, learner=replace(learner, judge=judge)).composition
        cpu = fitted + time.process_time() - used
        draws.append(RecoveryDraw(learner.settings, judge, name, rows, seed, truth.text, weak, selected.text, cpu))
    return tuple(draws)


def smallest_share(theta: Hyperparameters, user: User) -> float:
    """The smallest component's share of the signal's expected variance over the rows, tr(HK)/n with H = I - 11'/n."""
    layout, values, sizes = layout_of(theta.composition), theta.values_array, []
    for p, product in enumerate(theta.composition):
        total = np.full((user.rows, user.rows), values[layout.amplitude_index[p]])
        for atom, slots in zip(product.atoms, layout.atom_index[p], strict=True):
            column = user.X[:, user.column_index(atom.covariate)]
            total *= atom.spec.covariance(column, column, values[slots])
        sizes.append(float(np.trace(total) - total.mean() * user.rows) / user.rows)
    return min(sizes) / sum(sizes) if sizes else 1.0


def recovery_table(draws: Sequence[RecoveryDraw]) -> str:
    """How often exactly the true components are selected, by pool, number of rows and judge."""
    lines = [
        "| pool | rows | judge | draws | exactly | both among them | nothing false | selected (mean) | "
        "exactly, no component weak | noise alone: none selected | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows, judge in itertools.product(POOLS, ROWS, get_args(SelectionRule)):
        group = [each for each in draws if (each.pool, each.rows, each.judge) == (name, rows, judge)]
        signal, noise = [e for e in group if e.truth], [e for e in group if not e.truth]
        if not signal:
            continue
        strong = [each for each in signal if each.smallest >= WEAK]
        cells = [
            _share(sum(e.composition == e.true_composition for e in signal), len(signal)),
            _share(sum(set(e.composition) >= set(e.true_composition) for e in signal), len(signal)),
            _share(sum(set(e.composition) <= set(e.true_composition) for e in signal), len(signal)),
            f"{np.mean([len(e.composition) for e in signal]):.1f}",
            _share(sum(e.composition == e.true_composition for e in strong), len(strong)) + f" of {len(strong)}",
            _share(sum(not e.composition for e in noise), len(noise)) + (f" of {len(noise)}" if noise else ""),
            f"{np.mean([e.cpu for e in group]):.1f}",
        ]
        lines.append(f"| {name} | {rows} | {judge} | {len(signal)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(count: int, total: int) -> str:
    return f"{100.0 * count / total:.0f} %" if total else "–"


def series_study(file: Path, test: int, seeds: int, out: Path, tell: Tell = lambda now: None) -> str:
    """Run the seeds of a series that are not in the output yet; returns the table of all under these settings.

    Args:
        file: CSV with a header and columns x, y.
        test: rows at the end to predict.
        seeds: how many.
        out: file to which results are appended.
        tell: hears how far it is.
    """
    rows = read_series(file, header=True)
    if not 0 < test < len(rows):
        raise DataError(f"{file} has {len(rows)} rows, of which {test} cannot be predicted from the others")
    data = f"{file.stem}, last {test}"
    settings = series_learner(rows[:-test], 0)[0].settings

    def finished() -> list[ShrinkageSeries]:
        return [each for each in read_results(out, ShrinkageSeries) if (each.data, each.settings) == (data, settings)]

    known = {each.seed for each in finished()}
    for seed in range(seeds):
        tell(Progress("seeds", seed, seeds, f"seed {seed}"))
        if seed not in known:
            append_results(out, [run_series(data, rows, test, seed)])
    return series_table(finished())


def recovery_study(draws: int, noise: int, rows: Sequence[int], out: Path, tell: Tell = lambda now: None) -> str:
    """Run the draws that are not in the output yet; returns the table of all under these settings.

    Args:
        draws: of two components.
        noise: of noise alone.
        rows: numbers of rows.
        out: file to which results are appended.
        tell: hears how far it is.
    """
    settings = settings_of_draws()
    known = {each.key for each in read_results(out, RecoveryDraw)}
    wanted = [
        (name, count, seed, active)
        for count, name, active in itertools.product(rows, POOLS, (2, 0))
        for seed in range(draws if active else noise)
    ]
    for done, (name, count, seed, active) in enumerate(wanted):
        tell(Progress("draws", done, len(wanted), f"{name}, {count} rows"))
        if (settings, name, count, seed, bool(active)) not in known:
            append_results(out, run_draw(name, count, seed, active=active))
    return recovery_table([each for each in read_results(out, RecoveryDraw) if each.settings == settings])

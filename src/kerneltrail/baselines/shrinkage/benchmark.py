"""Shrinkage by itself: a published series, and how often it selects exactly what simulated rows were made of.

    python -m kerneltrail.baselines.shrinkage.benchmark series FILE --test 14 --out series.jsonl
    python -m kerneltrail.baselines.shrinkage.benchmark recovery --out recovery.jsonl

FILE has columns x, y and a header. Results are appended one line at a time, and what is there already is not run again;
the table at the end is of all that is there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.baselines.cks import Guard, wide_priors
from kerneltrail.baselines.frame import Frame, own_frame
from kerneltrail.baselines.shrinkage.learner import Shrinkage
from kerneltrail.data import Cohort, User, simulate_user
from kerneltrail.gp import keep_freed_memory, one_blas_thread
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of, parse

Array = NDArray[np.float64]
Kept = TypeVar("Kept", "SeriesResult", "Draw")

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
class SeriesResult:
    """One run on a series.

    Attributes:
        seed: of draws and starts.
        rmse, log_density: of the test rows, in the target's units.
        bound: the evidence lower bound reached.
        selected: the composition.
        seconds, cpu: of the fit.
    """

    seed: int
    rmse: float
    log_density: float
    bound: float
    selected: str
    seconds: float
    cpu: float


def run_series(rows: Array, test: int, seed: int, *, greedy: int = 4) -> SeriesResult:
    """Fit all but the last rows of a series and predict those; columns are x, y."""
    train, rest = rows[:-test], rows[-test:]
    frame = own_frame(("x",))
    user = User("series", ("x",), train[:, :1], train[:, 1], (len(train),))
    seen = frame.see(user)
    limits = Guard(gaps=3.0, spacings=0.0, cycles=2.0).limits(seen.rows.X, seen.rows.covariates)
    learner = Shrinkage(frame, POOLS["paper"], wide_priors(limits), greedy=greedy, seed=seed)
    began, used = time.perf_counter(), time.process_time()
    fit = learner.fit(user, None)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    said = fit.predict(rest[:, :1], None)
    rmse = float(np.sqrt(np.mean((said.mean - rest[:, 1]) ** 2)))
    density = float(said.log_density(rest[:, 1]).mean())
    return SeriesResult(seed, rmse, density, fit.bound, fit.composition.text, seconds, cpu)


@dataclass(frozen=True)
class Draw:
    """One simulated user.

    Attributes:
        pool: name of the pool.
        rows: number of rows.
        seed: of the simulation.
        truth: what the rows were made of; empty for noise alone.
        smallest: the smaller true component's expected share of the signal's variance at these rows; 1 for noise alone.
        selected: what was selected.
        cpu: processor seconds of the fit.
    """

    pool: str
    rows: int
    seed: int
    truth: str
    smallest: float
    selected: str
    cpu: float

    @property
    def wanted(self) -> Composition:
        """The true composition."""
        return parse(self.truth)

    @property
    def found(self) -> Composition:
        """The selected one."""
        return parse(self.selected)


def run_draw(name: str, rows: int, seed: int, *, active: int = 2) -> Draw:
    """Draw `active` products of a pool and all hyperparameters from the paper's priors, simulate and select.

    Covariates are uniform on [-4, 4] (SPEC §9).
    """
    pool, priors = POOLS[name], Priors.synthetic()
    rng = np.random.default_rng([seed, rows, active])
    X = rng.uniform(-4.0, 4.0, (rows, len(pool.covariates)))
    truth = Composition(tuple(pool.products[i] for i in rng.permutation(len(pool))[:active]))
    theta = Hyperparameters(truth, tuple(priors.sample(truth, 1, rng)[0]))
    user = simulate_user(truth, theta, X, rng, covariates=pool.covariates)
    learner = Shrinkage(Frame.of(Cohort.from_users([user], scaling="none")), pool, priors, pairs=4, seed=seed)
    used = time.process_time()
    found = learner.fit(user, None).composition
    cpu = time.process_time() - used
    return Draw(name, rows, seed, truth.text, smallest_share(theta, user), found.text, cpu)


def smallest_share(theta: Hyperparameters, user: User) -> float:
    """The smallest component's share of the signal's expected variance over the rows, tr(HK)/n with H = I - 11'/n."""
    layout, values, sizes = layout_of(theta.composition), theta.values_array, []
    for p, product in enumerate(theta.composition):
        total = np.full((user.rows, user.rows), values[layout.amplitude_index[p]])
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            column = user.X[:, user.column_index(atom.covariate)]
            total *= atom.spec.covariance(column, column, values[place])
        sizes.append(float(np.trace(total) - total.mean() * user.rows) / user.rows)
    return min(sizes) / sum(sizes) if sizes else 1.0


def series_table(results: Sequence[SeriesResult]) -> str:
    """Every run, then mean and standard deviation over seeds."""
    lines = ["| seed | RMSE | log density | bound | seconds (CPU) | selected |", "|---|---|---|---|---|---|"]
    for each in sorted(results, key=lambda each: each.seed):
        lines.append(
            f"| {each.seed} | {each.rmse:.1f} | {each.log_density:.2f} | {each.bound:.1f} | "
            f"{each.seconds:.0f} ({each.cpu:.0f}) | `{each.selected.replace('[x]', '')}` |"
        )
    errors, densities = np.array([[each.rmse, each.log_density] for each in results]).T
    spread = (errors.std(ddof=1), densities.std(ddof=1)) if len(results) > 1 else (0.0, 0.0)
    lines.append(
        f"| mean ± sd | {errors.mean():.1f} ± {spread[0]:.1f} | {densities.mean():.2f} ± {spread[1]:.2f} | | | |"
    )
    return "\n".join(lines)


def recovery_table(draws: Sequence[Draw]) -> str:
    """How often exactly the true components are selected, by pool and number of rows."""
    lines = [
        "| pool | rows | draws | exactly | both among them | nothing false | selected (mean) | "
        "exactly, no component weak | noise alone: none selected | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in itertools.product(POOLS, ROWS):
        own = [each for each in draws if (each.pool, each.rows) == (name, rows)]
        signal, noise = [e for e in own if e.truth], [e for e in own if not e.truth]
        if not signal:
            continue
        strong = [each for each in signal if each.smallest >= WEAK]
        cells = [
            _share(sum(e.found == e.wanted for e in signal), len(signal)),
            _share(sum(set(e.found) >= set(e.wanted) for e in signal), len(signal)),
            _share(sum(set(e.found) <= set(e.wanted) for e in signal), len(signal)),
            f"{np.mean([len(e.found) for e in signal]):.1f}",
            _share(sum(e.found == e.wanted for e in strong), len(strong)) + f" of {len(strong)}",
            _share(sum(not e.found for e in noise), len(noise)),
            f"{np.mean([e.cpu for e in own]):.1f}",
        ]
        lines.append(f"| {name} | {rows} | {len(signal)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(count: int, total: int) -> str:
    return f"{100.0 * count / total:.0f} %" if total else "–"


def read(path: Path, kind: type[Kept]) -> list[Kept]:
    """Results kept in a file, one a line."""
    if not path.exists():
        return []
    return [kind(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def _keep(path: Path, result: SeriesResult | Draw) -> None:
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the output yet, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = parser.add_subparsers(dest="what", required=True)
    series = kinds.add_parser("series", help="a series, its last rows predicted")
    series.add_argument("file", type=Path, help="CSV with a header and columns x, y")
    series.add_argument("--test", type=int, default=14, help="rows at the end to predict")
    series.add_argument("--seeds", type=int, default=5)
    recovery = kinds.add_parser("recovery", help="two of eight components, simulated")
    recovery.add_argument("--draws", type=int, default=40)
    recovery.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    for each in (series, recovery):
        each.add_argument("--out", type=Path, required=True, help="file to which results are appended")
    chosen = parser.parse_args(arguments)
    keep_freed_memory()
    with one_blas_thread():
        if chosen.what == "series":
            table = np.loadtxt(chosen.file, delimiter=",", skiprows=1)
            done = {each.seed for each in read(chosen.out, SeriesResult)}
            for seed in sorted(set(range(chosen.seeds)) - done):
                _keep(chosen.out, run_series(table, chosen.test, seed))
            print(series_table(read(chosen.out, SeriesResult)))
            return
        had = {(each.pool, each.rows, each.seed, bool(each.truth)) for each in read(chosen.out, Draw)}
        for rows, name, active in itertools.product(chosen.rows, POOLS, (2, 0)):
            for seed in range(chosen.draws):
                if (name, rows, seed, bool(active)) not in had:
                    _keep(chosen.out, run_draw(name, rows, seed, active=active))
        print(recovery_table(read(chosen.out, Draw)))


if __name__ == "__main__":
    main()

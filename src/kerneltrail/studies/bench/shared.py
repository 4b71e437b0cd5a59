"""What users share, where it is known: do 90 % intervals of spread, group and degrees of freedom hold the truth?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import simulate
from kerneltrail.data.simulate import MixedSimulation, MixedTruth
from kerneltrail.gp.prediction import freedom_of
from kerneltrail.gp.shared_curve import TwoLevels, by_two_levels
from kerneltrail.gp.two_level import TwoLevelModel
from kerneltrail.gp.two_level_search import factor_interval
from kerneltrail.kernels import Array, Pool
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel

CASES = {
    "Normal noise": MixedTruth(noise_spread=0.4),
    "heavy tails": MixedTruth(df=4.0),
}
"""Random intercepts and slopes; the noise differs between users, or has a Student-t's tails."""

NOISE_ALONE = Pool.of("LIN[x1]", probability=1e-250).with_empty(True)
"""So that the model is the true one: a linear mixed model."""

Found = tuple[float, float, float]
"""An estimate, and its 90 % interval."""


@dataclass(frozen=True)
class SharedBenchmark(Benchmark):
    """Simulated cohorts of pilot users, each learnt from with the kernel `noise alone`, which is the truth.

    Variances between users are of the level and of the slopes in which users differ, in the target's units. The group
    is judged by new users: how often their true noise lies in its 90 % interval.

    Attributes:
        cohorts: simulated for each case.
        pilots, new: users of each.
        batches: rows of each batch.
    """

    cohorts: int = 200
    pilots: int = 15
    new: int = 5
    batches: tuple[int, ...] = (20, 20, 20, 20)

    name = "shared"
    title = "What users share, learnt from simulated pilot users: how often 90 % intervals hold the truth"
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "what": text("method"), "truth": number("truth", ".3g"),
        "median estimate": number("estimate", ".3g"), "in 90 %": number("covered", ".0%"),
        "intervals": number("samples"),
    }  # fmt: skip
    sections = ("case",)

    @classmethod
    def quick(cls) -> Self:
        """Some seconds' worth."""
        return cls(cohorts=2, pilots=6, new=2, batches=(15, 15))

    @property
    def steps(self) -> int:
        """Cohorts of all cases."""
        return self.cohorts * len(CASES)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each case and quantity."""
        for case, truth in CASES.items():
            found: dict[str, list[tuple[float, Found]]] = {}
            began = time.process_time()
            for number_of in range(self.cohorts):
                tick(f"{case}, cohort {number_of}")
                rng = np.random.default_rng([seed, number_of])
                made = simulate.mixed(self.pilots, self.new, rng, truth=truth, batches=self.batches)
                for what, true, each in recovered(made):
                    found.setdefault(what, []).append((true, each))
            seconds = (time.process_time() - began) / self.cohorts
            for what, pairs in found.items():
                yield self.row(
                    case,
                    sum(self.batches),
                    what,
                    seconds,
                    batches=len(self.batches),
                    samples=len(pairs),
                    truth=float(np.median([true for true, _ in pairs])),
                    estimate=float(np.median([each[0] for _, each in pairs])),
                    covered=float(np.mean([low <= true <= high for true, (_, low, high) in pairs])),
                )


def recovered(made: MixedSimulation) -> Iterator[tuple[str, float, Found]]:
    """What was learnt of one cohort: its name, the truth, and what was found."""
    truth = made.truth
    model = fit(made.train, pool=NOISE_ALONE, evidence="laplace", largest=1, sweeps=16, chains=2, check=8, workers=1)
    unit = float(model.scaler.inverse_variance(np.ones(1))[0])
    yield from _spread(made, model, unit)
    group = model.nodes[0].group
    noise, low, high = (unit * float(np.exp(theta[-1])) for theta in (group.mean, *group.interval(0.9, model.priors)))
    for user in made.test.raw:
        yield "noise of a new user", made.noises[user.name], (noise, low, high)
    assert model.tails_interval is not None  # its tails are not Normal
    # No tails at all are an infinite number of degrees of freedom.
    freedoms = [float(freedom_of(each)) if each > 0.0 else np.inf for each in (model.tails, *model.tails_interval)]
    yield "degrees of freedom", truth.df, (freedoms[0], freedoms[2], freedoms[1])


def _spread(made: MixedSimulation, model: TrajectoryModel, unit: float) -> Iterator[tuple[str, float, Found]]:
    """Variances between users of the level and the slopes, in the target's units for a unit of the covariate.

    They are learnt as the model's are, from pilot users as it reads them, with outcomes drawn in where tails are heavy.
    """
    assert model.mean is not None  # the target is standardised
    users = []
    for user in made.train.raw:
        followed = model.new_user(user.name)
        followed.update(user.X, user.y)
        kept = followed.state.kept
        assert kept is not None  # there are few rows
        users.append(kept.with_y(kept.y + followed.state.shared(model, kept.X, None)))
    two = by_two_levels(model.mean, users, np.arange(len(users)))
    own, d = _between(two), len(two.units.scale)
    reach = np.concatenate([user.X for user in made.train.raw]).std(axis=0)
    for j, true in enumerate(made.truth.between):
        if true == 0.0:
            continue
        what = "variance of levels" if j == 0 else f"variance of slopes along x{j}"
        curves = range(1 + d, 1 + 2 * d) if j == 0 else [d + j]
        estimate = unit * float(own[j, j]) / (1.0 if j == 0 else float(reach[j - 1]) ** 2)
        low, high = factor_interval(two.rows, two.learnt, [j, *curves])
        yield what, true, (estimate, low * estimate, high * estimate)


def _between(two: TwoLevels) -> Array:
    """Covariance between users of level and slopes, per standard deviation, of lines and curves together.

    A user's level is that of the constant and of all curves: which of them has it, few rows do not say.
    """
    model, designs, _ = TwoLevelModel.eliminated(two.rows, two.learnt.levels, two.learnt.deviations)
    features, lines = np.concatenate(designs), 1 + len(two.units.scale)
    straight = np.linalg.lstsq(features[:, :lines], features, rcond=None)[0]
    between = two.learnt.levels.user[model.owner(model.grids)]
    return np.asarray(two.units.target_scale**2 * (straight * between) @ straight.T)

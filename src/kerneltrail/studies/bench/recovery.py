"""Presets side by side where the truth is known: how many new users are followed to their true kernel, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from kerneltrail.data import simulate
from kerneltrail.data.simulate import Simulation
from kerneltrail.errors import NumericalError
from kerneltrail.evaluation import Evaluation, Interval, compare_presets
from kerneltrail.evaluation.recovery import of_batch, recovered, right_by_run
from kerneltrail.kernels import Pool, Priors, log_normal, normal
from kerneltrail.studies.bench.rows import Row, row
from kerneltrail.trajectory.settings import Settings

SETS: Mapping[str, Callable[..., Simulation]] = {
    "paper": simulate.paper,
    "distinct": simulate.distinct,
    "similar": simulate.similar,
    "complex": simulate.complex,
}
"""SPEC §9's simulations."""


def wide_priors() -> Priors:
    """Priors for covariates in 0…20 whose scale is not known beforehand, as in the authors' later sets.

    The paper's synthetic priors put a location within ±0.6 of 0 and a lengthscale mostly below 4, while those sets have
    locations near 5 and lengthscales up to 10. These only say: a location within the range of x, everything else of
    order 1 to 10.
    """
    return (
        Priors.synthetic()
        .override("location", None, normal(10.0, variance=25.0))
        .override("lengthscale", None, log_normal(1.0, variance=1.0))
        .override("amplitude", None, log_normal(1.5, variance=1.0))
        .override("noise", None, log_normal(-1.0, variance=1.0))
    )


def presets() -> dict[str, Settings]:
    """What is compared; the first is what the others are subtracted from."""
    return {
        "default": Settings(),
        "published": Settings.published(),
        "default, memory all": Settings(memory="all"),
        "default, greedy": Settings(selection="greedy"),
    }


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        cases: (set, priors, number of seeds), priors being ``synthetic`` or ``wide``.
        train, test: numbers of users; each set's own where None.
        presets: settings by name.
    """

    cases: tuple[tuple[str, str, int], ...] = (
        ("paper", "synthetic", 5),
        *((name, priors, 2) for priors in ("synthetic", "wide") for name in ("distinct", "similar", "complex")),
    )
    train: int | None = None
    test: int | None = None
    presets: Mapping[str, Settings] = field(default_factory=presets)

    @classmethod
    def quick(cls) -> Plan:
        """Half a minute's worth."""
        quick = {"default": Settings(sweeps=200, largest=2), "published": Settings.published(sweeps=20, largest=2)}
        return cls((("distinct", "wide", 1),), 2, 4, quick)

    @property
    def steps(self) -> int:
        """How many presets times seeds there are."""
        return sum(seeds for _, _, seeds in self.cases) * len(self.presets)


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """A row per set, preset and batch."""
    known = {"synthetic": Priors.synthetic(), "wide": wide_priors()}
    sizes = {name: size for name, size in (("train", plan.train), ("test", plan.test)) if size is not None}
    for name, priors, seeds in plan.cases:
        evaluation = compare_presets(
            partial(_simulate, name, sizes),
            plan.presets,
            range(seed, seed + seeds),
            pool=Pool.paper(),
            priors=known[priors],
            tick=lambda said, name=name: tick(f"{name}: {said}"),  # type: ignore[misc]
        )
        if evaluation.failures:
            raise NumericalError(str(evaluation.failures[0]))
        yield from rows_of(evaluation, name, priors)


def _simulate(name: str, sizes: Mapping[str, int], seed: int) -> Simulation:
    return SETS[name](seed=seed, **sizes)


MEASURES = ("right", "log_density", "rmse", "products", "hyperparameters", "brier", "changed")
"""What is shown of every batch, and compared in pairs."""


def rows_of(evaluation: Evaluation, case: str, priors: str) -> Iterator[Row]:
    """An evaluation of presets as rows, one for each preset and batch."""
    first = evaluation.methods[0]
    averages, differences = evaluation.summary(), evaluation.paired(first)
    for preset in evaluation.methods:
        shares = list(right_by_run(evaluation, preset).values())
        seconds = sum(run["models"][preset]["seconds"] for run in evaluation.about["runs"])
        last = evaluation.times[-1]
        for t in evaluation.times[1:]:
            means = of_batch((each for each in averages if each.method == preset), t)
            against = of_batch((each for each in differences if each.second == preset), t)
            users = means["right"].users
            none = Interval(0.0, 0.0, 0.0, means["right"].level, users)  # with the first batch nothing changes
            yield row(
                "recovery",
                case,
                evaluation.at(preset, t)[0].rows,
                preset,
                seconds / len(shares),
                batches=t,
                samples=users,
                priors=priors,
                **{name: means[name].mean if name in means else 0.0 for name in MEASURES},
                recovered=recovered(evaluation, preset),
                right_by_seed=shares if t == last else None,
                default_minus_this={}
                if preset == first
                else {name: (against[name].interval if name in against else none).to_json() for name in MEASURES},
            )

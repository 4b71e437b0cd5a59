"""Presets side by side where the truth is known: how many new users are followed to their true kernel, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kerneltrail.data import simulate
from kerneltrail.data.simulate import Simulation
from kerneltrail.evaluation import Comparison, compare_presets
from kerneltrail.evaluation.recovery import MEASURES
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
        comparison = compare_presets(
            partial(_simulate, name, sizes),
            plan.presets,
            range(seed, seed + seeds),
            pool=Pool.paper(),
            priors=known[priors],
            tick=lambda said, name=name: tick(f"{name}: {said}"),  # type: ignore[misc]
        )
        yield from rows_of(comparison, name, priors)


def _simulate(name: str, sizes: Mapping[str, int], seed: int) -> Simulation:
    return SETS[name](seed=seed, **sizes)


def rows_of(comparison: Comparison, case: str, priors: str) -> Iterator[Row]:
    """A comparison as rows."""
    first = comparison.presets[0]
    for preset in comparison.presets:
        found = comparison.summary(preset)
        measures = (*MEASURES, "changed")
        differences = {m: comparison.difference(m, first, preset) for m in measures} if preset != first else {}
        seconds = sum(each.seconds for each in comparison.learnt if each.preset == preset)
        for t, rows in enumerate(found.rows):
            own: dict[str, Any] = {name: getattr(found, name)[t] for name in measures}
            yield row(
                "recovery",
                case,
                rows,
                preset,
                seconds / len(found.right_by_seed),
                batches=t + 1,
                samples=found.users,
                priors=priors,
                **own,
                recovered=found.recovered,
                right_by_seed=list(found.right_by_seed) if rows == found.rows[-1] else None,
                default_minus_this={name: differences[name][t].to_json() for name in differences},
            )

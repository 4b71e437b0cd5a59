"""Presets side by side where the truth is known: how many new users are followed to their true kernel, and how soon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

from kerneltrail.errors import NumericalError
from kerneltrail.evaluation import Evaluation, Interval
from kerneltrail.kernels import Pool, Priors
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.studies.preset_comparison import compare_presets, of_batch, recovered, right_by_run
from kerneltrail.studies.sets import SETS, wide_priors
from kerneltrail.trajectory.settings import Settings

MEASURES = ("right", "log_density", "rmse", "products", "hyperparameters", "brier", "changed")
"""What is shown of every batch, and compared in pairs."""


def presets() -> dict[str, Settings]:
    """What is compared; the first is what the others are subtracted from."""
    return {
        "default": Settings(),
        "published": Settings.published(),
        "default, memory all": Settings(memory="all"),
        "default, greedy": Settings(selection="greedy"),
    }


@dataclass(frozen=True)
class RecoveryBenchmark(Benchmark):
    """Presets side by side.

    Attributes:
        cases: (set, priors, number of seeds), priors being ``synthetic`` or ``wide``.
        train, test: numbers of users; each set's own where None.
        presets: settings by name.
        engine: what runs the jobs, as `fit` takes it; if None, fits run on all cores and users are followed one by one.
    """

    cases: tuple[tuple[str, str, int], ...] = (
        ("paper", "synthetic", 5),
        *((name, priors, 2) for priors in ("synthetic", "wide") for name in ("distinct", "similar", "complex")),
    )
    train: int | None = None
    test: int | None = None
    presets: Mapping[str, Settings] = field(default_factory=presets)
    engine: Any = None

    name = "recovery"
    title = "New users followed to their true kernel; log density and error of each batch before it is seen"
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "priors": text("priors"), "method": text("method"), "n": number("n"),
        "right": number("right", ".0%"), "log density": number("log_density", ".2f"), "rmse": number("rmse", ".2f"),
        "products": number("products", ".2f"), "changed": number("changed", ".2f"),
    }  # fmt: skip
    sections = ("case", "priors", "method")

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth."""
        quick = {"default": Settings(sweeps=200, largest=2), "published": Settings.published(sweeps=20, largest=2)}
        return cls((("distinct", "wide", 1),), 2, 4, quick)

    @property
    def steps(self) -> int:
        """How many presets times seeds there are."""
        return sum(seeds for _, _, seeds in self.cases) * len(self.presets)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row per set, preset and batch."""
        known = {"synthetic": Priors.synthetic(), "wide": wide_priors()}
        sizes = {name: size for name, size in (("train", self.train), ("test", self.test)) if size is not None}
        for name, priors, seeds in self.cases:
            evaluation = compare_presets(
                partial(SETS[name].simulate, **sizes),
                self.presets,
                range(seed, seed + seeds),
                pool=Pool.paper(),
                priors=known[priors],
                engine=self.engine,
                tick=lambda message, name=name: tick(f"{name}: {message}"),  # type: ignore[misc]
            )
            if evaluation.failures:
                raise NumericalError(str(evaluation.failures[0]))
            yield from self.rows_of(evaluation, name, priors)

    def rows_of(self, evaluation: Evaluation, case: str, priors: str) -> Iterator[Row]:
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
                yield self.row(
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

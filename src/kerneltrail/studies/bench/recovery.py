"""Presets side by side where the truth is known: how many new users are followed to their true kernel, and how soon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

from kerneltrail.evaluation import Comparison, compare_presets
from kerneltrail.evaluation.recovery import MEASURES
from kerneltrail.kernels import Pool, Priors
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.studies.sets import SETS, wide_priors
from kerneltrail.trajectory.settings import Settings


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
    """

    cases: tuple[tuple[str, str, int], ...] = (
        ("paper", "synthetic", 5),
        *((name, priors, 2) for priors in ("synthetic", "wide") for name in ("distinct", "similar", "complex")),
    )
    train: int | None = None
    test: int | None = None
    presets: Mapping[str, Settings] = field(default_factory=presets)

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
            comparison = compare_presets(
                partial(SETS[name].simulate, **sizes),
                self.presets,
                range(seed, seed + seeds),
                pool=Pool.paper(),
                priors=known[priors],
                tick=lambda said, name=name: tick(f"{name}: {said}"),  # type: ignore[misc]
            )
            yield from self.rows_of(comparison, name, priors)

    def rows_of(self, comparison: Comparison, case: str, priors: str) -> Iterator[Row]:
        """A comparison as rows."""
        first = comparison.presets[0]
        for preset in comparison.presets:
            summary = comparison.summary(preset)
            measures = (*MEASURES, "changed")
            differences = {m: comparison.difference(m, first, preset) for m in measures} if preset != first else {}
            seconds = sum(each.seconds for each in comparison.learnt if each.preset == preset)
            for t, rows in enumerate(summary.rows):
                averages: dict[str, Any] = {name: getattr(summary, name)[t] for name in measures}
                yield self.row(
                    case,
                    rows,
                    preset,
                    seconds / len(summary.right_by_seed),
                    batches=t + 1,
                    samples=summary.users,
                    priors=priors,
                    **averages,
                    recovered=summary.recovered,
                    right_by_seed=list(summary.right_by_seed) if rows == summary.rows[-1] else None,
                    default_minus_this={name: differences[name][t].to_json() for name in differences},
                )

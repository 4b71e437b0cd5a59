"""The default's settings one at a time: what each of them alone adds to predictions of new users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from kerneltrail.evaluation import Spec
from kerneltrail.gp import Reward
from kerneltrail.studies.bench.between_sets import SIMULATED, Split
from kerneltrail.studies.bench.over_splits import OverSplits
from kerneltrail.trajectory.settings import Settings

NONE = Settings(
    evidence="laplace", mean="population", sharing="separate", walk="once", tails="normal", shape="none",
    advancing="kept",
)  # fmt: skip
"""Users vary around lines that all share; what they share is estimated from each one's own fit; noise is Normal."""

STEPS: Mapping[str, Settings] = {
    "none": NONE,
    "curve": replace(NONE, mean="smooth"),
    "joint": replace(NONE, sharing="joint"),
    "curve, joint": replace(NONE, mean="smooth", sharing="joint"),
    "tails": replace(NONE, tails="automatic"),
    "shape": replace(NONE, shape="automatic"),
    "sampled": replace(NONE, evidence="sampled"),
    "averaged": replace(NONE, structure="averaged"),
    "constant": replace(NONE, paths="constant"),
    "default": Settings(),
}
"""Settings by the name of what they change of `NONE`; ``curve, joint`` also learns how users differ with the curve."""


@dataclass(frozen=True, kw_only=True)
class StepsBenchmark(OverSplits):
    """Next-batch predictions of the trajectory model with one setting changed, over random splits.

    The first has none of what the default adds to predictions; each of the others changes one thing of it, the default
    most of them. Fits are as in `BetweenBenchmark`, with shorter searches.
    """

    name = "steps"
    title = "{case}: predictions with one setting changed; differences are this minus {first}, with 90 % intervals"
    first = "none"
    reversed = True

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth, of simulated users."""
        small = replace(SIMULATED[0], pilots=6, new=4, batches=(10, 10))
        return cls(splits=1, sets=(small,), changes=(("largest", 1), ("sweeps", 40), ("check", 20)))

    def specs(self, split: Split, reward: Reward | None, seed: int) -> Mapping[str, Spec]:
        """The trajectory model with each of the settings."""
        models = {name: self.model(split, reward, replace(settings, seed=seed)) for name, settings in STEPS.items()}
        shared: dict[str, Any] = {"reward": reward}
        return {name: ("trajectory", {**shared, "model": model}) for name, model in models.items()}

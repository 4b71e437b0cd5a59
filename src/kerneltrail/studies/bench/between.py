"""Methods side by side on users who differ: pilot users and new users drawn again and again from the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from kerneltrail.evaluation import Spec
from kerneltrail.gp import Reward
from kerneltrail.methods import METHODS, methods
from kerneltrail.studies.bench.between_sets import SIMULATED, Split
from kerneltrail.studies.bench.over_splits import OverSplits
from kerneltrail.trajectory.settings import Settings

COMPARED = ("trajectory", "lmm", "hgp", "pooled-mean", "final", "union", "flat", "mean")
"""Methods that are compared unless others are named; those of them that are registered."""
ON_THE_MODEL = ("trajectory", "final", "union", "flat")
"""Methods that use the trajectory model of a split."""


@dataclass(frozen=True, kw_only=True)
class BetweenBenchmark(OverSplits):
    """Next-batch predictions of several methods for new users, over random splits into pilot and new users.

    The trajectory model has its default settings and every atom on every covariate; but candidates are searched by the
    evidence of all pilot users together and searches are shorter, as in the experiments on the same data, which makes a
    fit eight times as fast. `final` is the kernel in which most pilot users of that model end.

    Attributes:
        methods: names in the registry; `COMPARED` where there are none.
    """

    methods: tuple[str, ...] = ()

    name = "between"
    title = "{case}: predictions of the next batch; differences are {first} minus this method, with 90 % intervals"
    first = "trajectory"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.methods:
            _ = METHODS[name]  # refuses one that there is not

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth, of simulated users."""
        small = replace(SIMULATED[0], pilots=6, new=4, batches=(10, 10))
        few = ("trajectory", "hgp", "mean")
        return cls(splits=2, methods=few, sets=(small,), changes=(("largest", 1), ("sweeps", 100)))

    def specs(self, split: Split, reward: Reward | None, seed: int) -> Mapping[str, Spec]:
        """Methods by their names; those that use the trajectory model share one."""
        compared = self.methods or tuple(name for name in COMPARED if name in methods())
        shared: dict[str, Any] = {"reward": reward}
        given = dict(shared)
        if set(ON_THE_MODEL) & set(compared):
            given["model"] = self.model(split, reward, Settings(seed=seed))
        return {name: (name, given if name in ON_THE_MODEL else shared) for name in compared}

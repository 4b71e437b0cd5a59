"""The guard against periods that a series is too short or too coarse to show (method (37))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerneltrail.kernels.hyperparameters import Slot
from kerneltrail.methods.cks.layout import ExpressionParameters
from kerneltrail.methods.periods import PeriodLimits
from kerneltrail.methods.protocol import Array


@dataclass(frozen=True)
class PeriodGuard:
    """Rejects a period below max(gaps · smallest gap, spacings · range/n) of its covariate, or above range/cycles.

    With 10 and 10, as in the original, a weekly cycle in daily values is rejected; 2 to 3 gaps and no spacings let it
    pass, at the risk of periods that only alias.

    Attributes:
        gaps: how many smallest gaps a period must span.
        spacings: how many mean spacings (range/n) it must span.
        cycles: how often a period must fit into the range; 0 for no such limit (the original has none). A cycle not
            seen once is a trend by another name, and one that extrapolates badly: it comes back.
    """

    gaps: float = 10.0
    spacings: float = 10.0
    cycles: float = 1.0

    def smallest(self, column: Array) -> float:
        """The shortest period allowed on a covariate; infinite where it never changes."""
        values = np.unique(column)
        if len(values) < 2:
            return float("inf")
        spread = float(values[-1] - values[0])
        return max(self.gaps * float(np.diff(values).min()), self.spacings * spread / len(column))

    def largest(self, column: Array) -> float:
        """The longest period allowed on a covariate."""
        return float(np.ptp(column)) / self.cycles if self.cycles > 0.0 else float("inf")

    def limits(self, X: Array, covariates: Sequence[str]) -> PeriodLimits:
        """The shortest and longest period allowed on each covariate."""
        return {
            name: (self.smallest(column), self.largest(column)) for name, column in zip(covariates, X.T, strict=True)
        }


def allowed(kernel: ExpressionParameters, limits: PeriodLimits) -> bool:
    """Whether every period is one that the guard lets pass."""
    ranges = (limits_of(slot, limits) for slot in kernel.layout.slots)
    return all(low <= value <= high for (low, high), value in zip(ranges, kernel.values_array, strict=True))


def limits_of(slot: Slot, limits: PeriodLimits) -> tuple[float, float]:
    """Between which values a hyperparameter is allowed: (-∞, ∞) for all but periods."""
    if slot.spec.kind != "period" or slot.covariate is None:
        return float("-inf"), float("inf")
    return limits.get(slot.covariate, (0.0, float("inf")))

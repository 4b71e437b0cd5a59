"""What the posterior says of every component: its weight, and its shares of the variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kerneltrail.kernels import Composition, Product
from kerneltrail.methods.shrinkage.objective import Factors, Problem


@dataclass(frozen=True)
class Weight:
    """The posterior of one component.

    Attributes:
        product: the kernel.
        median: of |w|, in the scaled target's units.
        low, high: its central 90 % interval.
        share: expected share of the signal's variance over the rows.
        size: expected share of signal and noise together.
        clear: what its share of itself and the noise together is above in nine of ten draws of the scales: ½ where it
            is almost surely as large as the noise.
    """

    product: Product
    median: float
    low: float
    high: float
    share: float
    size: float
    clear: float


def weights_of(problem: Problem, factors: Factors, whole: Composition) -> tuple[Weight, ...]:
    """The posterior of every component of the sum of all, the largest share first."""
    parts = problem.explained(factors)
    signal = parts.sum(axis=1, keepdims=True)
    share = np.divide(parts, signal, out=np.zeros_like(parts), where=signal > 0).mean(axis=0)
    noise = float(np.exp(factors.theta[-1]))
    clear = np.quantile(parts / (parts + noise), 0.1, axis=0)
    shares = (share, (parts / (signal + noise)).mean(axis=0), clear)
    mean, variance = factors.log_weights
    wide = 1.6448536269514722 * np.sqrt(variance)  # the normal's 95 % point
    median, low, high = np.exp(0.5 * np.array([mean, mean - wide, mean + wide])).tolist()
    columns = zip(whole, median, low, high, *(each.tolist() for each in shares), strict=True)
    found = [Weight(*column) for column in columns]
    return tuple(sorted(found, key=lambda weight: -weight.share))

"""Student-t rows read as Normal ones: outcomes drawn in (method §8.7).

A row far out says less of the function than its distance. Huber's pseudo-values say what it does say: around a function
f, an outcome y whose noise is a Student-t of scale s counts as f + ψ(y - f)/E[ψ'], where ψ stops at `REACH` scales.
Read as Normal rows of the variance that such outcomes have, E[ψ²]/E[ψ']², they lead to the function and to the
uncertainty of the M-estimator with ψ. For three degrees of freedom that is half the variance of the outcomes
themselves: drawn in, rows say twice as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

REACH = 1.0
"""Scales of the Student-t beyond which an outcome is drawn in; chosen on simulated and real users (docs, lab notes)."""


@dataclass(frozen=True)
class Drawing:
    """How outcomes with a Student-t's noise are drawn in.

    Attributes:
        freedom: its degrees of freedom ν, more than 2.
        alike: share of the variance of noises between users with which a user is followed. One user's rows say less of
            that user's noise than Normal rows would; a narrower group has the effect of likelihoods that count less.
    """

    freedom: float
    alike: float = 1.0

    @cached_property
    def inside(self) -> float:
        """E[ψ'], the share of rows that are not drawn in.

        >>> round(Drawing(3.0).inside, 3)
        0.609
        """
        return float(scipy.special.betainc(0.5, 0.5 * self.freedom, self._end))

    @cached_property
    def variance(self) -> float:
        """E[ψ²]/E[ψ']², the variance of the noise of outcomes drawn in, for a scale of 1."""
        near = self._outcomes * float(scipy.special.betainc(1.5, 0.5 * self.freedom - 1.0, self._end))
        return (near + REACH**2 * (1.0 - self.inside)) / self.inside**2

    @property
    def widening(self) -> float:
        """Variance of the noise of outcomes as they are, for each variance of that of outcomes drawn in.

        >>> round(Drawing(3.0).widening, 2), round(Drawing(1e6).widening, 2)
        (1.97, 0.9)
        """
        return self._outcomes / self.variance

    @property
    def _end(self) -> float:
        """z²/(ν + z²), which has a beta distribution, at the reach."""
        return REACH**2 / (self.freedom + REACH**2)

    @property
    def _outcomes(self) -> float:
        """Variance of the Student-t."""
        return self.freedom / (self.freedom - 2.0)

    def drawn(self, residual: Array, variance: float | Array) -> Array:
        """ψ(r)/E[ψ'] of residuals, where those of outcomes drawn in have a variance."""
        most = REACH * np.sqrt(variance / self.variance)
        return np.asarray(np.clip(residual, -most, most) / self.inside)

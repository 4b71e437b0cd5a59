"""A mixture of Normals at several places: what an average over kernels says of a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError

Array = NDArray[np.float64]

STEPS = 200
"""Of the search for a quantile, at most: each halves the bracket or the step before it. Six are common."""


@dataclass(frozen=True)
class NormalMixture:
    """S Normals at each of m places, with weights that are the same everywhere (method (31)).

    It is not the Normal of the same mean and variance: of two kernels that disagree, one may be sure that a number is
    positive and the other that it is not.

    >>> torn = NormalMixture([0.5, 0.5], [[1.0], [-0.1]], [[0.01], [0.01]])
    >>> round(float(torn.positive[0]), 3), round(float(scipy.special.ndtr(torn.mean / torn.sd)[0]), 3)
    (0.579, 0.79)

    Attributes:
        weights: of the Normals, (S,); they sum to 1.
        means, variances: of each Normal at each place, (S, m). A variance of 0 is a number that is known.
    """

    weights: Array
    means: Array
    variances: Array

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        means, variances = (np.atleast_2d(np.asarray(a, dtype=np.float64)) for a in (self.means, self.variances))
        if means.shape != variances.shape or weights.shape != (len(means),) or not weights.sum() > 0:
            raise DataError(
                f"a mixture needs S weights and means and variances (S, m), got {weights.shape}, {means.shape} and "
                f"{variances.shape}"
            )
        object.__setattr__(self, "weights", weights / weights.sum())
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "variances", variances)

    @property
    def mean(self) -> Array:
        """Mean at each place, (m,)."""
        return self.weights @ self.means

    @property
    def variance(self) -> Array:
        """Variance at each place, (m,)."""
        # Around the joint mean, not as a difference of squares: targets may be large.
        return self.weights @ (self.variances + (self.means - self.mean) ** 2)

    @property
    def sd(self) -> Array:
        """Standard deviation at each place, (m,)."""
        return np.sqrt(self.variance)

    def above(self, level: ArrayLike) -> Array:
        """Probability of being above a level at each place, (m,); one half for a known number that equals it."""
        gap = self.means - np.asarray(level, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(self.variances > 0, gap / np.sqrt(self.variances), np.inf * np.sign(gap))
        return self.weights @ np.asarray(scipy.special.ndtr(np.where(np.isnan(ratio), 0.0, ratio)))

    @property
    def positive(self) -> Array:
        """Probability of being above 0 at each place, (m,)."""
        return self.above(0.0)

    def quantile(self, probability: float) -> Array:
        """The value that is exceeded with probability 1 - `probability`, at each place, (m,)."""
        if not 0.0 < probability < 1.0:
            raise DataError(f"the probability of a quantile lies between 0 and 1, got {probability}")
        # The quantile lies between the least and the greatest of the Normals'.
        each = self.means + float(scipy.special.ndtri(probability)) * np.sqrt(self.variances)
        low, high = each.min(axis=0), each.max(axis=0)
        at = 0.5 * (low + high)
        digit = 4.0 * np.finfo(np.float64).eps * (np.abs(self.means) + np.sqrt(self.variances)).max(axis=0)
        moved = high - low
        for _ in range(STEPS):
            if not np.any(high > low):  # one Normal, or several that agree
                break
            beyond = self.above(at) - (1.0 - probability)
            low, high = np.where(beyond > 0, at, low), np.where(beyond > 0, high, at)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                tangent = at + beyond / self._density(at)
            # Newton's method, where it stays within the bracket and is not slower than halving the bracket would be.
            quick = (tangent >= low) & (tangent <= high) & (np.abs(tangent - at) <= 0.5 * moved)
            following = np.where(quick, tangent, 0.5 * (low + high))
            moved, at = np.abs(following - at), following
            if np.all((quick & (moved <= digit)) | (high - low <= digit)):
                break
        return np.asarray(at)

    def _density(self, value: Array) -> Array:
        """Density at a value at each place, (m,); Normals of variance 0 are left out."""
        sd = np.sqrt(self.variances)
        spread = np.where(sd > 0, sd, 1.0)
        height = np.where(sd > 0, np.exp(-0.5 * ((value - self.means) / spread) ** 2) / spread, 0.0)
        return self.weights @ height / np.sqrt(2.0 * np.pi)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval that holds the number with probability `level`: (low, high), each (m,)."""
        if not 0.0 < level < 1.0:
            raise DataError(f"the level of an interval lies between 0 and 1, got {level}")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def scaled(self, factor: float, shift: ArrayLike = 0.0) -> NormalMixture:
        """The mixture of factor·(number + shift); the shift may differ between places."""
        shifted = self.means + np.asarray(shift, dtype=np.float64)
        return type(self)(self.weights, factor * shifted, factor**2 * self.variances)

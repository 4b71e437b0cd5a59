"""What a posterior is asked and says at rows: checked rows, and mean and variance of the whole or of a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.arrays import finite_numbers, real_numbers
from kerneltrail.data.frames import frame_like
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp.bell import Bell
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.kernels.composition import Product
from kerneltrail.kernels.phrases import counted, number

Array = NDArray[np.float64]

TINY = 1e-15
"""Least probability below an outcome, and above it, of which a Normal score is told where outcomes have a shape."""


@dataclass(frozen=True)
class Prediction:
    """A prediction at m rows.

    Attributes:
        mean: of the function, (m,).
        variance: of the function, (m,).
        noise: variance of a new observation around the function.
        given: the frame that the rows came in, if they did; `to_frame` answers in its kind.
        freedom: degrees of freedom of a new observation, (m,), more than 2: a Student-t of the stated mean and
            variance, where the noise is not known for certain or observations have heavy tails. None: a Normal.
        shape: how outcomes lie around that, where it is no bell: intervals, densities and draws of new observations
            have it (method (76)). `mean` and `sd` are those without it, but no mean lies beyond an end of the outcomes;
            it may lie outside an interval, since there may be no outcomes around it. Make one with `shaped`.
        location: where the Normal or Student-t is, if not at `mean`.
    """

    mean: Array
    variance: Array
    noise: float
    given: Any = field(default=None, compare=False, repr=False)
    freedom: Array | None = None
    shape: OutcomeShape | None = None
    location: Array | None = None

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        if not len(self):
            return "Prediction at 0 rows"
        spans = (_span(values) for values in (self.mean, self.sd))
        return f"Prediction at {counted(len(self), 'row')}: mean {next(spans)}, sd {next(spans)}"

    @property
    def total(self) -> Array:
        """Variance of a new observation, (m,)."""
        return self.variance + self.noise

    @property
    def sd(self) -> Array:
        """Standard deviation of a new observation, (m,)."""
        return np.sqrt(self.total)

    @property
    def bell(self) -> Bell:
        """The distribution of a new observation without its shape: a Student-t of the stated variance, or a Normal."""
        location = self.mean if self.location is None else self.location
        if self.freedom is None:
            return Bell(location, self.sd, np.full(len(self), np.inf))
        return Bell(location, np.sqrt(self.total * (self.freedom - 2.0) / self.freedom), self.freedom)

    def shaped(self, shape: OutcomeShape | None) -> Prediction:
        """The same with a shape of the outcomes; None changes nothing."""
        if shape is None:
            return self
        location = self.bell.mean
        return replace(self, mean=shape.within(location), shape=shape, location=location)

    def interval(self, level: float = 0.9, *, noise: bool = True) -> tuple[Array, Array]:
        """The shortest interval that holds a new observation with probability `level`: (lower, upper), each (m,).

        Where outcomes have a shape, the 50 % interval is the shortest inside the 90 % interval, and one that ends with
        zero or another single outcome holds more than its level (`held`). Without `noise`, that of the function.

        >>> Prediction(np.array([5.0]), np.array([3.0]), 1.0).interval(0.9)
        (array([1.71029275]), array([8.28970725]))
        """
        if not 0.0 < level < 1.0:
            raise DataError(f"the level of an interval lies between 0 and 1, got {level}")
        if noise and self.shape is not None:
            return self.shape.interval(self.bell, level)
        if noise and self.freedom is not None:
            half = scipy.special.stdtrit(self.freedom, 0.5 + 0.5 * level) * self.bell.scale
        else:
            half = float(scipy.special.ndtri(0.5 + 0.5 * level)) * np.sqrt(self.total if noise else self.variance)
        return self.mean - half, self.mean + half

    def held(self, level: float = 0.9) -> Array:
        """Probability with which `interval` holds a new observation, (m,)."""
        return np.full(len(self), level) if self.shape is None else self.shape.held(self.bell, level)

    def draws(self, size: int, rng: np.random.Generator, *, noise: bool = True) -> Array:
        """Draws of new observations, row by row, (size, m); without `noise`, of the function at each row by itself."""
        if noise and self.shape is not None:
            return self.shape.draws(self.bell, size, rng)
        if noise and self.freedom is not None:
            return self.mean + self.bell.scale * rng.standard_t(self.freedom, (size, len(self.mean)))
        spread = np.sqrt(self.total if noise else self.variance)
        return self.mean + spread * rng.standard_normal((size, len(self.mean)))

    def to_frame(self, level: float = 0.9) -> Any:
        """A frame with mean, sd, lower and upper of a new observation, a row for each row that was asked for.

        It is of the kind of the frame that was given, with its index; else of the first library installed.
        """
        lower, upper = self.interval(level)
        return frame_like(self.given, {"mean": self.mean, "sd": self.sd, "lower": lower, "upper": upper})

    def normal_scores(self, y: ArrayLike) -> Array:
        """Where observed targets fell in their predicted distributions, as standard Normal scores, (m,).

        A single outcome, such as zero, has one score: that of the middle of its probability.

        >>> Prediction(np.array([5.0]), np.array([3.0]), 1.0).normal_scores([8.0])
        array([1.5])
        """
        target = np.asarray(y, dtype=np.float64)
        if self.shape is not None:
            middle = 0.5 * np.add(*self.shape.below(self.bell, target))
            return np.asarray(scipy.special.ndtri(np.clip(middle, TINY, 1.0 - TINY)))
        residual = target - self.mean
        if self.freedom is None:
            return residual / np.sqrt(self.total)
        # By the lower tail, which does not round to 1.
        below = scipy.special.stdtr(self.freedom, -np.abs(residual) / self.bell.scale)
        return np.asarray(-np.sign(residual) * scipy.special.ndtri(below))

    def below(self, y: ArrayLike) -> tuple[Array, Array]:
        """Probability of less than observed targets, and of them or less, each (m,): two for single outcomes."""
        if self.shape is not None:
            return self.shape.below(self.bell, np.asarray(y, dtype=np.float64))
        below = np.asarray(scipy.special.ndtr(self.normal_scores(y)))
        return below, below

    def log_density(self, y: ArrayLike) -> Array:
        """Log predictive density of observed targets, (m,)."""
        target = finite_numbers(y, "targets")
        if target.shape != self.mean.shape:
            raise DataError(f"a prediction at {len(self.mean)} rows needs as many targets, got shape {target.shape}")
        if self.shape is not None:
            return self.shape.log_density(self.bell, target)
        return self.bell.log_density(target)


def averaged(
    weights: Array, parts: Sequence[Prediction], spreads: Array | None = None, tails: float = 0.0
) -> Prediction:
    """The average of several kernels' predictions by its mean and variance (method (31)).

    Args:
        weights: of the kernels.
        parts: their predictions at the same rows.
        spreads: what is not known of each one's noise, as a variance of its log: then an observation is Student-t
            (method (53)). None for a Normal.
        tails: how much heavier the noise's tails are beyond that; a Normal's where both make less than 0.
    """
    mixture = NormalMixture(weights, np.array([p.mean for p in parts]), np.array([p.variance for p in parts]))
    noise = np.array([p.noise for p in parts])
    if spreads is None:
        return Prediction(mixture.mean, mixture.variance, float(mixture.weights @ noise))
    expected = float(mixture.weights @ (noise * np.exp(0.5 * spreads)))
    share = expected / (mixture.variance + expected)
    freedom = freedom_of(share**2 * (float(mixture.weights @ spreads) + tails))
    return Prediction(mixture.mean, mixture.variance, expected, freedom=freedom)


FEWEST = 3.0
"""Least degrees of freedom of a prediction: with fewer, its variance is hardly finite."""


def freedom_of(spread: ArrayLike) -> Array:
    """Degrees of freedom ν of a Student-t whose log variance is uncertain by `spread`, a variance (method (53)).

    A Student-t is a Normal whose variance is inverse-gamma; its log has the variance ψ′(ν/2), which is solved for ν.

    >>> round(float(freedom_of(scipy.special.polygamma(1, 4.0))), 6)
    8.0
    """
    goal = np.maximum(np.asarray(spread, dtype=np.float64), 1e-6)
    half = 1.0 / goal + 0.5  # ψ′(x) ≈ 1/x + 1/(2x²)
    for _ in range(50):  # Newton on 1/ψ′, which is nearly linear
        value, slope = scipy.special.zeta(2, half), 2.0 * scipy.special.zeta(3, half)  # ψ′(x) and -ψ″(x)
        step = (1.0 / goal - 1.0 / value) * value**2 / slope
        half = np.maximum(half + step, 0.5 * half)
        if np.all(np.abs(step) <= 1e-10 * half):
            break
    return np.maximum(2.0 * half, FEWEST)


def _span(values: Array) -> str:
    """From the least to the greatest of some values."""
    low, high = number(float(values.min())), number(float(values.max()))
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Component:
    """One product's part of a prediction; the parts' means add up to the whole.

    Attributes:
        product: the product, or None for the linear block.
        mean: (m,).
        variance: (m,).
    """

    product: Product | None
    mean: Array
    variance: Array


def rows_of(X: ArrayLike, covariates: Sequence[str]) -> Array:
    """Rows to predict at or to learn from, (m, d), copied and checked."""
    rows = finite_numbers(X, "rows", covariates, ndmin=2)
    if rows.ndim != 2 or rows.shape[1] != len(covariates):
        raise DataError(f"rows need {len(covariates)} columns ({', '.join(covariates)}), got shape {rows.shape}")
    return rows


def targets_of(y: ArrayLike, rows: int) -> Array:
    """As many targets as rows, copied and checked."""
    target = real_numbers(y, "targets", ndmin=1)
    if target.shape != (rows,) or not np.isfinite(target).all():
        raise DataError(f"a batch of {rows} rows needs as many finite targets, got shape {target.shape}: {target}")
    return target


def features_of(linear: ArrayLike, rows: int, size: int) -> Array:
    """Features of a linear block at those rows, (m, q), copied and checked."""
    features = finite_numbers(linear, "linear=", ndmin=2)
    if features.shape != (rows, size):
        raise DataError(f"linear= needs shape ({rows}, {size}), got {features.shape}")
    return features


def refuse_overflow(
    what: str, reads: Sequence[str], rows: Array, covariates: Sequence[str], mean: Array, variance: Array
) -> None:
    """Refuse a prediction past all numbers, with the row and, of the columns that it reads, the one that is largest."""
    bad = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(variance)))
    if len(bad):
        row = rows[bad[0]]
        sizes = {name: float(row[list(covariates).index(name)]) for name in reads}
        name = max(sizes, key=lambda name: abs(sizes[name]), default=None)
        cause = "" if name is None else f": {name} is {sizes[name]:g}"
        raise NumericalError(f"{what} at row {bad[0]} is past all numbers{cause}")

"""What a posterior is asked and says at rows: checked rows, and mean and variance of the whole or of a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.arrays import finite_numbers, real_numbers
from kerneltrail.data.frames import frame_like
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.kernels.composition import Product
from kerneltrail.kernels.phrases import counted, number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """A prediction at m rows.

    Attributes:
        mean: of the function, (m,).
        variance: of the function, (m,).
        noise: variance of a new observation around the function.
        given: the frame that the rows came in, if they did; `to_frame` answers in its kind.
    """

    mean: Array
    variance: Array
    noise: float
    given: Any = field(default=None, compare=False, repr=False)

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

    def interval(self, level: float = 0.9, *, noise: bool = True) -> tuple[Array, Array]:
        """The central interval that holds a new observation with probability `level`: (lower, upper), each (m,).

        Without `noise`, that of the function.

        >>> Prediction(np.array([5.0]), np.array([3.0]), 1.0).interval(0.9)
        (array([1.71029275]), array([8.28970725]))
        """
        if not 0.0 < level < 1.0:
            raise DataError(f"the level of an interval lies between 0 and 1, got {level}")
        half = float(scipy.special.ndtri(0.5 + 0.5 * level)) * np.sqrt(self.total if noise else self.variance)
        return self.mean - half, self.mean + half

    def draws(self, size: int, rng: np.random.Generator, *, noise: bool = True) -> Array:
        """Draws of new observations, row by row, (size, m); without `noise`, of the function at each row by itself."""
        spread = np.sqrt(self.total if noise else self.variance)
        return self.mean + spread * rng.standard_normal((size, len(self.mean)))

    def to_frame(self, level: float = 0.9) -> Any:
        """A frame with mean, sd, lower and upper of a new observation, a row for each row that was asked for.

        It is of the kind of the frame that was given, with its index; else of the first library installed.
        """
        lower, upper = self.interval(level)
        return frame_like(self.given, {"mean": self.mean, "sd": self.sd, "lower": lower, "upper": upper})

    def log_density(self, y: ArrayLike) -> Array:
        """Log predictive density of observed targets, (m,)."""
        target = finite_numbers(y, "targets")
        if target.shape != self.mean.shape:
            raise DataError(f"a prediction at {len(self.mean)} rows needs as many targets, got shape {target.shape}")
        residual = target - self.mean
        return -0.5 * (np.log(2.0 * np.pi * self.total) + residual**2 / self.total)


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

"""What a posterior says at rows: mean and variance, of the whole or of a part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError
from kerneltrail.gp.arrays import check_finite, real_numbers
from kerneltrail.kernels.composition import Product

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """A prediction at m rows.

    Attributes:
        mean: of the function, (m,).
        variance: of the function, (m,).
        noise: variance of a new observation around the function.
    """

    mean: Array
    variance: Array
    noise: float

    @property
    def total(self) -> Array:
        """Variance of a new observation, (m,)."""
        return self.variance + self.noise

    def log_density(self, y: ArrayLike) -> Array:
        """Log predictive density of observed targets, (m,)."""
        target = real_numbers(y, "targets")
        check_finite(target, lambda row, _, y: f"target of row {row} is not finite ({y})")
        if target.shape != self.mean.shape:
            raise DataError(f"a prediction at {len(self.mean)} rows needs as many targets, got shape {target.shape}")
        residual = target - self.mean
        return -0.5 * (np.log(2.0 * np.pi * self.total) + residual**2 / self.total)


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

"""Features of one kernel with known hyperparameters, as functions of covariates that lie in a box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import KernelError
from kerneltrail.gp import feature_rows
from kerneltrail.gp.features import FLOOR, FeatureLayout, SpectralExpansion, expand, feature_layout_of
from kerneltrail.gp.inputs import sealed
from kerneltrail.kernels.layout import Hyperparameters

Array = NDArray[np.float64]

HORIZON = 100_000
"""Rows for which the features' tolerance is meant; past it the error bound grows in proportion, slowly."""


@dataclass(frozen=True)
class Basis:
    """Features of one composition at one hyperparameter vector, valid on a box of covariate values.

    Attributes:
        hyperparameters: the kernel.
        covariates: names of the columns.
        low, high: the box on which the series hold to tolerance, (d,).
        tol: error allowed in a log evidence of up to `HORIZON` rows.
        floor: smallest tail of a series (see `features.FLOOR`).
    """

    hyperparameters: Hyperparameters
    covariates: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    tol: float
    floor: float = FLOOR

    @cached_property
    def _layout(self) -> FeatureLayout:
        composition = self.hyperparameters.composition
        layout = feature_layout_of(composition, self.covariates)
        if layout is None:
            raise KernelError(f"{composition} has an atom without a spectral form: no online state; grow a Posterior")
        return layout

    @cached_property
    def _expansion(self) -> SpectralExpansion:
        low, high = np.array(self.low), np.array(self.high)
        values = self.hyperparameters.values_array[None, :]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a box too wide has too many features
            return expand(self._layout, values, self.tol, high - low, np.stack([low, high]), HORIZON, self.floor)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Number of features of each product, in the layout's order."""
        out = np.empty(len(self._layout.amplitude_slot), dtype=np.int64)
        e = self._expansion
        feature_rows.ranks(self._layout.series_start, e.count[0], e.weights[0], e.cutoff[0], out)
        return out

    @property
    def attained(self) -> bool:
        """Whether the tolerance is kept, or only what the floor allows."""
        return bool(self._expansion.attained[0])

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.widths.sum())

    def features(self, X: Array) -> Array:
        """Φ at the rows of X, shape (r, n): the inner product of two columns is the kernel."""
        r, n = self.rank, len(X)
        rows = feature_rows.empty_rows(r, n, self._layout.series_start)
        centre = 0.5 * (np.array(self.low) + np.array(self.high))
        columns = sealed(np.ascontiguousarray(X.T))
        feature_rows.fill(columns, centre, self._layout.compiled, self._expansion.terms(0), rows, np.empty((0, 0)))
        return rows.scale[:, None] * rows.features

    def owner(self) -> NDArray[np.int64]:
        """For each feature the index of its product in the composition."""
        slots = list(self.hyperparameters.layout.amplitude_index)
        return np.repeat([slots.index(slot) for slot in self._layout.amplitude_slot], self.widths)

    def groups(self, size: int) -> list[NDArray[np.int64]]:
        """Features of each product of the composition, and those past the basis where there are `size` together."""
        owner = self.owner()
        groups = [np.flatnonzero(owner == p) for p in range(len(self.hyperparameters.composition))]
        return groups if size == len(owner) else [*groups, np.arange(len(owner), size)]

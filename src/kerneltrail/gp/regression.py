"""Bayesian regression on features: f = φ'w with w ~ N(0, I), so that the kernel is the features' inner product.

`Basis` has the features of one kernel with known hyperparameters, as functions of covariates that lie in a box;
`WeightPosterior` the posterior of w. That needs a factor of A = ΦΦᵀ + σ²I and nothing of the size of the rows. The
factor comes from the rows' sums, which is all that an online state keeps, or from the rows themselves, where sums would
round the noise away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import feature_rows, gram
from kerneltrail.gp.features import FLOOR, FeatureLayout, SpectralExpansion, expand, feature_layout_of
from kerneltrail.gp.inputs import sealed
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper, too_small
from kerneltrail.kernels.hyperparameters import Hyperparameters

Array = NDArray[np.float64]

HORIZON = 100_000
"""Rows for which the features' tolerance is meant; past it the error bound grows in proportion, slowly."""

SUMS_RESOLUTION = 1e-13
"""As `numerics.RESOLUTION`, for sums over any number of rows: a million equal rows alone take six digits."""


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

    @cached_property
    def rank(self) -> int:
        """Number of features."""
        return int(self.widths.sum())

    @cached_property
    def _terms(self) -> feature_rows.SpectralTerms:
        return self._expansion.terms(0)

    def features(self, X: Array) -> Array:
        """Φ at the rows of X, shape (r, n): the inner product of two columns is the kernel."""
        r, n = self.rank, len(X)
        rows = feature_rows.empty_rows(r, n, self._layout.series_start)
        centre = 0.5 * (np.array(self.low) + np.array(self.high))
        columns = sealed(np.ascontiguousarray(X.T))
        feature_rows.fill(columns, centre, self._layout.compiled, self._terms, rows, np.empty((0, 0)))
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


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of the weights: N(mean, σ²A⁻¹).

    Attributes:
        lower: L with LLᵀ = A, (r, r).
        mean: (r,).
        noise: σ².
        log_evidence: of all rows seen.
    """

    lower: Array
    mean: Array
    noise: float
    log_evidence: float

    @classmethod
    def from_sums(cls, sums: Array, rows: int, noise: float, *, what: str) -> WeightPosterior:
        """From [Φ; y][Φ; y]ᵀ summed over so many rows, (r + 1, r + 1)."""
        size = len(sums) - 1
        a = sums[:size, :size].copy()
        a[np.diag_indices(size)] += noise
        lower = factorise(a, what=what, resolution=SUMS_RESOLUTION)
        b = sums[:size, -1]
        mean = solve_upper(lower, solve_lower(lower, b))
        # Stationary in the mean: its rounding enters squared.
        remainder = sums[-1, -1] - 2.0 * mean @ b + mean @ a @ mean
        if remainder < SUMS_RESOLUTION * sums[-1, -1] and 1e-13 * sums[-1, -1] > noise:
            raise NumericalError(too_small(f"{what} cannot be computed", noise, "targets of this size"))
        quad = remainder / noise
        logdet = (rows - size) * np.log(noise) + 2.0 * np.log(np.diagonal(lower)).sum()
        return cls(lower, mean, noise, float(-0.5 * (quad + logdet + rows * LOG_2PI)))

    @classmethod
    def from_rows(cls, features: Array, y: Array, noise: float, *, what: str) -> WeightPosterior:
        """From features (r, n) and targets, by reflections: rounding is relative to the features, not their squares."""
        size, rows = features.shape
        upper = np.zeros((size + 1, size + 1))
        stacked = np.ascontiguousarray(np.vstack([features, y]))
        logdet = gram.reflect(stacked, np.ones(size + 1), rows, noise, upper)
        quad = upper[-1, -1] ** 2 / noise
        log = -0.5 * (quad + (rows - size) * np.log(noise) + logdet + rows * LOG_2PI)
        if not np.isfinite(log):
            raise NumericalError(too_small(f"{what} cannot be computed", noise))
        mean = scipy.linalg.solve_triangular(upper[:size, :size], upper[:size, size])
        return cls(np.asfortranarray(upper[:size, :size].T), mean, noise, float(log))

    def spread(self, features: Array) -> Array:
        """V with σ² VᵀV the posterior covariance of f at features (r, m)."""
        return solve_lower(self.lower, features)

    def moments(self, features: Array) -> tuple[Array, Array]:
        """Mean and variance of f at features (r, m), each (m,)."""
        v = self.spread(features)
        return self.mean @ features, self.noise * np.einsum("ij,ij->j", v, v)

    def parts(self, features: Array, groups: list[NDArray[np.int64]]) -> list[tuple[Array, Array]]:
        """Moments of the part of f that each group of features makes."""
        moments = []
        for group in groups:
            alone = np.zeros_like(features)
            alone[group] = features[group]
            moments.append(self.moments(alone))
        return moments

    def last(self, root: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of Ru, where u are the last q weights."""
        q = len(root)
        unit = np.zeros((len(self.mean), q))
        unit[-q:] = np.eye(q)
        v = self.spread(unit) @ root.T
        return root @ self.mean[-q:], self.noise * (v.T @ v)

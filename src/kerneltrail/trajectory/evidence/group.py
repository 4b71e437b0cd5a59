"""`group`: Laplace's approximation under a Normal fitted to the *other* users' MAPs at K (method (19)).

In closed form from the fits under the prior: no fit is ever repeated. It is off where the group favours a mode of the
likelihood other than the one that was fitted, as it may with periods and few rows.

Around the MAP θ* under the prior p0 = N(μ0, V0), with Λ the curvature of the log posterior there, the log likelihood is

    ℓ(θ) ≈ ℓ* + gᵀδ - ½ δᵀAδ,      δ = θ - θ*,   A = Λ - V0⁻¹,   g = V0⁻¹(θ* - μ0)

(the gradient of the log posterior is zero at θ*, so g is minus the prior's). Its integral against q = N(μ, V) is

    log ∫ exp(ℓ) q = ℓ* + ½ bᵀM⁻¹b - ½ log|M| - ½ log|V| - ½ dᵀV⁻¹d,      M = A + V⁻¹,  b = g + V⁻¹d,  d = μ - θ*

which for q = p0 is Laplace's evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kerneltrail.gp.numerics import LEAST_CURVATURE
from kerneltrail.kernels import Array
from kerneltrail.trajectory.evidence.base import PathEvidence
from kerneltrail.trajectory.map_table import Fits, MapTable
from kerneltrail.trajectory.sampler.urn import Paths, last_use


@dataclass(frozen=True)
class Quadratic:
    """The log likelihoods of one user's batches as quadratic functions of one composition's hyperparameters.

    Attributes:
        value: ℓ* of each batch, (T,).
        centre: θ*, (T, k).
        gradient: g, (T, k).
        curvature: A, (T, k, k).
    """

    value: Array
    centre: Array
    gradient: Array
    curvature: Array

    @classmethod
    def of(cls, fits: Fits, mean: Array, variance: Array) -> Quadratic:
        """From MAP fits under the prior N(mean, variance).

        The posterior's curvature is floored as in `MapResult.log_laplace`, relative to the prior's own. So A is no less
        than `LEAST_CURVATURE` - 1 times that, and M is positive definite for every q that is no wider than the prior.
        """
        scale = np.sqrt(variance)
        whitened = fits.precision * np.multiply.outer(scale, scale)
        values, vectors = np.linalg.eigh(whitened)
        floored = np.maximum(values, LEAST_CURVATURE) - 1.0
        curvature = np.einsum("tij,tj,tkj->tik", vectors, floored, vectors) / np.multiply.outer(scale, scale)
        return cls(fits.log_likelihood, fits.theta, (fits.theta - mean) / variance, curvature)

    def log_evidence(self, mean: Array, variance: Array) -> Array:
        """Log evidences under N(mean, variance), independent between hyperparameters, (T,)."""
        step = mean - self.centre
        sharp = self.curvature + np.diag(1.0 / variance)
        pull = self.gradient + step / variance
        # M = LLᵀ: bᵀM⁻¹b = |L⁻¹b|².
        lower = np.linalg.cholesky(sharp)
        gain = np.linalg.solve(lower, pull[..., None])[..., 0]
        half_logdet = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1) + 0.5 * float(np.log(variance).sum())
        loss = (step**2 / variance).sum(axis=1)
        return np.asarray(self.value + 0.5 * ((gain**2).sum(axis=1) - loss) - half_logdet, dtype=np.float64)


class _Cache(NamedTuple):
    """What a chain's states share: values by (user, mask, others), and what they are computed from."""

    values: dict[tuple[int, int, tuple[tuple[int, int], ...]], Array]
    quadratics: dict[tuple[int, int], Quadratic]


class GroupEvidence(PathEvidence):
    """Made anew for each state of a chain; what did not change is not computed again."""

    name = "group"

    def __init__(self, table: MapTable, largest: int, paths: Paths = (), cache: _Cache | None = None) -> None:
        super().__init__(table, largest)
        self._last = last_use(paths)
        self._cache = _Cache({}, {}) if cache is None else cache

    def for_paths(self, paths: Paths) -> GroupEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return GroupEvidence(self.table, self.largest, paths, self._cache)

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        others = tuple((m, t) for m, t in self._last.get(mask, {}).items() if m != user)
        if not others:
            return self.table.get(user, mask).log_laplace
        key = (user, mask, others)
        values = self._cache.values.get(key)
        if values is None:
            group = self.table.group(mask, others)
            values = self._cache.values[key] = self._quadratic(user, mask).log_evidence(group.mean, group.variance)
        return values

    def _quadratic(self, user: int, mask: int) -> Quadratic:
        quadratic = self._cache.quadratics.get((user, mask))
        if quadratic is None:
            moments = self.table.prior.moments(self.table.pool.composition(mask))
            quadratic = self._cache.quadratics[user, mask] = Quadratic.of(self.table.get(user, mask), *moments)
        return quadratic

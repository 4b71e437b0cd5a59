"""The evidence lower bound of the shrinkage model and its analytic gradient, everything by fixed draws.

    y ~ N(0, Σ_i w_i² K_i + B Σ B' + σ²I),  w_i² = τ²λ_i²,  f integrated out exactly (method (38))

    L(m, v, θ) = E_q[log N(y)] + Σ bound(m_j, v_j, b_j) + log p(θ)    (method (39))

with log-normal q over the scales j = (τ², λ_1², …, λ_P²) and a point estimate (MAP) of all other hyperparameters θ:
lengthscales, periods, locations, noise. With log x_j = m_j + √v_j ε_j the expectation is a mean over fixed antithetic
draws of ε, so L is a plain deterministic function with a gradient. b_j is at its optimum wherever L is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kerneltrail import gp
from kerneltrail.gp import Inputs
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper
from kerneltrail.kernels import Composition, Product
from kerneltrail.methods.cks.evidence import log_density
from kerneltrail.methods.protocol import Array
from kerneltrail.methods.shrinkage.scales import best_rates, bound, slopes


@dataclass(frozen=True)
class Factors:
    """A point of the search: variational factors of the scales, and the other hyperparameters.

    Attributes:
        m: mean of log τ², then of every log λ_i², (P + 1,).
        v: variance of the same, (P + 1,).
        theta: unconstrained hyperparameters without amplitudes, noise last, (k,).
    """

    m: Array
    v: Array
    theta: Array

    @property
    def rates(self) -> Array:
        """b of each q(φ), by its coordinate update."""
        return best_rates(self.m, self.v)

    @property
    def log_weights(self) -> tuple[Array, Array]:
        """Mean and variance of log w_i² = log τ² + log λ_i², each (P,)."""
        return self.m[0] + self.m[1:], self.v[0] + self.v[1:]

    @property
    def packed(self) -> Array:
        """As one vector: m, log v, θ."""
        return np.concatenate([self.m, np.log(self.v), self.theta])

    @classmethod
    def unpacked(cls, vector: Array, scales: int) -> Factors:
        """From one vector with so many scales."""
        return cls(vector[:scales], np.exp(vector[scales : 2 * scales]), vector[2 * scales :])


@dataclass(frozen=True)
class EvidenceLowerBound:
    """One user's rows under the sum of all products of a pool.

    `mean` and `variance` are the prior's of θ, (k,); `draws` are fixed standard normal ones, (S, P + 1).
    """

    inputs: Inputs
    mean: Array
    variance: Array
    draws: Array

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Where θ stands in the vector of all hyperparameters."""
        return np.delete(np.arange(self.inputs.layout.size), self.inputs.layout.amplitude_index)

    @cached_property
    def linear(self) -> Array:
        """The linear block's covariance at the rows, (n, n)."""
        weighted = self.inputs.weighted
        return np.zeros((self.inputs.rows, self.inputs.rows)) if weighted is None else weighted @ weighted.T

    def vector(self, theta: Array, log_weights: Array) -> Array:
        """All hyperparameters, amplitudes w_i² included."""
        full = np.empty(self.inputs.layout.size)
        full[self.places] = theta
        full[list(self.inputs.layout.amplitude_index)] = log_weights
        return full

    def log_scales(self, factors: Factors) -> Array:
        """log x_j of every draw, (S, P + 1)."""
        return factors.m + np.sqrt(factors.v) * self.draws

    def kernels(self, theta: Array, *, gradient: bool) -> tuple[Array, list[tuple[int, int, Array]]]:
        """Unit-amplitude K_i, (P, n, n); and, if asked for, (i, place in θ, dK_i/dθ) for every hyperparameter."""
        inputs = self.inputs
        values = inputs.layout.constrain(self.vector(theta, np.zeros(len(inputs.atoms))))
        index_of = {int(index): j for j, index in enumerate(self.places)}
        rows = inputs.rows
        kernels = np.empty((len(inputs.atoms), rows, rows))
        by_theta: list[tuple[int, int, Array]] = []
        for i, atoms in enumerate(inputs.atoms):
            columns = [inputs.X[:, column] for _, column, _ in atoms]
            parts = [kind.covariance(x, x, values[slots]) for (kind, _, slots), x in zip(atoms, columns, strict=True)]
            kernels[i] = np.prod(parts, axis=0) if len(parts) > 1 else parts[0]
            if not gradient:
                continue
            for a, (kind, _, slots) in enumerate(atoms):
                others = [part for b, part in enumerate(parts) if b != a]
                for offset, slope in enumerate(kind.gradient(columns[a], values[slots], parts[a])):
                    whole = slope
                    for other in others:
                        whole = whole * other
                    by_theta.append((i, index_of[slots.start + offset], whole))
        return kernels, by_theta

    def evaluate(self, factors: Factors) -> tuple[float, Array]:
        """L and its gradient by (m, log v, θ).

        d log N/du = ½ tr((αα' - C⁻¹) dC/du), α = C⁻¹y; a draw's C is linear in the kernels, which all draws share.
        """
        kernels, by_theta = self.kernels(factors.theta, gradient=True)
        weights = self._weights(factors)
        count, products = weights.shape
        flat = np.concatenate([kernels.reshape(products, -1), *(slope.reshape(1, -1) for _, _, slope in by_theta)])
        log = np.empty(count)
        matrices = np.empty((count, flat.shape[1]))  # αα' - C⁻¹ of each draw
        for s, (lower, z) in enumerate(self._solved(kernels, weights, factors)):
            log[s] = log_density(lower, z)
            matrices[s] = gp.dense.outer_minus_inverse(lower, solve_upper(lower, z)).reshape(-1)
        sums = 0.5 * (matrices @ flat.T)
        by_scale = weights * sums[:, :products]  # d log N/d log w_i² of each draw
        gradient = np.zeros(len(factors.theta))
        for column, (i, index, _) in enumerate(by_theta, start=products):
            gradient[index] += float(weights[:, i] @ sums[:, column]) / count
        noise = float(np.exp(factors.theta[-1]))
        gradient[-1] = 0.5 * noise * float(matrices[:, :: self.inputs.rows + 1].sum()) / count
        by_log = np.concatenate([by_scale.sum(axis=1, keepdims=True), by_scale], axis=1)
        by_m = by_log.mean(axis=0)
        by_log_v = (by_log * self.draws).mean(axis=0) * 0.5 * np.sqrt(factors.v)
        rates = factors.rates
        prior_m, prior_log_v = slopes(factors.m, factors.v, rates)
        off = factors.theta - self.mean
        value = float(log.mean()) + bound(factors.m, factors.v, rates) + self._log_prior(off)
        return value, np.concatenate([by_m + prior_m, by_log_v + prior_log_v, gradient - off / self.variance])

    def value(self, factors: Factors) -> float:
        """L alone."""
        kernels, _ = self.kernels(factors.theta, gradient=False)
        total = 0.0
        for lower, z in self._solved(kernels, self._weights(factors), factors):
            total += log_density(lower, z)  # one by one: `sum` would round otherwise
        expected = total / len(self.draws)
        return expected + bound(factors.m, factors.v, factors.rates) + self._log_prior(factors.theta - self.mean)

    def explained(self, factors: Factors) -> Array:
        """Expected variance over the rows of each component w_i f_i given y, for every draw of the scales, (S, P).

        With w_i f_i | y ~ N(μ, V), μ = w²K_i C⁻¹y and V = w²K_i - w⁴K_i C⁻¹K_i, it is the variance of μ over the rows
        plus the mean of V_jj minus the mean of V_jk. What the data deny a kernel is not counted, wide as its prior is.
        """
        kernels, _ = self.kernels(factors.theta, gradient=False)
        weights = self._weights(factors)
        centred = kernels - kernels.mean(axis=1, keepdims=True)  # HK_i, H = I - 11'/n
        prior = np.einsum("ijj->ij", centred).mean(axis=1)  # tr(HK_i)/n
        out = np.empty(weights.shape)
        for s, (lower, z) in enumerate(self._solved(kernels, weights, factors)):
            alpha = solve_upper(lower, z)
            for i, weight in enumerate(weights[s]):
                spread = float(np.mean((centred[i] @ alpha) ** 2))
                half = solve_lower(lower, centred[i].T)  # L⁻¹K_iH, whose squares add up to tr(HK_iC⁻¹K_iH)
                denied = float(np.einsum("jk,jk->", half, half)) / self.inputs.rows
                out[s, i] = weight**2 * spread + max(weight * prior[i] - weight**2 * denied, 0.0)
        return out

    def _weights(self, factors: Factors) -> Array:
        """w_i² of each draw, (S, P)."""
        scales = self.log_scales(factors)
        return np.exp(scales[:, :1] + scales[:, 1:])

    def _solved(self, kernels: Array, weights: Array, factors: Factors) -> Iterator[tuple[Array, Array]]:
        """The Cholesky factor L of C, and L⁻¹y, for each draw."""
        what = f"the covariance of shrinkage over {len(self.inputs.atoms)} kernels for user {self.inputs.user!r}"
        for draw in weights:
            total = np.tensordot(draw, kernels, axes=1) + self.linear
            total.reshape(-1)[:: self.inputs.rows + 1] += float(np.exp(factors.theta[-1]))
            lower = factorise(total, what=what, overwrite=True)
            yield lower, solve_lower(lower, self.inputs.y)

    def _log_prior(self, off: Array) -> float:
        return float(-0.5 * (off**2 / self.variance + np.log(self.variance) + LOG_2PI).sum())


@dataclass(frozen=True)
class ComponentWeight:
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


def weights_of(elbo: EvidenceLowerBound, factors: Factors, whole: Composition) -> tuple[ComponentWeight, ...]:
    """The posterior of every component of the sum of all, the largest share first."""
    parts = elbo.explained(factors)
    signal = parts.sum(axis=1, keepdims=True)
    share = np.divide(parts, signal, out=np.zeros_like(parts), where=signal > 0).mean(axis=0)
    noise = float(np.exp(factors.theta[-1]))
    clear = np.quantile(parts / (parts + noise), 0.1, axis=0)
    shares = (share, (parts / (signal + noise)).mean(axis=0), clear)
    mean, variance = factors.log_weights
    wide = 1.6448536269514722 * np.sqrt(variance)  # the normal's 95 % point
    median, low, high = np.exp(0.5 * np.array([mean, mean - wide, mean + wide])).tolist()
    columns = zip(whole, median, low, high, *(each.tolist() for each in shares), strict=True)
    weights = [ComponentWeight(*column) for column in columns]
    return tuple(sorted(weights, key=lambda weight: -weight.share))

"""The posterior of a Gaussian process with known hyperparameters: predictions, parts, advantage, exact growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError
from kerneltrail.gp.dense import factor_of, product_covariance, product_diagonal
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for, locate
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper
from kerneltrail.gp.reward import LinearBlock, Reward
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.layout import Hyperparameters

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
        target = np.asarray(y, dtype=np.float64)
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


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process given rows. Build it with `Posterior.fit`; extend it with `grow`.

    Attributes:
        hyperparameters: kernel and hyperparameters.
        covariates: names of the columns of X.
        inputs: the rows seen.
        lower: Cholesky factor of their covariance, noise included (lower triangle).
        jitter: what had to be added to its diagonal.
        z: L⁻¹y.
    """

    hyperparameters: Hyperparameters
    covariates: tuple[str, ...]
    inputs: Inputs
    lower: Array
    jitter: float
    z: Array

    @classmethod
    def fit(cls, user: Rows, hyperparameters: Hyperparameters, *, block: LinearBlock | None = None) -> Posterior:
        """Condition on all of a user's rows."""
        inputs = inputs_for(user, hyperparameters.composition, block=block)
        inputs = replace(inputs, X=inputs.X.copy(), y=inputs.y.copy())  # not every user's rows are sealed
        factor = factor_of(inputs, hyperparameters.values_array)
        return cls(
            hyperparameters,
            tuple(user.covariates),
            inputs,
            factor.lower,
            factor.jitter,
            solve_lower(factor.lower, inputs.y),
        )

    @property
    def composition(self) -> Composition:
        """The kernel."""
        return self.hyperparameters.composition

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        return self.inputs.rows

    @cached_property
    def _values(self) -> Array:
        return self.hyperparameters.values_array

    @cached_property
    def alpha(self) -> Array:
        """K⁻¹y, (n,)."""
        return solve_upper(self.lower, self.z)

    @property
    def log_evidence(self) -> float:
        """Log evidence of all rows seen."""
        return float(-0.5 * self.z @ self.z - np.log(np.diagonal(self.lower)).sum() - 0.5 * self.rows * LOG_2PI)

    def predict(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> Prediction:
        """Mean and variance of the function at the rows of X.

        Args:
            X: (m, d), columns in the order of `covariates`.
            linear: the linear block's features at those rows, (m, q); needed where the posterior has a block.
        """
        rows, features = self._rows(X, linear)
        cross = self._cross(rows, features)
        v = solve_lower(self.lower, cross)
        prior = self._prior_variance(rows, features)
        variance = np.maximum(prior - np.einsum("ij,ij->j", v, v), 0.0)
        return Prediction(v.T @ self.z, variance, float(self._values[-1]))

    def covariance(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> Array:
        """Joint posterior covariance of the function at the rows of X, (m, m)."""
        rows, features = self._rows(X, linear)
        v = solve_lower(self.lower, self._cross(rows, features))
        return self._between(rows, rows, features, features) - v.T @ v

    def sample(
        self, X: ArrayLike, size: int, rng: np.random.Generator, *, linear: ArrayLike | None = None, noise: bool = False
    ) -> Array:
        """Joint draws of the function (with `noise`, of observations) at the rows of X, (size, m)."""
        mean = self.predict(X, linear=linear).mean
        covariance = self.covariance(X, linear=linear)
        if noise:
            covariance[np.diag_indices(len(mean))] += self._values[-1]
        if not len(mean):
            return np.empty((size, 0))
        # A covariance of close rows is singular by nature, and it is a difference of numbers as large as the prior's,
        # so rounding is relative to those.
        scale = max(float(np.mean(self._prior_variance(*self._rows(X, linear)))), 1e-300)
        covariance[np.diag_indices(len(mean))] += 1e-12 * scale
        factor = factorise(covariance, what=f"the joint covariance of {self.composition} at {len(mean)} rows")
        return mean + rng.standard_normal((size, len(mean))) @ np.tril(factor.lower).T

    def components(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> tuple[Component, ...]:
        """Mean and variance of every product's own part at the rows of X, and of the linear block's last."""
        rows, features = self._rows(X, linear)
        parts = []
        for p, product in enumerate(self.composition):
            cross = product_covariance(self.inputs, p, self._values, self.inputs.X, rows)
            prior = product_diagonal(self.inputs, p, self._values, rows)
            parts.append(self._component(product, cross, prior))
        block = self.inputs.block
        if block is not None and features is not None:
            weighted = features @ block.covariance
            cross = block.features @ weighted.T
            parts.append(self._component(None, cross, np.einsum("ij,ij->i", weighted, features)))
        return tuple(parts)

    def _component(self, product: Product | None, cross: Array, prior: Array) -> Component:
        v = solve_lower(self.lower, cross)
        return Component(product, cross.T @ self.alpha, np.maximum(prior - np.einsum("ij,ij->j", v, v), 0.0))

    def shares(self) -> Mapping[Product | str | None, float]:
        """Each part's share of the variance over the rows seen; ``noise`` is what remains, None the linear block.

        A part's variance is that of its posterior mean over the rows; shares add up to 1.
        """
        linear = None if self.inputs.block is None else self.inputs.block.features
        sizes: dict[Product | str | None, float] = {
            part.product: float(np.var(part.mean)) for part in self.components(self.inputs.X, linear=linear)
        }
        sizes["noise"] = float(self._values[-1])
        total = sum(sizes.values())
        return {name: size / total for name, size in sizes.items()}

    def weights(self) -> tuple[Array, Array]:
        """Posterior mean (q,) and covariance (q, q) of the linear block's weights."""
        block = self.inputs.block
        if block is None:
            raise DataError(f"the posterior of {self.composition} has no linear block")
        prior = block.features @ block.covariance  # Cov(y, w)
        v = solve_lower(self.lower, prior)
        return v.T @ self.z, block.covariance - v.T @ v

    def advantage(self, X: ArrayLike, reward: Reward) -> tuple[Array, Array]:
        """Mean and variance of f_advantage(s) = r(s,1) - r(s,0) at the rows of X (method (33)), in closed form."""
        points = self._points(X)
        reward.contexts(points, self.covariates)  # refuses features that are not there, whatever the block has
        weights = self.weights()
        names = () if self.inputs.block is None else self.inputs.block.names
        if names != reward.names:
            raise DataError(
                f"the posterior's linear block has the features {', '.join(names)}, the reward model "
                f"{', '.join(reward.names)}"
            )
        return reward.advantage_of(*weights, points, self.covariates)

    def grow(self, X: ArrayLike, y: ArrayLike, *, linear: ArrayLike | None = None) -> Posterior:
        """The posterior with a batch of rows added, exactly, without factorising the old rows again.

        L of the enlarged matrix is [[L, 0], [B', C]] with B = L⁻¹K(old, new) and CC' = K(new, new) + σ²I - B'B.
        """
        rows, features = self._rows(X, linear)
        target = np.array(y, dtype=np.float64, ndmin=1)
        if target.shape != (len(rows),) or not np.isfinite(target).all():
            raise DataError(f"a batch of {len(rows)} rows needs as many finite targets, got shape {target.shape}")
        if not len(rows):
            return self
        b = solve_lower(self.lower, self._cross(rows, features))
        corner = self._between(rows, rows, features, features) - b.T @ b
        corner[np.diag_indices(len(rows))] += self._values[-1] + self.jitter
        factor = factorise(corner, what=f"{len(rows)} new rows of {self.inputs.label}")
        n, m = self.rows, len(rows)
        lower = np.zeros((n + m, n + m), order="F")
        lower[:n, :n], lower[n:, :n], lower[n:, n:] = self.lower, b.T, factor.lower
        z = np.concatenate([self.z, solve_lower(factor.lower, target - b.T @ self.z)])
        old = self.inputs
        block = old.block
        if block is not None and features is not None:
            block = block.at(np.vstack([block.features, features]))
        inputs = replace(
            old,
            X=np.vstack([old.X, rows]),
            y=np.concatenate([old.y, target]),
            ends=np.append(old.ends, n + m),
            block=block,
        )
        return Posterior(self.hyperparameters, self.covariates, inputs, lower, max(self.jitter, factor.jitter), z)

    def _points(self, X: ArrayLike) -> Array:
        return rows_of(X, self.covariates)

    def _rows(self, X: ArrayLike, linear: ArrayLike | None) -> tuple[Array, Array | None]:
        rows = self._points(X)
        block = self.inputs.block
        if block is None:
            if linear is not None:
                raise DataError(f"the posterior of {self.composition} has no linear block, but features were given")
            return rows, None
        if linear is None:
            raise DataError(f"the linear block needs its features ({', '.join(block.names)}) at these rows: linear=")
        return rows, features_of(linear, len(rows), len(block.names))

    def _between(self, rows: Array, others: Array, features: Array | None, other: Array | None) -> Array:
        total = np.zeros((len(rows), len(others)))
        for p in range(len(self.composition)):
            total += product_covariance(self.inputs, p, self._values, rows, others)
        if self.inputs.block is not None and features is not None and other is not None:
            total += features @ self.inputs.block.covariance @ other.T
        return total

    def _cross(self, rows: Array, features: Array | None) -> Array:
        block = self.inputs.block
        return self._between(self.inputs.X, rows, None if block is None else block.features, features)

    def _prior_variance(self, rows: Array, features: Array | None) -> Array:
        total = np.zeros(len(rows))
        for p in range(len(self.composition)):
            total += product_diagonal(self.inputs, p, self._values, rows)
        if self.inputs.block is not None and features is not None:
            total += np.einsum("ij,jk,ik->i", features, self.inputs.block.covariance, features)
        return total


def rows_of(X: ArrayLike, covariates: Sequence[str]) -> Array:
    """Rows to predict at or to learn from, (m, d), copied and checked."""
    rows = np.array(X, dtype=np.float64, ndmin=2)
    if rows.ndim != 2 or rows.shape[1] != len(covariates):
        raise DataError(f"rows need {len(covariates)} columns ({', '.join(covariates)}), got shape {rows.shape}")
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise DataError(f"{covariates[bad[0][1]]} of row {bad[0][0]} is not finite")
    return rows


def features_of(linear: ArrayLike, rows: int, size: int) -> Array:
    """Features of a linear block at those rows, (m, q), copied and checked."""
    features = np.array(linear, dtype=np.float64, ndmin=2)
    if features.shape != (rows, size):
        raise DataError(f"linear= needs shape ({rows}, {size}), got {features.shape}")
    if not np.isfinite(features).all():
        raise DataError("linear= holds a value that is not finite")
    return features


def prior_only(
    hyperparameters: Hyperparameters, covariates: Sequence[str], *, block: LinearBlock | None = None
) -> Posterior:
    """The posterior before any row: predictions are the prior's. `block` says the linear prior, not rows."""
    names = tuple(covariates)
    inputs = Inputs(
        hyperparameters.composition,
        names,
        np.empty((0, len(names))),
        np.empty(0),
        np.empty(0, dtype=np.int64),
        locate(hyperparameters.composition, names, "new"),
        None if block is None else block.rows(0),
        "new",
    )
    return Posterior(hyperparameters, names, inputs, np.empty((0, 0)), 0.0, np.empty(0))

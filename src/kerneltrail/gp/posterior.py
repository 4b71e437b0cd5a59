"""The posterior of a Gaussian process with known hyperparameters: predictions, parts, advantage, exact growth.

By a Cholesky factor of the rows' covariance; where its rounding hides the noise, by the weights of features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp.dense import factor_of, product_covariance, product_diagonal
from kerneltrail.gp.features import FINEST
from kerneltrail.gp.gram import MOST_REFLECTED
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for, locate
from kerneltrail.gp.numerics import LOG_2PI, RESOLUTION, factorise, root, solve_lower, solve_upper
from kerneltrail.gp.prediction import Component, Prediction, features_of, refuse_overflow, rows_of, targets_of
from kerneltrail.gp.regression import Basis, WeightPosterior
from kerneltrail.gp.reward import LinearBlock, Reward
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.hyperparameters import Hyperparameters

Array = NDArray[np.float64]

FEATURE_TOLERANCE = 1e-6
"""Error that features may make in a log evidence of `regression.HORIZON` rows, where a posterior is made of them."""


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process given rows. Build it with `Posterior.fit`; extend it with `grow`.

    Attributes:
        hyperparameters: kernel and hyperparameters.
        covariates: names of the columns of X.
        inputs: the rows seen.
        lower: Cholesky factor of their covariance, noise included (lower triangle). Empty where its rounding hides
            the noise: then everything comes from the weights of features.
        z: L⁻¹y.
    """

    hyperparameters: Hyperparameters
    covariates: tuple[str, ...]
    inputs: Inputs
    lower: Array
    z: Array

    @classmethod
    def fit(cls, user: Rows, hyperparameters: Hyperparameters, *, block: LinearBlock | None = None) -> Posterior:
        """Condition on all of a user's rows."""
        inputs = inputs_for(user, hyperparameters.composition, block=block)
        return cls._of(hyperparameters, inputs)

    @classmethod
    def _of(cls, hyperparameters: Hyperparameters, inputs: Inputs) -> Posterior:
        """Condition on inputs that nobody else holds, so that they need no copy."""
        try:
            lower = factor_of(inputs, hyperparameters.values_array)
        except NumericalError as problem:
            posterior = cls(hyperparameters, inputs.covariates, inputs, np.empty((0, 0)), np.empty(0))
            try:
                _ = posterior._regression
            except (KernelError, NumericalError):
                raise problem from None
            return posterior
        return cls(hyperparameters, inputs.covariates, inputs, lower, solve_lower(lower, inputs.y))

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

    @property
    def by_weights(self) -> bool:
        """Whether it comes from the weights of features, and not from a factor of the rows' covariance."""
        return self.rows > 0 and not self.lower.size

    @cached_property
    def _regression(self) -> tuple[Basis, WeightPosterior]:
        """Features on the box of the rows seen, and the posterior of their weights."""
        return self._regression_on(*self.inputs.reach)

    def _regression_on(self, low: Array, high: Array) -> tuple[Basis, WeightPosterior]:
        basis = Basis(self.hyperparameters, self.covariates, tuple(low), tuple(high), FEATURE_TOLERANCE, FINEST)
        if basis.rank > MOST_REFLECTED or not basis.attained:
            raise NumericalError(f"{self.inputs.label} has no features that tell its noise from rounding")
        block = self.inputs.block
        stacked = self._stacked(basis, self.inputs.X, None if block is None else block.features)
        noise = float(self._values[-1])
        return basis, WeightPosterior.from_rows(stacked, self.inputs.y, noise, what=self.inputs.label)

    def _stacked(self, basis: Basis, rows: Array, features: Array | None) -> Array:
        """[Φ; RᵀB] at rows, (r + q, m), with RRᵀ the covariance of the linear block's weights."""
        phi = basis.features(rows)
        return phi if features is None else np.vstack([phi, self.block_root.T @ features.T])

    @cached_property
    def block_root(self) -> Array:
        """R with RRᵀ the covariance of the linear block's weights."""
        assert self.inputs.block is not None  # only asked for where there is a block
        return root(self.inputs.block.covariance, what="the linear block's prior")

    def _features(self, rows: Array, features: Array | None) -> tuple[Basis, WeightPosterior, Array]:
        """A basis that holds on the rows seen and on these, the posterior of its weights, and its features at these."""
        low, high = self.inputs.reach
        least, most = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        if (least >= low).all() and (most <= high).all():
            basis, weights = self._regression
        else:
            basis, weights = self._regression_on(np.minimum(low, least), np.maximum(high, most))
        return basis, weights, self._stacked(basis, rows, features)

    def features_at(self, rows: Array) -> tuple[WeightPosterior, Array, list[NDArray[np.int64]]]:
        """The weights' posterior, features at rows (the linear block's are 0), and which of them each product has."""
        block = self.inputs.block
        linear = None if block is None else np.zeros((len(rows), len(block.names)))
        basis, weights, stacked = self._features(rows, linear)
        return weights, stacked, basis.groups(len(stacked))

    @cached_property
    def alpha(self) -> Array:
        """K⁻¹y, (n,)."""
        if self.by_weights:
            block = self.inputs.block
            _, weights, stacked = self._features(self.inputs.X, None if block is None else block.features)
            return (self.inputs.y - weights.mean @ stacked) / weights.noise
        return solve_upper(self.lower, self.z)

    def smoothed(self, y: Array) -> Array:
        """The function's mean at the rows seen, had their targets been others, (n,)."""
        noise = float(self._values[-1])
        if self.by_weights:
            block = self.inputs.block
            _, weights, stacked = self._features(self.inputs.X, None if block is None else block.features)
            return np.asarray(weights.spread(stacked).T @ weights.spread(stacked @ y))
        return y - noise * solve_upper(self.lower, solve_lower(self.lower, y))

    def inner(self, columns: Array) -> Array:
        """CᵀK⁻¹C of columns over the rows seen, (n, c), with K their covariance, noise included."""
        if self.by_weights:
            block = self.inputs.block
            _, weights, stacked = self._features(self.inputs.X, None if block is None else block.features)
            v = weights.spread(stacked @ columns)
            return (columns.T @ columns - v.T @ v) / weights.noise
        whitened = solve_lower(self.lower, columns)
        return whitened.T @ whitened

    @property
    def log_evidence(self) -> float:
        """Log evidence of all rows seen."""
        if self.by_weights:
            return self._regression[1].log_evidence
        return float(-0.5 * self.z @ self.z - np.log(np.diagonal(self.lower)).sum() - 0.5 * self.rows * LOG_2PI)

    def predict(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> Prediction:
        """Mean and variance of the function at the rows of X.

        Args:
            X: (m, d), columns in the order of `covariates`.
            linear: the linear block's features at those rows, (m, q); needed where the posterior has a block.
        """
        rows, features = self._rows(X, linear)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            if self.by_weights:
                _, weights, stacked = self._features(rows, features)
                mean, variance = weights.moments(stacked)
            else:
                v = solve_lower(self.lower, self._cross(rows, features))
                prior = self._prior_variance(rows, features)
                mean, variance = v.T @ self.z, np.maximum(prior - np.einsum("ij,ij->j", v, v), 0.0)
        self._check(rows, mean, variance)
        return Prediction(mean, variance, float(self._values[-1]))

    def _check(self, rows: Array, mean: Array, variance: Array) -> None:
        what = f"the prediction of {self.composition or 'noise alone'}"
        refuse_overflow(what, self.composition.covariates, rows, self.covariates, mean, variance)

    def covariance(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> Array:
        """Joint posterior covariance of the function at the rows of X, (m, m)."""
        rows, features = self._rows(X, linear)
        if self.by_weights:
            _, weights, stacked = self._features(rows, features)
            v = weights.spread(stacked)
            return weights.noise * (v.T @ v)
        v = solve_lower(self.lower, self._cross(rows, features))
        return self._between(rows, rows, features, features) - v.T @ v

    def sample(
        self, X: ArrayLike, size: int, rng: np.random.Generator, *, linear: ArrayLike | None = None, noise: bool = False
    ) -> Array:
        """Joint draws of the function (with `noise`, of observations) at the rows of X, (size, m)."""
        mean = self.predict(X, linear=linear).mean
        if self.by_weights:
            _, weights, stacked = self._features(*self._rows(X, linear))
            deviate = rng.standard_normal((size, len(stacked))) @ weights.spread(stacked)
            deviate += rng.standard_normal(deviate.shape) if noise else 0.0
            return mean + np.sqrt(weights.noise) * deviate
        covariance = self.covariance(X, linear=linear)
        if noise:
            covariance[np.diag_indices(len(mean))] += self._values[-1]
        if not len(mean):
            return np.empty((size, 0))
        # A covariance of close rows is singular by nature, and it is a difference of numbers as large as the prior's,
        # so rounding is relative to those. What makes it definite must not be seen beside the noise.
        scale = max(float(np.mean(self._prior_variance(*self._rows(X, linear)))), 1e-300)
        what = f"the joint covariance of {self.composition} at {len(mean)} rows"
        half = None
        if 1e-12 * scale <= 1e-4 * self._values[-1]:
            definite = covariance + 1e-12 * scale * np.eye(len(mean))
            with suppress(NumericalError):
                half = np.tril(factorise(definite, what=what, resolution=0.0))
        if half is None:
            half = root(covariance, what=what, scale=scale)
        return mean + rng.standard_normal((size, len(mean))) @ half.T

    def components(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> tuple[Component, ...]:
        """Mean and variance of every product's own part at the rows of X, and of the linear block's last."""
        rows, features = self._rows(X, linear)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            parts = self._parts(rows, features)
        for part in parts:
            self._check(rows, part.mean, part.variance)
        return parts

    def _parts(self, rows: Array, features: Array | None) -> tuple[Component, ...]:
        products = (*self.composition, *(() if features is None else (None,)))
        if self.by_weights:
            basis, weights, stacked = self._features(rows, features)
            moments = weights.parts(stacked, basis.groups(len(stacked)))
            return tuple(Component(product, *part) for product, part in zip(products, moments, strict=True))
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
        if self.by_weights:
            return self._regression[1].last(self.block_root)
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
        target = targets_of(y, len(rows))
        if not len(rows):
            return self
        old, block = self.inputs, self.inputs.block
        if block is not None and features is not None:
            block = block.at(np.vstack([block.features, features]))
        n, m = self.rows, len(rows)
        X, all_targets = np.vstack([old.X, rows]), np.concatenate([old.y, target])
        inputs = replace(old, X=X, y=all_targets, ends=np.append(old.ends, n + m), block=block)
        if self.by_weights:
            return Posterior._of(self.hyperparameters, inputs)
        b = solve_lower(self.lower, self._cross(rows, features))
        corner = self._between(rows, rows, features, features)
        diagonal = np.diagonal(corner) + self._values[-1]
        corner -= b.T @ b
        corner[np.diag_indices(m)] += self._values[-1]
        try:
            factor = factorise(corner, what=f"{m} new rows of {self.inputs.label}", resolution=0.0)
        except NumericalError:
            return Posterior._of(self.hyperparameters, inputs)
        if np.any(np.diagonal(factor) ** 2 < RESOLUTION * diagonal):  # of the enlarged matrix, as in `factorise`
            return Posterior._of(self.hyperparameters, inputs)
        lower = np.zeros((n + m, n + m), order="F")
        lower[:n, :n], lower[n:, :n], lower[n:, n:] = self.lower, b.T, factor
        z = np.concatenate([self.z, solve_lower(factor, target - b.T @ self.z)])
        return Posterior(self.hyperparameters, self.covariates, inputs, lower, z)

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


def prior_only(
    hyperparameters: Hyperparameters, covariates: Sequence[str], *, block: LinearBlock | None = None
) -> Posterior:
    """The posterior before any row: predictions are the prior's. Of `block` only the prior is used."""
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
    return Posterior(hyperparameters, names, inputs, np.empty((0, 0)), np.empty(0))

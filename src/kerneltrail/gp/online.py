"""Online state by sufficient statistics: for fixed hyperparameters, time and memory do not depend on the rows seen.

With features Φ, the data enter only through ΦΦᵀ, Φy, y'y and n (method §5.4): a batch of b rows
costs O(b r²) whatever came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.arrays import real_numbers
from kerneltrail.errors import DataError, KernelError
from kerneltrail.gp.inputs import Rows
from kerneltrail.gp.numerics import root
from kerneltrail.gp.prediction import Component, Prediction, features_of, refuse_overflow, rows_of, targets_of
from kerneltrail.gp.regression import Basis, WeightPosterior
from kerneltrail.gp.reward import LinearBlock, Reward
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.hyperparameters import Hyperparameters

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OnlineState:
    """What is known of a user after any number of rows, in a size that does not grow with them. Immutable.

    Build it with `start`; `update` returns the next state.

    Attributes:
        basis: the features.
        linear: prior covariance of the linear block's weights, (q, q), or None.
        gram: sums over rows of [Φ; RᵀB; y][Φ; RᵀB; y]ᵀ with RRᵀ = linear, (r + q + 1, r + q + 1).
        rows: number of rows seen.
        max_rank: largest number of features that widening may lead to.
        widening_error: largest error, over all widenings of the box, of an old feature in terms of the new ones.
        block_root: R, through which the sums are seen: its weights are independent, as those of Φ are. Another machine
            may find another one of the same covariance, so it is kept with the sums.
    """

    basis: Basis
    linear: Array | None
    gram: Array
    rows: int
    max_rank: int = 1500
    widening_error: float = 0.0
    block_root: Array | None = None

    def __post_init__(self) -> None:
        if self.linear is not None and self.block_root is None:
            object.__setattr__(self, "block_root", root(self.linear, what="the linear block's prior"))

    @classmethod
    def start(
        cls,
        hyperparameters: Hyperparameters,
        covariates: Sequence[str],
        *,
        low: ArrayLike,
        high: ArrayLike,
        margin: float = 0.25,
        linear: ArrayLike | None = None,
        tol: float = 1e-8,
        max_rank: int = 1500,
    ) -> OnlineState:
        """A state that has seen nothing.

        Args:
            hyperparameters: the kernel, fixed from here on.
            covariates: names of the columns of X.
            low: smallest value of each covariate to be expected, (d,) or one number.
            high: largest value to be expected. Rows outside are taken all the same; the box is then widened.
            margin: share of the range by which the box exceeds it on either side, so that widening is rare.
            linear: prior covariance of a linear block's weights, (q, q).
            tol: error allowed in a log evidence.
            max_rank: refuse a basis with more features than this (products of several series can have thousands).
        """
        names = tuple(covariates)
        a = np.broadcast_to(real_numbers(low, "low="), (len(names),))
        b = np.broadcast_to(real_numbers(high, "high="), (len(names),))
        if not (np.isfinite(a).all() and np.isfinite(b).all() and (a <= b).all()):
            raise DataError("an online state needs finite low ≤ high for every covariate")
        extra = margin * np.where(b > a, b - a, 1.0)
        basis = Basis(hyperparameters, names, tuple(a - extra), tuple(b + extra), tol)
        _check_rank(basis, max_rank)
        prior = None if linear is None else real_numbers(linear, "linear=, the weights' prior covariance,", ndmin=2)
        if prior is not None and (prior.shape != (len(prior), len(prior)) or not np.isfinite(prior).all()):
            raise DataError(f"linear= is the weights' prior covariance, (q, q) and finite; got shape {prior.shape}")
        size = basis.rank + (0 if prior is None else len(prior)) + 1
        return cls(basis, prior, np.zeros((size, size)), 0, max_rank)

    @classmethod
    def of_rows(cls, basis: Basis, rows: Rows, block: LinearBlock | None, max_rank: int) -> OnlineState:
        """The state after a user's rows, all of them in the basis' box."""
        state = cls(basis, None if block is None else block.covariance, np.empty((0, 0)), len(rows.y), max_rank)
        features = state._stack(rows.X, None if block is None else block.features)
        stacked = np.vstack([features, rows.y])
        return replace(state, gram=stacked @ stacked.T)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The kernel and its hyperparameters."""
        return self.basis.hyperparameters

    @property
    def composition(self) -> Composition:
        """The kernel."""
        return self.hyperparameters.composition

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X."""
        return self.basis.covariates

    def features_at(self, rows: Array) -> tuple[WeightPosterior, Array, list[NDArray[np.int64]]]:
        """The weights' posterior, features at rows (the linear block's are 0), and which of them each product has."""
        linear = None if self.linear is None else np.zeros((len(rows), len(self.linear)))
        state, _, stacked = self._at(rows, linear)
        return state._weights, stacked, state.basis.groups(len(stacked))

    def update(self, X: ArrayLike, y: ArrayLike, *, linear: ArrayLike | None = None) -> OnlineState:
        """The state after a batch of rows more."""
        rows = rows_of(X, self.basis.covariates)
        target = targets_of(y, len(rows))
        if not len(target):
            return self
        state = self._covering(rows)
        stacked = np.vstack([state._stack(rows, linear), target])
        return replace(state, gram=state.gram + stacked @ stacked.T, rows=state.rows + len(target))

    def _stack(self, rows: Array, linear: ArrayLike | None) -> Array:
        """[Φ; RᵀB] at rows, (r + q, n): features whose weights have the prior N(0, I)."""
        features = self.basis.features(rows)
        if self.linear is None or self.block_root is None:
            if linear is not None:
                raise DataError("this online state has no linear block, but features were given")
            return features
        if linear is None:
            raise DataError("this online state has a linear block, which needs its features at these rows: linear=")
        block = features_of(linear, len(rows), len(self.linear))
        return np.vstack([features, self.block_root.T @ block.T])

    def _at(self, X: ArrayLike, linear: ArrayLike | None) -> tuple[OnlineState, Array, Array]:
        """A state whose box holds the rows of X, these rows, and their features."""
        rows = rows_of(X, self.basis.covariates)
        state = self._covering(rows)
        return state, rows, state._stack(rows, linear)

    def _covering(self, rows: Array) -> OnlineState:
        """A state whose box holds the rows: itself, or one on a wider basis (values outside are never clipped)."""
        if not len(rows):
            return self
        low, high = np.array(self.basis.low), np.array(self.basis.high)
        least, most = rows.min(axis=0), rows.max(axis=0)
        if (least >= low).all() and (most <= high).all():
            return self
        wide = 0.5 * (high - low)  # widen by half the box at least, so that a drifting covariate widens it rarely
        new_low = np.where(least < low, np.minimum(least, low - wide), low)
        new_high = np.where(most > high, np.maximum(most, high + wide), high)
        basis = replace(self.basis, low=tuple(new_low), high=tuple(new_high))
        _check_rank(basis, self.max_rank)
        if self.rows == 0:
            size = basis.rank + len(self.gram) - self.basis.rank
            return replace(self, basis=basis, gram=np.zeros((size, size)))
        # Both bases give the same kernel on the old box, so each new feature is a combination of the old ones there,
        # with weights of norm at most 1 (it has norm 1 in the kernel's function space). They are found by least squares
        # on points of the old box, and applied to the sums.
        points = _points(low, high, 4 * max(basis.rank, self.basis.rank))
        old, new = self.basis.features(points), basis.features(points)
        weights = scipy.linalg.lstsq(old.T, new.T, cond=1e-13, lapack_driver="gelsd")[0].T
        error = float(np.abs(weights @ old - new).max(initial=0.0))
        rest = len(self.gram) - self.basis.rank
        change = scipy.linalg.block_diag(weights, np.eye(rest))
        gram = change @ self.gram @ change.T
        return replace(self, basis=basis, gram=gram, widening_error=max(self.widening_error, error))

    @cached_property
    def _weights(self) -> WeightPosterior:
        """The posterior of the weights of all features."""
        noise = float(self.hyperparameters.values_array[-1])
        what = f"the online state of {self.hyperparameters.composition}"
        return WeightPosterior.from_sums(self.gram, self.rows, noise, what=what)

    @property
    def log_evidence(self) -> float:
        """Log evidence of all rows seen."""
        return self._weights.log_evidence if self.rows else 0.0

    def predict(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> Prediction:
        """Mean and variance of the function at the rows of X."""
        state, rows, stacked = self._at(X, linear)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name in the next line
            mean, variance = state._weights.moments(stacked)
        self._check(rows, mean, variance)
        return Prediction(mean, variance, state._weights.noise)

    def _check(self, rows: Array, mean: Array, variance: Array) -> None:
        composition = self.hyperparameters.composition
        what = f"the prediction of {composition or 'noise alone'}"
        refuse_overflow(what, composition.covariates, rows, self.basis.covariates, mean, variance)

    def weights(self) -> tuple[Array, Array]:
        """Posterior mean (q,) and covariance (q, q) of the linear block's weights w = Ru, u ~ N(0, I) beforehand."""
        if self.block_root is None:
            raise DataError(f"the online state of {self.hyperparameters.composition} has no linear block")
        return self._weights.last(self.block_root)

    def advantage(self, X: ArrayLike, reward: Reward) -> tuple[Array, Array]:
        """Mean and variance of f_advantage(s) = r(s,1) - r(s,0) at the rows of X (method (33)), in closed form."""
        return reward.advantage_of(*self.weights(), rows_of(X, self.basis.covariates), self.basis.covariates)

    def components(self, X: ArrayLike, *, linear: ArrayLike | None = None) -> tuple[Component, ...]:
        """Mean and variance of every product's own part at the rows of X, and of the linear block's last."""
        state, rows, stacked = self._at(X, linear)
        products = (*self.hyperparameters.composition, *(() if self.linear is None else (None,)))
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            parts = state._weights.parts(stacked, state.basis.groups(len(stacked)))
        for part in parts:
            self._check(rows, *part)
        return tuple(Component(product, *part) for product, part in zip(products, parts, strict=True))


def _check_rank(basis: Basis, most: int) -> None:
    if basis.rank > most:
        box = ", ".join(
            f"{name} from {low:g} to {high:g}"
            for name, low, high in zip(basis.covariates, basis.low, basis.high, strict=True)
        )
        raise KernelError(
            f"{basis.hyperparameters.composition} needs {basis.rank} features on {box}, more than {most}: grow a "
            "Posterior, or loosen tol"
        )


def _points(low: Array, high: Array, count: int) -> Array:
    """Points that fill a box densely enough to pin functions down on it: Chebyshev nodes, shuffled across columns."""
    d = len(low)
    rng = np.random.default_rng(0)  # a fixed design, not a source of randomness
    count = max(count, 64) * max(1, d)
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / count)
    columns = [nodes if j == 0 else rng.permutation(nodes) for j in range(d)]
    return low + (high - low) * np.stack(columns, axis=1) if d else np.empty((count, 0))

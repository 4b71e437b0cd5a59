"""The linear block of a reward model: features with a fixed Gaussian prior on their weights (method §8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.arrays import finite_numbers
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp.numerics import half
from kerneltrail.gp.prediction import refuse_overflow

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearBlock:
    """Rows of features B with weights w ~ N(0, Σ): adds B Σ Bᵀ to the covariance; a constant mean is one feature.

    Attributes:
        features: B, shape (n, q), one row for each row of data.
        covariance: Σ, shape (q, q).
        names: what each feature is called.
    """

    features: Array
    covariance: Array
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        label = f"the linear block ({', '.join(self.names)})"
        features = finite_numbers(self.features, f"features of {label}", self.names, ndmin=2)
        covariance = finite_numbers(self.covariance, f"the prior covariance of {label}", self.names, ndmin=2)
        q = len(self.names)
        if features.ndim != 2 or features.shape[1] != q or covariance.shape != (q, q):
            raise DataError(
                f"a linear block of {q} features ({', '.join(self.names)}) needs features (n, {q}) and a covariance "
                f"({q}, {q}), got {features.shape} and {covariance.shape}"
            )
        if (np.abs(covariance - covariance.T) > 1e-10 * np.abs(covariance)).any():
            raise DataError(f"the prior covariance of {label} is not symmetric")
        features.setflags(write=False)
        covariance.setflags(write=False)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "covariance", covariance)

    @cached_property
    def weighted(self) -> Array:
        """B R with R Rᵀ = Σ: features whose plain inner product is the block's covariance, shape (n, q)."""
        return self.features @ half(self.covariance, what=f"the prior of the linear block ({', '.join(self.names)})")

    def rows(self, count: int) -> LinearBlock:
        """The block for the first `count` rows."""
        return self if count == len(self.features) else LinearBlock(self.features[:count], self.covariance, self.names)

    def at(self, features: Array) -> LinearBlock:
        """The same prior at other rows."""
        return LinearBlock(features, self.covariance, self.names)


@dataclass(frozen=True)
class Reward:
    """How a reward model is laid out: r(s,a) = f_baseline(s) + a f_advantage(s) + c + ε (method (32)).

    The linear block has the features [1, a, a·φ₁(s), …]: a constant mean, and the action with each expert feature.
    Centred, a - π stands for a, where π is the probability with which the action was drawn, and the block has also π,
    π·φ₁(s), …: then a baseline that is wrong does not leak into the advantage (method (41)).
    Without an action it is a constant mean alone (`Reward.constant`), of which everybody has one of their own.

    Attributes:
        features: expert features φ(s), by covariate name.
        advantage_variance: prior variance of each advantage weight.
        constant_variance: prior variance of the constant mean; 0 leaves it out.
        intercept: whether the advantage has a constant of its own (the action's main effect).
        variances: prior variance of every feature's weight, in the order of `names`, where they were learnt from a
            group (`population.spread`); None for the two above.
        coding: ``centred`` where pilot users logged the action's probability, which makes it ``plain`` otherwise; or
            ``plain`` whatever they logged, as in the paper.
        typical: the pilot users' average probability, for rows where nobody logged one; None without a centred coding.
        slopes: covariates of which a user has a slope of one's own, besides what the kernel says; the last features.
        covariance: prior covariance of all weights, a row for each of `names`, where it was learnt from a group
            (method (51)); it stands before the variances.
    """

    features: tuple[str, ...] = ()
    advantage_variance: float = 1.0
    constant_variance: float = 10.0
    intercept: bool = True
    variances: tuple[float, ...] | None = None
    coding: Literal["centred", "plain"] = "centred"
    typical: float | None = None
    slopes: tuple[str, ...] = ()
    covariance: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "slopes", tuple(self.slopes))
        if self.coding not in ("centred", "plain") or (self.coding == "plain" and self.typical is not None):
            raise DataError(f"the coding of an action is 'centred' or 'plain', got {self.coding!r}")
        if self.typical is not None and not 0.0 <= self.typical <= 1.0:
            raise DataError(f"the typical probability of the action lies in [0, 1], got {self.typical}")
        if self.advantage_variance <= 0 or self.constant_variance < 0:
            raise DataError("a reward model needs advantage_variance > 0 and constant_variance ≥ 0")
        if not self.names:
            raise DataError("a reward model needs at least one feature, an intercept or a constant mean")
        if self.variances is not None:
            object.__setattr__(self, "variances", tuple(float(v) for v in self.variances))
            if len(self.variances) != len(self.names) or not min(self.variances) > 0:
                raise DataError(f"a reward model of {', '.join(self.names)} needs as many variances above 0")
        if self.covariance is not None:
            object.__setattr__(self, "covariance", tuple(tuple(float(v) for v in row) for row in self.covariance))
            if np.shape(self.covariance) != (len(self.names), len(self.names)):
                raise DataError(
                    f"a reward model of {', '.join(self.names)} needs a covariance of as many rows and columns"
                )

    @classmethod
    def constant(cls, variance: float) -> Reward:
        """A constant mean with that prior variance, and no action."""
        return cls(constant_variance=variance, intercept=False)

    @property
    def acts(self) -> bool:
        """Whether there is an action with an advantage; else the block is a constant mean alone."""
        return self.intercept or bool(self.features)

    @property
    def centred(self) -> bool:
        """Whether the action is coded as its difference from the probability with which it was drawn."""
        return self.typical is not None and self.acts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the block's features, in order."""
        constant = ("constant",) if self.constant_variance > 0 else ()
        blocks = ("action", "probability") if self.centred else ("action",)
        intercept = ("",) if self.intercept else ()
        contexts = (*intercept, *(f"×{name}" for name in self.features))
        actions = tuple(block + context for block in blocks for context in contexts)
        return constant + actions + tuple(f"slope×{name}" for name in self.slopes)

    @property
    def advantage(self) -> slice:
        """Which of the block's features belong to the advantage."""
        start = 1 if self.constant_variance > 0 else 0
        return slice(start, start + self.intercept + len(self.features))

    @cached_property
    def weight_covariance(self) -> Array:
        """Prior covariance of the features' weights, (q, q), read-only."""
        between = np.diag(self.weight_variances) if self.covariance is None else np.array(self.covariance)
        between.setflags(write=False)
        return between

    @property
    def weight_variances(self) -> Array:
        """Prior variance of every feature's weight, (q,)."""
        if self.covariance is not None:
            return np.diagonal(np.array(self.covariance)).copy()
        if self.variances is not None:
            return np.array(self.variances)
        variances = np.full(len(self.names), self.advantage_variance)
        if self.constant_variance > 0:
            variances[0] = self.constant_variance
        return variances

    def contexts(self, X: Array, covariates: Sequence[str]) -> Array:
        """[1, φ(s)] for each row: what the action is multiplied with."""
        missing = [name for name in self.features if name not in covariates]
        if missing:
            raise DataError(
                f"the reward model's features {', '.join(missing)} are not among the covariates {', '.join(covariates)}"
            )
        columns = [np.ones(len(X))] if self.intercept else []
        columns += [np.asarray(X, dtype=np.float64)[:, list(covariates).index(name)] for name in self.features]
        return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))

    def advantage_of(self, mean: Array, covariance: Array, X: Array, covariates: Sequence[str]) -> tuple[Array, Array]:
        """Mean and variance of the advantage at rows of X, from those of the block's weights."""
        contexts = self.contexts(X, covariates)
        between = covariance[self.advantage, self.advantage]
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            advantage = contexts @ mean[self.advantage]
            variance = np.maximum(np.einsum("ij,jk,ik->i", contexts, between, contexts), 0.0)
        refuse_overflow(f"the advantage of {', '.join(self.names)}", self.features, X, covariates, advantage, variance)
        return advantage, variance

    def coded(self, X: Array, covariates: Sequence[str], action: Assignment | ArrayLike | None) -> Array:
        """The features of the action at each row: [a, a·φ(s)], or centred [a - π, (a - π)·φ(s), π, π·φ(s)]."""
        assignment = Assignment.read(() if action is None else action)
        assert assignment is not None  # an empty one is one
        assignment.checked(len(X), "a reward model")
        contexts = self.contexts(X, covariates)
        return np.hstack([factor[:, None] * contexts for factor in assignment.coded(self.typical)])

    def design(self, X: Array, covariates: Sequence[str], action: Assignment | ArrayLike | None) -> Array:
        """The features of each row, (n, q): the constant's, the action's, slopes."""
        parts = [np.ones((len(X), 1))] if self.constant_variance > 0 else []
        if self.acts:
            parts.append(self.coded(X, covariates, action))
        if self.slopes:
            parts.append(np.asarray(X, dtype=np.float64)[:, [list(covariates).index(name) for name in self.slopes]])
        return np.hstack(parts)

    def block(self, X: Array, covariates: Sequence[str], action: Assignment | ArrayLike | None) -> LinearBlock:
        """The linear block for rows of data and the actions taken, if any are needed."""
        design = self.design(X, covariates, action)
        return LinearBlock(design, self.weight_covariance, self.names)

"""Bayesian linear regression, the reward model that HeartSteps runs: y = w'[1, z, a, a·φ(z)] + ε, w ~ N(μ, Σ)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from kerneltrail.data import Cohort, User, default_priors
from kerneltrail.data.arrays import deviations
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp import Prediction, Reward
from kerneltrail.gp.mixed import MixedModel, Sums, range_of, reach_of, turned
from kerneltrail.gp.population import design
from kerneltrail.gp.prediction import refuse_overflow
from kerneltrail.kernels import Atom, Composition, Priors, Product
from kerneltrail.methods.preprocessing import PreparedRows, PreprocessedLearner, group_preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner

ROUNDS = 200
"""Most rounds of EM, which ends after a few dozen as a rule."""


@dataclass(frozen=True, eq=False)
class Weights:
    """A Normal over q weights, mean (q,) and covariance (q, q), and the noise variance σ² around them."""

    mean: Array
    covariance: Array
    noise: float

    def given(self, features: Array, y: Array) -> Weights:
        """The posterior: Σₙ = (Σ⁻¹ + B'B/σ²)⁻¹, μₙ = μ + ΣB'(BΣB' + σ²I)⁻¹(y - Bμ); Σ may be singular."""
        if not len(y):
            return self
        q = len(self.mean)
        # (I + ΣB'B/σ²)⁻¹Σ = Σₙ without an inverse of Σ.
        inner = np.eye(q) + self.covariance @ (features.T @ features) / self.noise
        covariance = np.linalg.solve(inner, self.covariance)
        covariance = 0.5 * (covariance + covariance.T)
        mean = self.mean + covariance @ (features.T @ (y - features @ self.mean)) / self.noise
        return Weights(mean, covariance, self.noise)


@dataclass(frozen=True)
class LinearFit:
    """The posterior of the weights given the rows; a `Fit`.

    Its composition is LIN on every covariate: what the model is among kernels.
    """

    prepared: PreparedRows
    weights: Weights
    composition: Composition
    reward: Reward | None

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units."""
        scaled, names = self.prepared.scaler.transform(X), self.prepared.rows.covariates
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            features = design(scaled, names, self.reward, action)
            variance = np.maximum(np.einsum("ij,jk,ik->i", features, self.weights.covariance, features), 0.0)
            mean = features @ self.weights.mean
        refuse_overflow("the prediction of a linear regression", names, X, names, mean, variance)
        prediction = Prediction(mean, variance, self.weights.noise)
        return self.prepared.in_data_units(prediction, scaled, action)

    def advantage(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of what the action adds at the rows of X, in data units."""
        if self.reward is None or not self.reward.acts:
            raise DataError("this regression has no reward model, so there is no advantage")
        covariates = self.prepared.rows.covariates
        contexts = self.reward.contexts(self.prepared.scaler.transform(X), covariates)
        effects = slice(1 + len(covariates), None)
        variance = np.einsum("ij,jk,ik->i", contexts, self.weights.covariance[effects, effects], contexts)
        scale = self.prepared.scaler.scale
        return scale * (contexts @ self.weights.mean[effects]), scale**2 * np.maximum(variance, 0.0)

    def to_json(self) -> dict[str, Any]:
        """Nothing: the rows say it all."""
        return {}


@dataclass(frozen=True)
class LinearRegression(PreprocessedLearner):
    """Bayesian linear regression, in the training group's units; a `Learner` in closed form.

    `prior` is of weights and noise before any row.
    """

    reward: Reward | None
    prior: Weights

    in_pieces = True

    @property
    def typical(self) -> float | None:
        """Of the reward model."""
        return None if self.reward is None else self.reward.typical

    @classmethod
    def train(
        cls,
        cohort: Cohort,
        *,
        prior: Literal["group", "mixed", "vague"] = "group",
        priors: Priors | None = None,
        reward: Reward | None = None,
        variance: float = 10.0,
    ) -> LinearRegression:
        """The prior from training users.

        Args:
            prior: ``group`` learns mean and covariance of the users' weights, and the noise, from the training users
                (EM of the linear mixed model; HeartSteps built its prior from the study before in the same spirit);
                ``mixed`` the same by restricted likelihood, weights apart and without a user counted beforehand (method
                (35), (50)): the linear mixed model with random intercept and slopes; ``vague`` is N(0, `variance`·I),
                with the noise at its prior's median.
            priors: whose noise is meant.
            reward: adds a·[1, φ] to the features.
            variance: prior variance of each weight; under ``group`` it counts as one user's spread.
        """
        base = group_preprocessor(cohort)
        preprocessor = replace(base, takes_action=reward is not None and reward.acts)
        users = [preprocessor.prepare(user).rows for user in cohort.raw if user.rows]
        blocks = [(design(user.X, user.covariates, reward, user.assignment), user.y) for user in users]
        q = blocks[0][0].shape[1]
        known = (priors or default_priors(base.schema)).of("noise")
        noise = float(np.exp(known.mean)) if known is not None else 1.0
        start = Weights(np.zeros(q), variance * np.eye(q), noise)
        if prior not in ("group", "mixed", "vague"):
            raise DataError(f"the prior of a linear regression is 'group', 'mixed' or 'vague', not {prior!r}")
        if prior == "mixed":
            return cls(preprocessor, reward, mixed_prior(blocks, len(cohort.covariates)))
        return cls(preprocessor, reward, learn_prior(blocks, start) if prior == "group" else start)

    def fit(self, rows: User, before: Fit | None) -> LinearFit:
        """The posterior of the weights."""
        prepared = self.preprocessor.prepare(rows)
        action = prepared.rows.assignment if rows.rows else Assignment(np.empty(0))
        features = design(prepared.rows.X, prepared.rows.covariates, self.reward, action)
        lines = Composition(tuple(Product((Atom("LIN", name),)) for name in self.covariates))
        return LinearFit(prepared, self.prior.given(features, prepared.rows.y), lines, self.reward)

    def restore(self, rows: User, stored: Mapping[str, Any]) -> LinearFit:
        """The same from the rows."""
        return self.fit(rows, None)


def mixed_prior(blocks: Sequence[tuple[Array, Array]], slopes: int) -> Weights:
    """Of a new user's weights: what users share, how far they differ, and how well the former is known (method (51)).

    The first weight is the constant's, the slopes follow. The priors of slopes are over two standard deviations of a
    covariate or over its range, whichever makes the training users' rows more probable: a few rows far out decide a
    range. Targets are taken from their mean: noises are bounded by the size of what is left, and sums of squares of
    large numbers lose digits.
    """
    rows = np.concatenate([features[:, 1 : 1 + slopes] for features, _ in blocks])
    targets = np.concatenate([y for _, y in blocks])
    shift, scale = float(targets.mean()), float(deviations(targets)) or 1.0

    def fitted(reach: Callable[[Array], float]) -> tuple[MixedModel, Array]:
        turn = turned(rows, blocks[0][0].shape[1], 1, reach=reach)
        return MixedModel.fit(Sums.of([(features @ turn, y - shift) for features, y in blocks]), scale=scale), turn

    model, turn = max(map(fitted, (reach_of, range_of)), key=lambda each: each[0].log_evidence)
    mean = turn @ model.mean
    mean[0] += shift
    return Weights(mean, turn @ model.covariance @ turn.T, model.noise)


def learn_prior(blocks: Sequence[tuple[Array, Array]], start: Weights) -> Weights:
    """EM for y_m = B_m w_m + ε, w_m ~ N(μ, Σ): mean, covariance and noise from all users' rows.

    E: each user's posterior of w_m. M: μ = mean of E[w_m]; Σ = (S₀ + Σ_m E[(w_m-μ)(w_m-μ)']) / (M + 1), where S₀ is the
    start's covariance counted as one user's, so that few users do not end in a singular Σ; σ² = mean squared residual,
    with the start's counted as one row.
    """
    now = start
    rows = sum(len(y) for _, y in blocks)
    for _ in range(ROUNDS):
        posteriors = [now.given(features, y) for features, y in blocks]
        mean = np.mean([w.mean for w in posteriors], axis=0)
        spread = sum(w.covariance + np.outer(w.mean - mean, w.mean - mean) for w in posteriors)
        covariance = (start.covariance + spread) / (len(posteriors) + 1)
        squares = sum(
            float(((y - b @ w.mean) ** 2).sum()) + float(np.einsum("ij,jk,ik->", b, w.covariance, b))
            for w, (b, y) in zip(posteriors, blocks, strict=True)
        )
        last, now = now, Weights(mean, covariance, (start.noise + squares) / (rows + 1))
        if np.abs(now.mean - last.mean).max() <= 1e-6 * (1.0 + np.abs(now.mean).max()) and np.isclose(
            now.noise, last.noise, rtol=1e-6, atol=0.0
        ):
            break
    return now


register_learner("linear", LinearRegression.train)
LMM = register_learner("lmm", partial(LinearRegression.train, prior="mixed"))

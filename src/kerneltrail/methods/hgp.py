"""Population-plus-individual GP (method §10.3): a function that everybody shares, and each user's own around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Prediction, Reward
from kerneltrail.gp.prediction import refuse_overflow
from kerneltrail.gp.quasi_newton import minimise
from kerneltrail.gp.two_level import LevelRows, Levels, Slopes, TwoLevelEvidence, TwoLevelModel, TwoLevelPosterior
from kerneltrail.kernels import Composition
from kerneltrail.methods.pooled import additive
from kerneltrail.methods.preprocessing import PreparedRows, PreprocessedLearner, group_preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner

NoiseOf = Literal["user", "shared"]

PRIORS: Mapping[str, tuple[float, float]] = {
    "population": (float(np.log(0.02)), 2.5),
    "user": (float(np.log(0.01)), 2.5),
    "lengthscale": (float(np.log(2.0)), 0.7),
    "noise": (float(np.log(0.7)), 1.0),
}
"""Mean and standard deviation of the logarithm of each kind of hyperparameter, for covariates and a target of variance
1: a line or a curve explains a hundredth of the variance, give or take a factor of ten, and bends once or twice over
the range."""

SPREAD = 0.4
"""Standard deviation of users' log noise before it is learnt; it counts as one user's."""
LEAST_SPREAD = 0.1
"""However alike a few training users are, nobody's noise is sure to be theirs."""
ROUNDS = 3
"""Searches, each with the noises of users that the one before found."""
NOISES = np.linspace(-3.0, 3.0, 13)
"""A new user's log noise is one of these many standard deviations from the common one."""


@dataclass(frozen=True, eq=False)
class Units:
    """Mean and standard deviation over all training rows, of each covariate and of the target."""

    centre: Array
    scale: Array
    target_centre: float
    target_scale: float

    @classmethod
    def of(cls, users: Sequence[User]) -> Units:
        """From training users; what does not vary keeps its size."""
        X, y = np.concatenate([user.X for user in users]), np.concatenate([user.y for user in users])
        scale, target = X.std(axis=0), float(y.std())
        least = 1e-12 * max(float(np.abs(y).max()), 1e-300)
        return cls(
            X.mean(axis=0), np.where(scale > 0.0, scale, 1.0), float(y.mean()), target if target > least else 1.0
        )


@dataclass(frozen=True)
class HierarchicalFit:
    """A user's function given the training users' rows and the user's own; a `Fit`."""

    prepared: PreparedRows
    learner: HierarchicalGP
    posterior: TwoLevelPosterior

    @property
    def composition(self) -> Composition:
        """LIN and SE on every covariate: what the model is among kernels, at either level."""
        return additive(self.learner.covariates)

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """There is one composition."""
        return {self.composition: 1.0}

    @property
    def hyperparameter_count(self) -> int:
        """An amplitude for each level and part, a lengthscale for each covariate, and the noise."""
        return self.posterior.model.levels.size

    def predict(self, X: Array, action: Array | None) -> Prediction:
        """Mean and variance in data units."""
        scaled = self.prepared.scaler.transform(X)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            lines, inputs = self.learner.inputs_at(scaled, action)
            mean, variance, noise = self.posterior.moments(lines, inputs)
        names = self.learner.covariates
        refuse_overflow("the prediction of hgp", names, X, names, mean, variance)
        units = self.learner.units
        square = units.target_scale**2
        prediction = Prediction(units.target_centre + units.target_scale * mean, square * variance, square * noise)
        return self.prepared.in_data_units(prediction, scaled, action)

    def to_json(self) -> dict[str, Any]:
        """Nothing: the rows say it all."""
        return {}


@dataclass(frozen=True, eq=False)
class HierarchicalGP(PreprocessedLearner):
    """A shared function plus one for each user, both sums of lines and smooth curves; a `Learner` in closed form.

    Attributes:
        reward: adds the action's features to both, or None.
        units: of all rows inside.
        model: what the training users say of a new one.
        spread: standard deviation of users' log noise; 0 where all have the same.
        worth: Normal rows that one row is worth for what it says of a user's noise; less than 1 with heavy tails.
        log_evidence: of the training users' rows together, in standardised units, at the optimum.
    """

    reward: Reward | None
    units: Units
    model: TwoLevelModel
    spread: float
    worth: float
    log_evidence: float

    in_pieces = True

    @classmethod
    def train(cls, cohort: Cohort, *, reward: Reward | None = None, noise: NoiseOf = "user") -> HierarchicalGP:
        """Learn the hyperparameters from all training users together, and condition on their rows.

        Args:
            reward: adds a·[1, φ] to the shared function and to each user's.
            noise: ``user``: everybody has a noise of their own, LogNormal around the common one; ``shared``: one for
                all.
        """
        if noise not in ("user", "shared"):
            raise DataError(f"the noise of hgp is 'user' or 'shared', not {noise!r}")
        preprocessor = replace(group_preprocessor(cohort), takes_action=reward is not None and reward.acts)
        users = [preprocessor.prepare(user).rows for user in cohort.raw if user.rows]
        if not users:
            raise DataError("hgp needs at least one training row")
        units = Units.of(users)
        rows = [level_rows(user, user.covariates, units, reward) for user in users]
        learnt = learn(rows, noise="shared" if len(users) < 3 else noise)
        model = TwoLevelModel.train(rows, learnt.levels, learnt.deviations)
        return cls(preprocessor, reward, units, model, learnt.spread, learnt.worth, learnt.log_evidence)

    def inputs_at(self, X: Array, action: Array | None) -> tuple[Array, Array]:
        """Lines and standardised covariates at scaled rows."""
        return inputs_of(X, self.covariates, self.units, self.reward, action)

    def fit(self, rows: User, before: Fit | None) -> HierarchicalFit:
        """The posterior given the user's rows."""
        prepared = self.preprocessor.prepare(rows)
        seen = level_rows(prepared.rows, self.covariates, self.units, self.reward)
        steps = NOISES if self.spread > 0.0 else np.zeros(1)
        noises = self.model.levels.noise * np.exp(self.spread * steps)
        try:
            posterior = self.model.given(seen, noises, -0.5 * steps**2, self.worth)
        except NumericalError as problem:
            raise NumericalError(f"user {rows.name!r}: {problem}") from None
        return HierarchicalFit(prepared, self, posterior)

    def restore(self, rows: User, stored: Mapping[str, Any]) -> HierarchicalFit:
        """The same from the rows."""
        return self.fit(rows, None)


def inputs_of(
    X: Array, covariates: tuple[str, ...], units: Units, reward: Reward | None, action: Array | None
) -> tuple[Array, Array]:
    """[1, z] and the action's features at scaled rows, and the standardised covariates z."""
    z = (X - units.centre) / units.scale
    parts = [np.ones((len(X), 1)), z]
    if reward is not None and reward.acts:
        parts.append(reward.coded(X, covariates, action))
    return np.hstack(parts), z


def level_rows(user: User, covariates: tuple[str, ...], units: Units, reward: Reward | None) -> LevelRows:
    """A scaled user's rows in standardised units."""
    action = user.action if user.rows else np.empty(0)
    if reward is not None and reward.acts and action is None:
        raise DataError(f"a reward model needs an action column, but user {user.name!r} has no actions")
    lines, z = inputs_of(user.X, covariates, units, reward, action)
    return LevelRows(lines, z, (user.y - units.target_centre) / units.target_scale)


@dataclass(frozen=True, eq=False)
class Learnt:
    """Hyperparameters at their optimum, each user's deviation in log noise, and what `HierarchicalGP` has of noise."""

    levels: Levels
    deviations: Array
    spread: float
    worth: float
    log_evidence: float


def prior_of(lines: int, d: int) -> tuple[Array, Array]:
    """Mean and standard deviation of all hyperparameters' logarithms, in the order of `Levels.from_vector`."""
    kinds = ["population"] * (lines + d) + ["user"] * (lines + d) + ["lengthscale"] * d + ["noise"]
    mean, sd = np.array([PRIORS[kind] for kind in kinds]).T
    return mean, sd


def learn(users: Sequence[LevelRows], *, noise: NoiseOf) -> Learnt:
    """Hyperparameters that maximise log p(y|θ) + log p(θ) over all users together.

    With a noise of everybody's own, searches alternate with `noises_of`.
    """
    evidence = TwoLevelEvidence(users)
    q, d = users[0].lines.shape[1], users[0].X.shape[1]
    mean, sd = prior_of(q, d)
    deviations, spread, worth = np.zeros(len(users)), 0.0, 1.0
    start = np.zeros((1, len(mean)))

    def objective(points: Array) -> tuple[Array, Array]:
        values, gradients = np.full(len(points), np.inf), np.zeros_like(points)
        for i, point in enumerate(points):
            try:
                slopes = evidence(mean + sd * point, deviations)
            except (NumericalError, np.linalg.LinAlgError):
                continue
            values[i] = 0.5 * float(point @ point) - slopes.log
            gradients[i] = point - sd * slopes.gradient
        return values, gradients

    for _ in range(ROUNDS):
        optimum = minimise(objective, start, gradient_tolerance=1e-2, value_tolerance=1e-6)
        if not np.isfinite(optimum.value[0]):
            raise NumericalError("the evidence of a function that users share, and one of each, is not finite")
        start = optimum.point
        theta = mean + sd * start[0]
        slopes = evidence(theta, deviations)
        if noise == "shared":
            break
        before = deviations
        deviations, spread, worth = noises_of(slopes, deviations)
        if np.abs(deviations - before).max() < 0.02:
            break
    levels = Levels.from_vector(theta, q)
    return Learnt(levels, deviations, spread, worth, slopes.log)


def noises_of(slopes: Slopes, deviations: Array) -> tuple[Array, float, float]:
    """Users' deviations in log noise, their standard deviation s, and the worth of a row.

    The log of a variance over n rows has the sampling variance (κ - 1)/n, where κ is the rows' kurtosis: 2/n for a
    Normal. What users' log noises vary by beyond that is s² (the method of moments), and each is shrunk accordingly.
    """
    worth = min(2.0 / max(slopes.kurtosis - 1.0, 1e-3), 1.0)
    sampling = 2.0 / (worth * np.maximum(slopes.freedom, 1.0))
    asked = deviations + np.log(np.maximum(slopes.ratio, 1e-6))
    asked -= np.average(asked, weights=1.0 / (sampling + SPREAD**2))
    variance = (float(asked @ asked) + SPREAD**2) / len(asked) - float(sampling.mean())
    variance = max(variance, LEAST_SPREAD**2)
    return asked * (variance / (variance + sampling)), float(np.sqrt(variance)), worth


register_learner("hgp", HierarchicalGP.train)

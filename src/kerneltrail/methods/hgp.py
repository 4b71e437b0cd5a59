"""Population-plus-individual GP (method §10.3): a function that everybody shares, and each user's own around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Prediction, Reward
from kerneltrail.gp.prediction import freedom_of, refuse_overflow
from kerneltrail.gp.two_level import TwoLevelModel, TwoLevelPosterior
from kerneltrail.gp.two_level_search import NoiseOf, Units, inputs_of, learn, level_rows
from kerneltrail.kernels import Composition
from kerneltrail.methods.pooled import additive
from kerneltrail.methods.preprocessing import PreparedRows, PreprocessedLearner, group_preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner

NOISES = np.linspace(-3.0, 3.0, 13)
"""A new user's log noise is one of these many standard deviations from the common one."""


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

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units."""
        scaled = self.prepared.scaler.transform(X)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            lines, inputs = self.learner.inputs_at(scaled, action)
            mean, variance, noise = self.posterior.moments(lines, inputs)
        names = self.learner.covariates
        refuse_overflow("the prediction of hgp", names, X, names, mean, variance)
        units = self.learner.units
        square = units.target_scale**2
        unknown = self.posterior.noise_uncertainty
        freedom = freedom_of((noise / (variance + noise)) ** 2 * unknown) if unknown > 0.0 else None  # method (53)
        prediction = Prediction(
            units.target_centre + units.target_scale * mean, square * variance, square * noise, freedom=freedom
        )
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

    @property
    def typical(self) -> float | None:
        """Of the reward model."""
        return None if self.reward is None else self.reward.typical

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

    def inputs_at(self, X: Array, action: Assignment | None) -> tuple[Array, Array]:
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


HGP = register_learner("hgp", HierarchicalGP.train)

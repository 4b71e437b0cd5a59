"""The running mean: the floor that every method has to clear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner


@dataclass(frozen=True)
class MeanFit:
    """A constant prediction; a `Fit`: the mean of the rows seen, its own variance, and that of a row around it."""

    mean: float
    variance: float
    noise: float

    @property
    def composition(self) -> Composition:
        """None."""
        return Composition()

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """The same everywhere."""
        return Prediction(np.full(len(X), self.mean), np.full(len(X), self.variance), self.noise)

    def to_json(self) -> dict[str, Any]:
        """Nothing: the rows say it all."""
        return {}


@dataclass(frozen=True)
class RunningMean:
    """The mean of the user's own rows so far; a `Learner`. No covariates, no kernel.

    Before any row it is the training users' mean. The variance of a row is the user's own, with the training users'
    counted as one row more, so that one row has a variance too.

    Attributes:
        covariates: columns of X, none of which is read.
        mean: of all training rows.
        within: variance of training rows around their user's mean.
        between: variance of the users' means.
    """

    covariates: tuple[str, ...]
    mean: float
    within: float
    between: float

    takes_action = False
    in_pieces = True

    @classmethod
    def train(cls, cohort: Cohort) -> RunningMean:
        """From the training users, in data units."""
        users = [user for user in cohort.raw if user.rows]
        means = np.array([user.y.mean() for user in users])
        y = np.concatenate([user.y for user in users])
        residual = np.concatenate([user.y - mean for user, mean in zip(users, means, strict=True)])
        least = 1e-24 * max(float(np.mean(y**2)), 1e-276)  # equal targets: tiny, not zero
        return cls(cohort.covariates, float(y.mean()), max(float(np.mean(residual**2)), least), float(means.var()))

    def fit(self, rows: User, before: Fit | None) -> MeanFit:
        """The mean of all rows seen."""
        if not rows.rows:
            return MeanFit(self.mean, self.between, self.within)
        mean = float(rows.y.mean())
        noise = (float(((rows.y - mean) ** 2).sum()) + self.within) / (rows.rows + 1)
        return MeanFit(mean, noise / rows.rows, noise)

    def restore(self, rows: User, stored: Mapping[str, Any]) -> MeanFit:
        """The same from the rows."""
        return self.fit(rows, None)


register_learner("mean", RunningMean.train)

"""Methods whose predictions have the shape of the training users' outcomes, as the trajectory model's have (§10.3).

They tell what of a difference in density is due to that shape (method (76)), and what to the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.errors import KerneltrailError
from kerneltrail.gp import Prediction, Reward
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.gp.outcome_shape_search import Predicted, learn_shape
from kerneltrail.kernels import Composition
from kerneltrail.methods.hgp import HierarchicalGP
from kerneltrail.methods.linear import LinearRegression
from kerneltrail.methods.protocol import Array, Fit, Learner, hyperparameter_count, probabilities_of
from kerneltrail.methods.registry import register_learner
from kerneltrail.trajectory.pilot_predictions import some_of


@dataclass(frozen=True)
class ShapedFit:
    """Another learner's fit, with a shape in its predictions; a `Fit`."""

    fit: Fit
    shape: OutcomeShape | None

    @property
    def composition(self) -> Composition:
        """The other's."""
        return self.fit.composition

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """The other's."""
        return probabilities_of(self.fit)

    @property
    def hyperparameter_count(self) -> int:
        """The other's: the shape belongs to everybody."""
        return hyperparameter_count(self.fit)

    def predict(self, X: Array, action: Array | None) -> Prediction:
        """The other's, with the shape."""
        return self.fit.predict(X, action).shaped(self.shape)

    def to_json(self) -> dict[str, Any]:
        """The other's."""
        return self.fit.to_json()


@dataclass(frozen=True, eq=False)
class ShapedLearner:
    """A learner with the shape of training users' outcomes around what it predicts of them; a `Learner`."""

    learner: Learner
    shape: OutcomeShape | None

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.learner.covariates

    @property
    def takes_action(self) -> bool:
        """As the other."""
        return self.learner.takes_action

    @property
    def in_pieces(self) -> bool:
        """As the other."""
        return self.learner.in_pieces

    def fit(self, rows: User, before: Fit | None) -> ShapedFit:
        """The other's fit."""
        return ShapedFit(self.learner.fit(rows, before.fit if isinstance(before, ShapedFit) else None), self.shape)

    def restore(self, rows: User, stored: Mapping[str, Any]) -> ShapedFit:
        """The other's fit."""
        return ShapedFit(self.learner.restore(rows, stored), self.shape)


def shaped(train: Callable[..., Learner], cohort: Cohort, *, reward: Reward | None = None) -> ShapedLearner:
    """A learner, trained, with the shape of the training users' outcomes, each followed as somebody new would be."""
    learner = train(cohort, reward=reward)
    return ShapedLearner(learner, learn_shape([_predicted(learner, user) for user in some_of(cohort.raw)]))


def _predicted(learner: Learner, user: User) -> Predicted:
    batches = []
    seen = User(user.name, learner.covariates, np.empty((0, len(learner.covariates))), np.empty(0), ())
    fit: Fit | None = None
    for t in range(1, user.batches + 1):
        batch = user.batch(t)
        try:
            fit = learner.fit(seen, fit)
            bell = fit.predict(batch.X, batch.action if learner.takes_action else None).bell
        except (KerneltrailError, ArithmeticError, ValueError):  # what could be predicted will do
            break
        batches.append((bell, batch.y))
        seen = user.upto(t)
    return Predicted.of(batches)


register_learner("lmm-shaped", partial(shaped, partial(LinearRegression.train, prior="mixed")))
register_learner("hgp-shaped", partial(shaped, HierarchicalGP.train))

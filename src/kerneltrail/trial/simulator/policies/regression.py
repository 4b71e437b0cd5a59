"""The Bayesian linear regression that the field's policies rest on, with what the pilot users say as its prior.

Outcomes less the population mean are regressed on [g(s), π·φ(s), (a - π)·φ(s)], with g = [1, covariates]:
action-centred, so that a baseline that is wrong does not leak into the effect. All of them begin with the same prior,
made from the same model that the trial's own policy follows people on; they differ in what they pool and how they
allocate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels import Array
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.simulator.policies.policy import Book

BASELINE = 0.25
"""Prior variance of a covariate's slope, in squared standard units of the outcome over the pilot users' range."""
NUISANCE = 4.0
"""How much wider than the effect's the prior of the nuisance block is."""


@dataclass(frozen=True)
class Regression:
    """Features and prior of one model, in its scaled units."""

    model: LearntGraph
    noise_sd: float

    @cached_property
    def reward(self) -> Reward:
        """The model's advantage."""
        if self.model.reward is None:
            raise DataError("policies need a model with a reward model")
        return self.model.reward

    @property
    def width(self) -> int:
        """Features of the effect."""
        return len(range(*self.reward.advantage.indices(len(self.reward.names))))

    @property
    def size(self) -> int:
        """Features in all."""
        return 1 + len(self.model.covariates) + 2 * self.width

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return (self.noise_sd / self.model.scaler.scale) ** 2

    def contexts(self, rows: Array) -> Array:
        """φ(s) of rows in data units."""
        return self.reward.contexts(self.model.scaler.transform(rows), self.model.covariates)

    def data(self, book: Book) -> tuple[Array, Array]:
        """Features and outcomes, both of the rows with an outcome."""
        known = book.known
        scaled = self.model.scaler.transform(book.rows[known])
        phi = self.reward.contexts(scaled, self.model.covariates)
        could, chance = book.available[known], book.probability[known]
        centred = ((book.action[known] - chance) * could)[:, None] * phi
        design = np.hstack([np.ones((len(phi), 1)), scaled, (chance * could)[:, None] * phi, centred])
        return design, self.model.scaler.transform_target(book.outcome[known]) - self.offset(scaled)

    def offset(self, scaled: Array) -> Array:
        """The population mean without acting."""
        if self.model.mean is None:
            return np.zeros(len(scaled))
        return self.model.mean.at(scaled, Assignment(*(np.zeros(len(scaled)) for _ in range(3))))

    @cached_property
    def effect_prior(self) -> tuple[Array, Array]:
        """Mean and covariance of the effect's weights: between people, around the pilot users' mean."""
        mean = np.zeros(self.width)
        if self.model.mean is not None and self.model.mean.reward is not None:
            start = 1 + len(self.model.covariates)
            mean = self.model.mean.weights[start : start + self.width].copy()
        return mean, self.reward.weight_covariance[self.reward.advantage, self.reward.advantage]

    @cached_property
    def prior(self) -> tuple[Array, Array]:
        """Mean and covariance of all weights."""
        effect, spread = self.effect_prior
        base = 1 + len(self.model.covariates)
        mean = np.concatenate([np.zeros(base), effect, effect])
        constant = self.reward.weight_variances[0] if self.reward.constant_variance > 0 else BASELINE
        covariance = np.zeros((self.size, self.size))
        covariance[np.arange(base), np.arange(base)] = [constant, *[BASELINE] * (base - 1)]
        covariance[base : base + self.width, base : base + self.width] = NUISANCE * spread
        covariance[base + self.width :, base + self.width :] = spread
        return mean, covariance

    def posterior(self, gram: Array, moment: Array) -> tuple[Array, Array]:
        """Mean and covariance of the effect's weights, given XᵀX and Xᵀy."""
        mean, covariance = self.prior
        precision = np.linalg.inv(covariance)
        total = precision + gram / self.noise
        factor = scipy.linalg.cho_factor(total)
        solved = scipy.linalg.cho_solve(factor, precision @ mean + moment / self.noise)
        inverse = scipy.linalg.cho_solve(factor, np.eye(self.size))
        return solved[-self.width :], inverse[-self.width :, -self.width :]

    def advantage(self, context: Array, mean: Array, covariance: Array) -> NormalMixture:
        """What acting adds in a context, in the outcome's units."""
        phi, scale = self.contexts(context[None, :])[0], self.model.scaler.scale
        variance = scale**2 * max(float(phi @ covariance @ phi), 0.0)
        return NormalMixture(np.ones(1), np.array([[scale * float(phi @ mean)]]), np.array([[variance]]))

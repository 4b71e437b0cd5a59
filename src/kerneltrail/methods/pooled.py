"""Pooled GP (method §10.3): one composition, hyperparameters fitted on all training users together, no selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from kerneltrail import gp
from kerneltrail.data import Cohort, User, default_priors
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Inputs, Reward, inputs_for
from kerneltrail.gp.population import PopulationMean
from kerneltrail.gp.quasi_newton import minimise
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Priors, Product, parse
from kerneltrail.methods.mixture import Mixture, MixtureLearner
from kerneltrail.methods.preprocessing import PreparedRows, group_preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner

CONSTANT = 10.0
"""Prior variance of a user's own constant, where there is no population mean: as in the reward model."""


@dataclass(frozen=True)
class PooledGP(MixtureLearner):
    """A Gaussian process with hyperparameters shared by everybody, in the group's units; a `Learner` in closed form.

    `log_evidence` is summed over the training users, at the optimum.
    """

    hyperparameters: Hyperparameters
    log_evidence: float

    in_pieces = True

    @classmethod
    def train(
        cls,
        cohort: Cohort,
        *,
        kernel: str | Composition | None = None,
        population_mean: bool = False,
        priors: Priors | None = None,
        reward: Reward | None = None,
        constant: float | None = None,
        starts: int = 2,
        screen: int = 8,
        seed: int = 0,
    ) -> PooledGP:
        """Fit on the training users.

        Args:
            kernel: the composition; LIN and SE on every covariate if None.
            population_mean: subtract a ridge regression on all training rows first; else their mean alone.
            priors: over hyperparameters; the paper's if None.
            reward: adds an action's advantage (the population mean has it too).
            constant: prior variance of a constant of one's own; if None, 10 without a population mean, else none.
            starts, screen, seed: of the search.
        """
        if constant is None:
            constant = 0.0 if population_mean else CONSTANT
        preprocessor = group_preprocessor(cohort, reward=reward, constant=constant)
        scaled = [preprocessor.prepare(user).rows for user in cohort.raw]
        mean = PopulationMean.train(scaled, reward) if population_mean else PopulationMean.constant(scaled)
        preprocessor = replace(preprocessor, mean=mean)
        composition = additive(cohort.covariates) if kernel is None else kernel
        composition = parse(composition) if isinstance(composition, str) else composition
        prepared = [preprocessor.prepare(user) for user in cohort.raw if user.rows]
        rng = np.random.default_rng(seed)
        prior = priors or default_priors(cohort.schema)
        theta, log = fit_together(prepared, composition, prior, rng, starts=starts, screen=screen)
        return cls(preprocessor, Hyperparameters(composition, tuple(theta)), log)

    def fit(self, rows: User, before: Fit | None) -> Mixture:
        """The posterior given the user's rows."""
        return Mixture.single(self.preprocessor.prepare(rows), self.hyperparameters)


def additive(covariates: Sequence[str]) -> Composition:
    """LIN and SE on every covariate, summed."""
    return Composition(tuple(Product((Atom(kind, name),)) for name in covariates for kind in ("LIN", "SE")))


def summed(inputs: Sequence[Inputs], thetas: Array) -> tuple[Array, Array]:
    """Σ_m log p(y_m|θ) at S vectors and its gradient, (S,) and (S, k)."""
    slopes = [gp.slope_of(each, thetas) for each in inputs]
    return np.sum([slope.log for slope in slopes], axis=0), np.sum([slope.gradient for slope in slopes], axis=0)


def fit_together(
    prepared: Sequence[PreparedRows],
    composition: Composition,
    prior: gp.map.Prior,
    rng: np.random.Generator,
    *,
    starts: int,
    screen: int,
) -> tuple[Array, float]:
    """θ that maximises Σ_m log p(y_m|θ) + log p(θ), and the sum of log evidences there."""
    if not prepared:
        raise DataError("a pooled GP needs at least one training row")
    inputs = [inputs_for(each.whole, composition, block=each.block) for each in prepared]
    mean, variance = prior.moments(composition)
    scale = np.sqrt(variance)

    def objective(points: Array) -> tuple[Array, Array]:
        try:
            log, gradient = summed(inputs, mean + scale * points)
        except NumericalError:
            if len(points) == 1:
                return np.array([np.inf]), np.zeros_like(points)
            parts = [objective(point[None]) for point in points]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return 0.5 * (points**2).sum(axis=1) - log, points - gradient * scale

    k = len(mean)
    # A Latin hypercube over the prior, its median first.
    levels = (np.argsort(rng.random((k, screen)), axis=1).T + 0.5) / screen
    points = np.concatenate([np.zeros((1, k)), scipy.special.ndtri(levels)])
    order = np.argsort(objective(points)[0], kind="stable")[: max(starts, 1)]
    optima = minimise(objective, points[order], gradient_tolerance=1e-3, value_tolerance=1e-7)
    best = int(np.argmin(optima.value))
    if not np.isfinite(optima.value[best]):
        raise NumericalError(f"no start gave a finite evidence of {composition} for the training users together")
    theta = mean + scale * optima.point[best]
    return theta, float(summed(inputs, theta[None])[0][0])


register_learner("pooled", PooledGP.train, population_mean=False)
register_learner("pooled-mean", PooledGP.train, population_mean=True)

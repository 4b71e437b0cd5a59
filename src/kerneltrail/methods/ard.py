"""SE-ARD: one squared exponential over all covariates, a lengthscale for each; the field's default kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Priors, Product
from kerneltrail.methods.mixture import Mixture, MixtureLearner
from kerneltrail.methods.preprocessing import PreparedRows, Preprocessor
from kerneltrail.methods.protocol import Fit
from kerneltrail.methods.registry import register_learner


@dataclass(frozen=True)
class SingleKernel(MixtureLearner):
    """One composition for all times, its hyperparameters fitted to each user's rows by MAP; a `Learner`.

    Every batch is fitted afresh, so that it does not matter how the rows came. The prior over hyperparameters is a
    given one, or what training users say of them; `starts`, `screen` and `seed` are of each search.
    """

    composition: Composition
    prior: gp.map.Prior
    starts: int = 2
    screen: int = 16
    seed: int = 0

    in_pieces = True

    def fit(self, rows: User, before: Fit | None) -> Mixture:
        """The kernel at its MAP hyperparameters; at the prior's mean before any row."""
        prepared = self.preprocessor.prepare(rows)
        return Mixture.single(
            prepared, fitted(prepared, self.composition, self.prior, self.starts, self.screen, self.seed)[0]
        )


def fitted(
    prepared: PreparedRows, composition: Composition, prior: gp.map.Prior, starts: int, screen: int, seed: int
) -> tuple[Hyperparameters, float]:
    """MAP hyperparameters and Laplace log evidence of a composition; the prior's mean and 0 without rows."""
    mean, _ = prior.moments(composition)
    if not prepared.rows.rows:
        return Hyperparameters(composition, tuple(mean)), 0.0
    optimum = gp.find_map(
        prepared.whole,
        composition,
        prior,
        rng=np.random.default_rng([seed, prepared.rows.rows]),
        starts=starts,
        screen=screen,
        warm=[mean],
        block=prepared.block,
        tol=1e-6,
        accuracy=1e-6,
    )
    return optimum.hyperparameters, optimum.log_laplace


def se_ard(
    preprocessor: Preprocessor, priors: Priors, *, starts: int = 2, screen: int = 16, seed: int = 0
) -> SingleKernel:
    """SE-ARD on all covariates."""
    product = Product(tuple(Atom("SE", name) for name in preprocessor.covariates))
    return SingleKernel(preprocessor, Composition((product,)), priors, starts, screen, seed)


register_learner("se-ard", se_ard, "own rows")

"""One kernel that counts for a user, given the user's rows: what is asked of it to find effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.kernels import Array, Composition
from kerneltrail.trajectory.graph import LearntGraph


def block_features(model: LearntGraph, rows: User) -> Array | None:
    """Features of the linear block at scaled rows, (n, q); None without a reward model."""
    reward = model.reward
    return None if reward is None else reward.design(rows.X, model.covariates, rows.assignment)


@dataclass(frozen=True)
class KernelPosterior:
    """One kernel that counts: its probability, and the posterior of its products given the user's rows."""

    weight: float
    posterior: gp.Posterior | gp.OnlineState

    @property
    def composition(self) -> Composition:
        """The kernel."""
        return self.posterior.hyperparameters.composition

    @property
    def noise(self) -> float:
        """Variance of an observation around the function."""
        return float(self.posterior.hyperparameters.values_array[-1])

    def rest(self, model: LearntGraph, recent: User) -> Array:
        """What it leaves unexplained of a user's newest rows, scaled and less the population mean."""
        return recent.y - self.posterior.predict(recent.X, linear=block_features(model, recent)).mean

    def reads(self, *covariates: str) -> list[int]:
        """Indices of the products that read all of these covariates."""
        return [p for p, product in enumerate(self.composition) if set(covariates) <= set(product.covariates)]

    def straight(self, covariate: str) -> bool:
        """Whether the kernel runs in a straight line along a covariate."""
        products = [self.composition.products[p] for p in self.reads(covariate)]
        atoms = [[atom for atom in product.atoms if atom.covariate == covariate] for product in products]
        return all(len(each) == 1 and each[0].spec.linear for each in atoms)

    def periods(self, covariate: str) -> Iterator[float]:
        """Periods of the kernel's atoms on a covariate, scaled."""
        hyperparameters = self.posterior.hyperparameters
        for slot, value in zip(hyperparameters.layout.slots, hyperparameters.values_array, strict=True):
            if slot.covariate == covariate and slot.spec.kind == "period":
                yield float(value)

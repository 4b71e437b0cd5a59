"""The truth behind simulated users: kernels, hyperparameters around a centre, and exact draws of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array, Composition, Hyperparameters
from kerneltrail.names import index_of

LOG_SD = 0.1
"""Spread of positive hyperparameters between users: standard deviation of the logarithm (method §9.1)."""


@dataclass(frozen=True)
class TrueKernel:
    """A true kernel and the centre around which users' hyperparameters are drawn.

    Attributes:
        composition: the kernel.
        centre: natural value by hyperparameter name, noise included: the median over users.
        location_sd: standard deviation of locations, which are Normal; positive ones are LogNormal with `LOG_SD`.
        fixed: hyperparameters that are the same for everybody.
    """

    composition: Composition
    centre: Mapping[str, float]
    location_sd: float = 1.0
    fixed: tuple[str, ...] = ("noise",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", FrozenDict(self.centre))

    def draw(self, rng: np.random.Generator) -> Hyperparameters:
        """One user's hyperparameters."""
        centre = Hyperparameters.from_values(self.composition, self.centre)
        sd = [
            0.0 if slot.name in self.fixed else LOG_SD if slot.spec.positive else self.location_sd
            for slot in centre.layout.slots
        ]
        return Hyperparameters(self.composition, tuple(centre.vector + np.array(sd) * rng.standard_normal(len(sd))))


@dataclass(frozen=True)
class Simulation:
    """Simulated users and what is true of them.

    Attributes:
        train: the training users.
        test: the test users.
        truth: the true kernel by user's name.
        hyperparameters: the true hyperparameters by user's name, in data units.
        mean: the constant added to every user's function.
        advantage: by user's name, what the action adds: the coefficient of each covariate, and under ``1`` a constant.
            Empty where there is no action.
    """

    train: Cohort
    test: Cohort
    truth: Mapping[str, Composition]
    hyperparameters: Mapping[str, Hyperparameters]
    mean: float = 0.0
    advantage: Mapping[str, Mapping[str, float]] = field(default_factory=FrozenDict)


def as_rng(seed: int | np.random.Generator) -> np.random.Generator:
    """A generator: the one given (and then advanced), or a new one from a seed."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)


def draw_group(
    rng: np.random.Generator, kernels: Sequence[TrueKernel], label: str, size: int
) -> Iterator[tuple[str, Hyperparameters, np.random.Generator]]:
    """Users of a group: name, hyperparameters, and a stream. The first half has the first kernel, the rest the second.

    A stream for each: how many numbers one user takes does not shift what the next one gets.
    """
    for number in range(size):
        stream = np.random.default_rng(rng.integers(0, 2**63, size=4))
        drawn = kernels[0 if 2 * number < size else 1].draw(stream)
        yield f"{label}-{number + 1:0{max(2, len(str(size)))}d}", drawn, stream


def truth_of(drawn: Mapping[str, Hyperparameters]) -> Mapping[str, Composition]:
    """The true kernel of each user."""
    return FrozenDict({name: kernel.composition for name, kernel in drawn.items()})


def covariance(hyperparameters: Hyperparameters, X: Array, covariates: Sequence[str]) -> Array:
    """K(X, X) without noise: the sum over products of amplitude times the atoms' covariances (method (5))."""
    composition, layout = hyperparameters.composition, hyperparameters.layout
    values = hyperparameters.values_array
    names = tuple(covariates)
    total = np.zeros((len(X), len(X)))
    for p, product in enumerate(composition):
        part = np.full_like(total, values[layout.amplitude_index[p]])
        for atom, values_of in zip(product.atoms, layout.atom_index[p], strict=True):
            x = X[:, index_of(atom.covariate, names, "X")]
            part *= atom.spec.covariance(x, x, values[values_of])
        total += part
    return total


def draw_target(
    hyperparameters: Hyperparameters, X: Array, covariates: Sequence[str], rng: np.random.Generator
) -> Array:
    """y ~ N(0, K(X, X) + σ²I): a function drawn from the kernel and its noise, in one exact draw without jitter.

    Where σ² is so small that the matrix is singular to working precision, its symmetric square root is used. That one,
    unlike eigenvectors, has no free signs, so a seed gives the same users on every machine up to rounding.
    """
    total = covariance(hyperparameters, X, covariates)
    total[np.diag_indices_from(total)] += hyperparameters["noise"]
    white = rng.standard_normal(len(X))
    try:
        return np.linalg.cholesky(total) @ white
    except np.linalg.LinAlgError:
        eigenvalues, vectors = np.linalg.eigh(total)
        return vectors @ (np.sqrt(np.clip(eigenvalues, 0.0, None)) * (vectors.T @ white))


def user(
    composition: Composition,
    hyperparameters: Hyperparameters,
    X: ArrayLike | int,
    rng: int | np.random.Generator,
    *,
    name: str = "simulated",
    covariates: Sequence[str] | None = None,
    ends: Sequence[int] | None = None,
) -> User:
    """A user whose target is one function drawn from a kernel, plus noise: y = f(X) + ε, ε ~ N(0, σ²).

    Args:
        composition: the true kernel; may be empty, which is noise alone.
        hyperparameters: its hyperparameters, noise variance included.
        X: covariates, shape (n, d) in the order of `covariates`, or a number of rows to draw uniformly from [0, 1].
        rng: generator or seed.
        name: the user's name.
        covariates: names of X's columns; by default those that the kernel reads, sorted.
        ends: where batches end; by default all rows are one batch.
    """
    if hyperparameters.composition != composition:
        raise DataError(f"the hyperparameters are those of {hyperparameters.composition}, not of {composition}")
    names = tuple(covariates) if covariates is not None else composition.covariates or ("x",)
    rng = as_rng(rng)
    inputs = rng.random((X, len(names))) if isinstance(X, int) else np.asarray(X, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != len(names):
        raise DataError(f"X must have shape (rows, {len(names)}) for {', '.join(names)}, got {inputs.shape}")
    y = draw_target(hyperparameters, inputs, names, rng)
    if ends is None:
        ends = (len(y),) if len(y) else ()
    return User(name, names, inputs, y, ends)

"""Priors over hyperparameters, by type, with overrides per covariate (method §3.1). Priors are data.

Every prior is a Normal in the unconstrained space: a LogNormal on a positive hyperparameter is a Normal on its log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np

from kerneltrail.errors import KernelError
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.fourier import Array
from kerneltrail.kernels.layout import AMPLITUDE, NOISE, Slot, layout_of


@dataclass(frozen=True)
class Prior:
    """Mean and variance of the unconstrained value. Build it with `normal` or, if positive, with `log_normal`."""

    family: Literal["Normal", "LogNormal"]
    mean: float
    variance: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and np.isfinite(self.variance) and self.variance > 0):
            raise KernelError(f"{self.family} prior needs a finite mean and a variance above 0, got {self}")


def _spread(variance: float | None, scale: float | None) -> float:
    if (variance is None) == (scale is None):
        raise KernelError("say either variance= or scale= (the standard deviation), and only one of them")
    if scale is None:
        return float(variance)  # type: ignore[arg-type]
    if scale < 0:
        raise KernelError(f"scale= is a standard deviation, so above 0, got {scale}")
    return float(scale) ** 2


def normal(mean: float, *, variance: float | None = None, scale: float | None = None) -> Prior:
    """A Normal prior. The spread has to be named: the paper's second number is a variance, libraries' a scale."""
    return Prior("Normal", float(mean), _spread(variance, scale))


def log_normal(mean: float, *, variance: float | None = None, scale: float | None = None) -> Prior:
    """A LogNormal prior: mean and spread are those of the logarithm."""
    return Prior("LogNormal", float(mean), _spread(variance, scale))


@dataclass(frozen=True)
class Priors:
    """A prior per hyperparameter type, with overrides per (type, covariate).

    >>> priors = Priors.synthetic().override("lengthscale", "hour", log_normal(1.0, scale=0.5))
    >>> priors.of("lengthscale", "hour").mean, priors.of("lengthscale", "temperature").mean
    (1.0, 0.0)
    """

    by_kind: Mapping[str, Prior]
    by_covariate: Mapping[tuple[str, str], Prior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_kind", MappingProxyType(dict(self.by_kind)))
        object.__setattr__(self, "by_covariate", MappingProxyType(dict(self.by_covariate)))
        for kind, covariate in self.by_covariate:
            if kind in (AMPLITUDE.kind, NOISE.kind):  # it would never be looked up
                raise KernelError(f"{kind} belongs to no covariate, so it cannot be overridden on {covariate!r} alone")

    def __hash__(self) -> int:
        return hash((frozenset(self.by_kind.items()), frozenset(self.by_covariate.items())))

    def __reduce__(self) -> tuple[type[Priors], tuple[dict[str, Prior], dict[tuple[str, str], Prior]]]:
        return Priors, (dict(self.by_kind), dict(self.by_covariate))  # mapping proxies do not travel between processes

    @classmethod
    def synthetic(cls) -> Priors:
        """The paper's priors for its synthetic experiment (method §3.1; paper, Appendix C.2)."""
        return cls._table(lengthscale=(0.0, 0.5), amplitude=(1.0, 0.5), period=(1.0, 0.5), noise=(0.0, 0.5))

    @classmethod
    def heartsteps(cls) -> Priors:
        """The paper's priors for HeartSteps, on covariates scaled to [0, 1] (method §3.1; paper, Appendix D.4)."""
        return cls._table(lengthscale=(-1.0, 0.75), amplitude=(0.5, 0.75), period=(-1.0, 0.75), noise=(1.0, 0.75))

    @classmethod
    def _table(cls, **log_normals: tuple[float, float]) -> Priors:
        by_kind = {kind: log_normal(mean, variance=variance) for kind, (mean, variance) in log_normals.items()}
        return cls({**by_kind, "location": normal(0.0, variance=0.1)})

    def override(self, kind: str, covariate: str | None, prior: Prior) -> Priors:
        """These priors with one replaced: for `kind` on one covariate, or everywhere if `covariate` is None."""
        if covariate is None:
            return Priors({**self.by_kind, kind: prior}, self.by_covariate)
        return Priors(self.by_kind, {**self.by_covariate, (kind, covariate): prior})

    def of(self, kind: str, covariate: str | None = None) -> Prior | None:
        """The prior of a hyperparameter type on a covariate; None if these priors say nothing of it."""
        if covariate is not None and (kind, covariate) in self.by_covariate:
            return self.by_covariate[kind, covariate]
        return self.by_kind.get(kind)

    def _of_slot(self, slot: Slot) -> Prior:
        family: Literal["Normal", "LogNormal"] = "LogNormal" if slot.spec.positive else "Normal"
        prior = self.of(slot.spec.kind, slot.covariate)
        if prior is None:
            return Prior(family, *slot.spec.fallback)
        if prior.family != family:
            raise KernelError(
                f"the prior of {slot.name} is a {prior.family}, but a {slot.spec.kind} is "
                f"{'positive: use log_normal' if slot.spec.positive else 'any real number: use normal'}"
            )
        return prior

    def moments(self, composition: Composition) -> tuple[Array, Array]:
        """(mean, variance) of each hyperparameter of a composition in the unconstrained space."""
        return self.moments_of(layout_of(composition).slots)

    def moments_of(self, slots: Sequence[Slot]) -> tuple[Array, Array]:
        """(mean, variance) of each of some hyperparameters in the unconstrained space."""
        priors = [self._of_slot(slot) for slot in slots]
        return np.array([p.mean for p in priors]), np.array([p.variance for p in priors])

    def sample(self, composition: Composition, size: int, rng: np.random.Generator) -> Array:
        """`size` unconstrained hyperparameter vectors from the prior, shape (size, hyperparameters)."""
        mean, variance = self.moments(composition)
        return mean + np.sqrt(variance) * rng.standard_normal((size, len(mean)))

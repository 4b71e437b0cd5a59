# ruff: noqa: D102 - AtomKind documents the methods once for all kinds
"""PER: the shape that repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kerneltrail.errors import KernelError
from kerneltrail.kernels import compiled
from kerneltrail.kernels.atoms.base import ATOMS, AtomKind, Foreign, Hyperparameter
from kerneltrail.kernels.families import BESSEL
from kerneltrail.kernels.fourier import Array, Series, periodic_series
from kerneltrail.kernels.phrases import Phrase, every, listing, quantity


class Periodic(AtomKind):
    """PER: exp(-2 sin²(π(x-x')/p)/ℓ²), a shape that repeats with period p (method (3); scikit-learn's ℓ)."""

    name = "PER"
    in_default_grammar = True
    family = BESSEL
    sklearn_names = ("ExpSineSquared",)
    hyperparameters = (
        Hyperparameter("lengthscale", "lengthscale", fallback=(0.0, 0.5)),
        Hyperparameter("period", "period", unit="length", fallback=(1.0, 0.5)),
    )

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        lengthscale, period = values
        a, b = 2.0 * np.pi / period * x, 2.0 * np.pi / period * z
        # -2 sin²(δ/2) = cos δ - 1, and cos(a-b) = cos a cos b + sin a sin b: n + m cosines in place of nm.
        angles = compiled.cosines(np.cos(a), np.sin(a), np.cos(b), np.sin(b), 1.0 / lengthscale**2)
        return np.exp(angles, out=angles)

    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        angle = 2.0 * np.pi / values[1] * x
        return list(compiled.periodic_slopes(angle, np.cos(angle), np.sin(angle), covariance, 2.0 / values[0] ** 2))

    def diagonal(self, x: Array, values: Array) -> Array:
        return np.ones_like(x)

    def series(self, values: Array, span: float, tail: Array) -> Series | None:
        return periodic_series(values[:, 0], values[:, 1], tail)

    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        cycle = quantity(values["period"], unit)
        return Phrase(
            clause=f"{self._pattern(covariate, values['lengthscale'])} that repeats {every(values['period'], unit)}",
            modifier=f"changing with {covariate} in a cycle of {cycle}",
            within=f"within a cycle of {cycle}",
            lead=0,
        )

    def phrase_power(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> Phrase:
        shortest, *longer = sorted(values, key=lambda each: each["period"])
        cycles = [quantity(each["period"], unit) for each in longer]
        noun = "a further cycle" if len(cycles) == 1 else "further cycles"
        base = self.phrase(covariate, shortest, unit)
        added = f" within {noun} of {listing(cycles)}"
        return Phrase(base.clause + added, base.modifier + added, base.within + added, base.lead)

    @staticmethod
    def _pattern(covariate: str, lengthscale: float) -> str:
        # 1/ℓ² is about how many harmonics matter: from one (a plain wave) to dozens (sharp peaks).
        detail = "smooth " if lengthscale >= 1.0 else "finely detailed " if lengthscale < 0.3 else ""
        return f"follow a {detail}pattern in {covariate}"

    def noun(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> str:
        shortest = quantity(min(each["period"] for each in values), unit).removeprefix("1 ")
        return f"a rhythm in {covariate} that comes back every {shortest}"

    def to_sklearn(self, values: Mapping[str, float]) -> Foreign | None:
        return "ExpSineSquared", {"length_scale": values["lengthscale"], "periodicity": values["period"]}

    def from_sklearn(self, kernel: Any, covariates: tuple[str, ...]) -> list[dict[str, tuple[float, ...]]]:
        if len(covariates) != 1:  # it depends on the joint distance
            raise KernelError(
                f"ExpSineSquared on the columns {', '.join(covariates)} is no product of atoms; put it on one column "
                "with kerneltrail.adapters.sklearn.Column"
            )
        return [{covariates[0]: (float(kernel.length_scale), float(kernel.periodicity))}]

    def to_gpytorch(self, values: Mapping[str, float]) -> Foreign | None:
        # GPyTorch's lengthscale λ is not squared: exp(-2 sin²(π(x-x')/p)/λ).
        return "PeriodicKernel", {"lengthscale": values["lengthscale"] ** 2, "period_length": values["period"]}


ATOMS.add(Periodic.name, Periodic())

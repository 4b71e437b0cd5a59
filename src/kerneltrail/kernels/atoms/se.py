# ruff: noqa: D102 - AtomKind documents the methods once for all kinds
"""SE: the smooth function that forgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kerneltrail.kernels import compiled
from kerneltrail.kernels.atoms.base import ATOMS, AtomKind, Foreign, Hyperparameter
from kerneltrail.kernels.families import GAUSSIAN
from kerneltrail.kernels.fourier import Array, Series, gaussian_series
from kerneltrail.kernels.phrases import Phrase, levels_of, likeness, quantity


class SquaredExponential(AtomKind):
    """SE: exp(-(x-x')²/(2ℓ²)), a smooth function that forgets over the lengthscale ℓ (method (4))."""

    name = "SE"
    in_default_grammar = True
    family = GAUSSIAN
    sklearn_names = ("RBF",)
    idempotent = True
    hyperparameters = (Hyperparameter("lengthscale", "lengthscale", unit="length", fallback=(0.0, 0.5)),)

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        scaled = np.subtract.outer(x, z)
        scaled *= 1.0 / values[0]
        np.multiply(scaled, scaled, out=scaled)
        scaled *= -0.5
        return np.exp(scaled, out=scaled)

    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        return [compiled.squared_slope(x, covariance, 1.0 / values[0] ** 2)]

    def diagonal(self, x: Array, values: Array) -> Array:
        return np.ones_like(x)

    def series(self, values: Array, span: float, tail: Array) -> Series | None:
        return gaussian_series(values[:, 0], span, tail)

    def merged(self, one: Sequence[float], two: Sequence[float]) -> list[float]:
        return [float(-0.5 * np.logaddexp(-2.0 * one[0], -2.0 * two[0]))]  # 1/ℓ² = 1/ℓ₁² + 1/ℓ₂²

    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        similar, stays = likeness(covariate, values["lengthscale"], unit)
        return Phrase(
            clause=f"be similar to what was observed at {similar}",
            modifier=f"as long as {stays}",
            within=f"with a shape that gradually changes over about {quantity(values['lengthscale'], unit)}",
        )

    def noun(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> str:
        return f"a difference by {covariate}" if levels_of(unit) else f"a smooth curve over {covariate}"

    def to_sklearn(self, values: Mapping[str, float]) -> Foreign | None:
        return "RBF", {"length_scale": values["lengthscale"]}

    def from_sklearn(self, kernel: Any, covariates: tuple[str, ...]) -> list[dict[str, tuple[float, ...]]]:
        lengths = np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64).ravel(), len(covariates))
        return [{covariate: (float(length),) for covariate, length in zip(covariates, lengths, strict=True)}]

    def to_gpytorch(self, values: Mapping[str, float]) -> Foreign | None:
        return "RBFKernel", {"lengthscale": values["lengthscale"]}


ATOMS.add(SquaredExponential.name, SquaredExponential())

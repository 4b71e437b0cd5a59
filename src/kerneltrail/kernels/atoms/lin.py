# ruff: noqa: D102 - AtomKind documents the methods once for all kinds
"""LIN: the straight line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kerneltrail.errors import KernelError
from kerneltrail.kernels import compiled
from kerneltrail.kernels.atoms.base import ATOMS, AtomKind, Foreign, Hyperparameter
from kerneltrail.kernels.fourier import Array
from kerneltrail.kernels.phrases import Phrase, levels_of, listing, place


class Linear(AtomKind):
    """LIN: (x-c)(x'-c), a straight line through zero at the location c (method (2))."""

    name = "LIN"
    in_default_grammar = True
    linear = True
    sklearn_names = ("DotProduct", "Linear")
    hyperparameters = (Hyperparameter("location", "location", positive=False, unit="location", fallback=(0.0, 0.1)),)

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        return compiled.outer(x - values[0], z - values[0])

    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        shifted = x - values[0]
        return [-np.add.outer(shifted, shifted)]

    def diagonal(self, x: Array, values: Array) -> Array:
        return (x - values[0]) ** 2

    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        at = place(covariate, values["location"], unit)
        return Phrase(
            clause=f"rise or fall in a straight line with {covariate} (no effect where it is {at})",
            modifier=f"in proportion to how far {covariate} is from {at}",
            within=f"with swings that grow the farther {covariate} is from {at}",
            lead=1,
        )

    def phrase_power(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> Phrase:
        # w·Π(x-c_i): a polynomial that crosses zero at each location.
        roots = sorted(each["location"] for each in values)
        at = listing(dict.fromkeys(place(covariate, root, unit) for root in roots), "or")
        shape = {2: "quadratic", 3: "cubic"}.get(len(roots), f"degree {len(roots)}")
        return Phrase(
            clause=f"follow a curved ({shape}) trend in {covariate} (no effect where it is {at})",
            modifier=f"in proportion to a curved ({shape}) function of {covariate} that is zero at {at}",
            within=f"with swings that grow faster and faster as {covariate} moves away from {at}",
            lead=1,
        )

    def noun(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> str:
        if levels_of(unit):
            return f"a difference by {covariate}"
        return f"a {'straight' if len(values) == 1 else 'bent'} line in {covariate}"

    def to_sklearn(self, values: Mapping[str, float]) -> Foreign | None:
        return "Linear", {"location": values["location"]}  # DotProduct has no location

    def from_sklearn(self, kernel: Any, covariates: tuple[str, ...]) -> list[dict[str, tuple[float, ...]]]:
        constant = getattr(kernel, "sigma_0", 0.0)
        if constant != 0.0:
            raise KernelError(
                f"DotProduct(sigma_0={constant:.3g}) is sigma_0² + x·x', and no atom is a constant; only "
                f"DotProduct(sigma_0=0) is a composition ({self.name} with location 0)"
            )
        return [{covariate: (float(getattr(kernel, "location", 0.0)),)} for covariate in covariates]

    def to_gpytorch(self, values: Mapping[str, float]) -> Foreign | None:
        return "Linear", {"location": values["location"]}  # GPyTorch's LinearKernel has no location


ATOMS.add(Linear.name, Linear())

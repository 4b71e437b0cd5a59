"""Two kinds of atoms that the package does not have: adding one touches one place, and everything works with it."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from kerneltrail.kernels import ATOMS, AtomKind, Hyperparameter, Phrase, likeness


class RationalQuadratic(AtomKind):
    """RQ: (1 + (x-x')²/(2αℓ²))^-α."""

    name = "RQ"
    hyperparameters = (
        Hyperparameter("lengthscale", "lengthscale", unit="length"),
        Hyperparameter("mixture", "mixture", fallback=(0.3, 0.2)),
    )

    def covariance(self, x, z, values):
        ell, alpha = values
        return (1.0 + np.subtract.outer(x, z) ** 2 / (2.0 * alpha * ell**2)) ** -alpha

    def gradient(self, x, values, covariance):
        ell, alpha = values
        squared = np.subtract.outer(x, x) ** 2 / (2.0 * alpha * ell**2)
        base = 1.0 + squared
        return [covariance * 2.0 * alpha * squared / base, covariance * alpha * (squared / base - np.log(base))]

    def diagonal(self, x, values):
        return np.ones_like(x)

    def phrase(self, covariate, values, unit):
        similar, stays = likeness(covariate, values["lengthscale"], unit)
        return Phrase(f"resemble, on many scales, what was observed at {similar}", f"as long as {stays}")


class Matern52(AtomKind):
    """MATERN52: (1 + s + s²/3)·e^-s with s = √5|x-x'|/ℓ."""

    name = "MATERN52"
    hyperparameters = (Hyperparameter("lengthscale", "lengthscale", unit="length"),)

    def covariance(self, x, z, values):
        s = math.sqrt(5.0) * np.abs(np.subtract.outer(x, z)) / values[0]
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)

    def gradient(self, x, values, covariance):
        s = math.sqrt(5.0) * np.abs(np.subtract.outer(x, x)) / values[0]
        return [s**2 * (1.0 + s) / 3.0 * np.exp(-s)]

    def diagonal(self, x, values):
        return np.ones_like(x)

    def phrase(self, covariate, values, unit):
        similar, stays = likeness(covariate, values["lengthscale"], unit)
        return Phrase(f"follow, with some roughness, what was observed at {similar}", f"as long as {stays}")


NEW_ATOMS = (RationalQuadratic(), Matern52())


@contextmanager
def registered() -> Iterator[None]:
    """Both kinds known inside the block, and forgotten after it."""
    with ExitStack() as stack:
        for kind in NEW_ATOMS:
            stack.enter_context(ATOMS.temporarily(kind.name, kind))
        yield

"""Atoms: the base kernels, each on one covariate, and everything the rest of the package knows about them.

An atom kind is one class in this file (or in a user's own): its hyperparameters, its covariance, the derivative, its
spectral form if it has a short one, and its words. Nothing else in the package names a kind, so a new
one is added here and nowhere else (`register`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numba
import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels.fourier import BESSEL, GAUSSIAN, NO_FAMILY, Series, gaussian_series, periodic_series
from kerneltrail.kernels.phrases import Phrase, every, likeness, listing, place, quantity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hyperparameter:
    """One hyperparameter of an atom kind.

    Attributes:
        name: what it is called in texts and files, e.g. ``lengthscale``.
        kind: the type under which priors are looked up (SPEC §3); often the same as the name.
        positive: positive ones are optimised as logarithms (SPEC §3, unconstrained space).
        unit: how it changes when the covariate is rescaled: ``length`` (times the range), ``location`` (range and
            shift) or ``none``.
        fallback: (mean, variance) of its prior in the unconstrained space where the priors say nothing of `kind`.
    """

    name: str
    kind: str
    positive: bool = True
    unit: Literal["length", "location", "none"] = "none"
    fallback: tuple[float, float] = (0.0, 1.0)


class AtomKind(ABC):
    """What a base kernel is. Arguments named `values` hold its hyperparameters in natural (constrained) form."""

    name: ClassVar[str]
    title: ClassVar[str]
    hyperparameters: ClassVar[tuple[Hyperparameter, ...]]
    idempotent: ClassVar[bool] = False
    """Whether the product of two on one covariate is again one, with other hyperparameters (SE×SE is SE)."""
    linear: ClassVar[bool] = False
    """Whether it is the one-feature kernel (x-c)(x'-c); its only hyperparameter is then the location c."""
    family: ClassVar[int] = NO_FAMILY
    """The family of its series, if compiled code can make it by itself (`series.one_series`): a matter of speed."""

    @abstractmethod
    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        """k(x_i, z_j), shape (len(x), len(z))."""

    @abstractmethod
    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        """dk(x_i, x_j)/du for each unconstrained hyperparameter u; `covariance` is k(x, x), already computed."""

    @abstractmethod
    def diagonal(self, x: Array, values: Array) -> Array:
        """k(x_i, x_i), shape (len(x),)."""

    def series(self, values: Array, span: float, tail: Array) -> Series | None:
        """Cosine series for S hyperparameter vectors, `values` of shape (S, k), exact to `tail` for |x-z| ≤ span.

        None where the kind has no short one; the dense method is used then.
        """
        return None

    @abstractmethod
    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        """What the kernel says, in words; `values` by hyperparameter name, in data units."""

    def phrase_power(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> Phrase:
        """What several of this kind multiplied on one covariate say; by default the first, narrowed by the others."""
        first, *others = (self.phrase(covariate, each, unit) for each in values)
        added = "".join(f", {other.within or other.modifier}" for other in others)
        return Phrase(
            first.clause + added, first.modifier + added, (first.within or first.modifier) + added, first.lead
        )


@numba.njit(cache=True)
def _outer(a: Array, b: Array) -> Array:
    """a_i b_j; NumPy's own pays for each row of so short a matrix."""
    out = np.empty((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            out[i, j] = a[i] * b[j]
    return out


@numba.njit(cache=True)
def _cosines(cos_a: Array, sin_a: Array, cos_b: Array, sin_b: Array, factor: float) -> Array:
    """factor · (cos(a_i - b_j) - 1), never above 0: equal rows give 0, not the rounding of it."""
    out = np.empty((cos_a.shape[0], cos_b.shape[0]))
    for i in range(cos_a.shape[0]):
        for j in range(cos_b.shape[0]):
            out[i, j] = min(factor * (cos_a[i] * cos_b[j] + sin_a[i] * sin_b[j] - 1.0), 0.0)
    return out


@numba.njit(cache=True)
def _periodic_slopes(angle: Array, cosine: Array, sine: Array, covariance: Array, factor: float) -> tuple[Array, Array]:
    """dk/d log ℓ = k·2(1 - cos δ)/ℓ² and dk/d log p = k·δ sin δ/ℓ² of PER, δ = 2π(x-x')/p, in one pass.

    Cosine and sine of the differences come from those of the rows: n of each in place of n².
    """
    n = angle.shape[0]
    by_lengthscale = np.empty((n, n))
    by_period = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            weight = factor * covariance[i, j]
            by_lengthscale[i, j] = weight * (1.0 - cosine[i] * cosine[j] - sine[i] * sine[j])
            by_period[i, j] = weight * 0.5 * (angle[i] - angle[j]) * (sine[i] * cosine[j] - cosine[i] * sine[j])
    return by_lengthscale, by_period


@numba.njit(cache=True)
def _squared_slope(x: Array, covariance: Array, factor: float) -> Array:
    """dk/d log ℓ = k·(x-x')²/ℓ² of SE."""
    n = x.shape[0]
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = factor * covariance[i, j] * (x[i] - x[j]) ** 2
    return out


class Linear(AtomKind):
    """LIN: (x-c)(x'-c), a straight line through zero at the location c (SPEC §2)."""

    name = "LIN"
    title = "linear"
    linear = True
    hyperparameters = (Hyperparameter("location", "location", positive=False, unit="location", fallback=(0.0, 0.1)),)

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        return _outer(x - values[0], z - values[0])

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


class Periodic(AtomKind):
    """PER: exp(-2 sin²(π(x-x')/p)/ℓ²), a shape that repeats with period p (SPEC §2; scikit-learn's ℓ)."""

    name = "PER"
    title = "periodic"
    family = BESSEL
    hyperparameters = (
        Hyperparameter("lengthscale", "lengthscale", fallback=(0.0, 0.5)),
        Hyperparameter("period", "period", unit="length", fallback=(1.0, 0.5)),
    )

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        lengthscale, period = values
        a, b = 2.0 * np.pi / period * x, 2.0 * np.pi / period * z
        # -2 sin²(δ/2) = cos δ - 1, and cos(a-b) = cos a cos b + sin a sin b: n + m cosines in place of nm.
        angles = _cosines(np.cos(a), np.sin(a), np.cos(b), np.sin(b), 1.0 / lengthscale**2)
        return np.exp(angles, out=angles)

    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        angle = 2.0 * np.pi / values[1] * x
        return list(_periodic_slopes(angle, np.cos(angle), np.sin(angle), covariance, 2.0 / values[0] ** 2))

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


class SquaredExponential(AtomKind):
    """SE: exp(-(x-x')²/(2ℓ²)), a smooth function that forgets over the lengthscale ℓ (SPEC §2)."""

    name = "SE"
    title = "squared-exponential"
    family = GAUSSIAN
    idempotent = True
    hyperparameters = (Hyperparameter("lengthscale", "lengthscale", unit="length", fallback=(0.0, 0.5)),)

    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        scaled = np.subtract.outer(x, z)
        scaled *= 1.0 / values[0]
        np.multiply(scaled, scaled, out=scaled)
        scaled *= -0.5
        return np.exp(scaled, out=scaled)

    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        return [_squared_slope(x, covariance, 1.0 / values[0] ** 2)]

    def diagonal(self, x: Array, values: Array) -> Array:
        return np.ones_like(x)

    def series(self, values: Array, span: float, tail: Array) -> Series | None:
        return gaussian_series(values[:, 0], span, tail)

    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        similar, stays = likeness(covariate, values["lengthscale"], unit)
        return Phrase(
            clause=f"be similar to what was observed at {similar}",
            modifier=f"as long as {stays}",
            within=f"with a shape that gradually changes over about {quantity(values['lengthscale'], unit)}",
        )


@dataclass(frozen=True, order=True)
class Atom:
    """One base kernel on one covariate, such as ``SE[hour]``: a value, without hyperparameters."""

    kind: str
    covariate: str

    def __post_init__(self) -> None:
        kind_of(self.kind)
        if not self.covariate or self.covariate != self.covariate.strip() or set(self.covariate) & set("[]\n"):
            raise KernelError(
                f"covariate name {self.covariate!r} cannot be written in a kernel: it must be non-empty, without "
                "brackets, line breaks or blanks at its ends"
            )

    @property
    def spec(self) -> AtomKind:
        """The kind's definition."""
        return kind_of(self.kind)

    def __str__(self) -> str:
        return f"{self.kind}[{self.covariate}]"


_KINDS: dict[str, AtomKind] = {}


def register(kind: AtomKind) -> AtomKind:
    """Make an atom kind known by its name, to texts, pools, priors, evidence and words alike.

    Registering a name again with another definition is refused: models saved under the old one would change meaning.
    """
    if not (kind.name.isascii() and kind.name.isidentifier()):
        raise KernelError(f"atom name {kind.name!r} must be a plain identifier, such as 'RQ' or 'MATERN52'")
    known = _KINDS.get(kind.name)
    if known is not None and type(known) is not type(kind):
        raise KernelError(f"an atom named {kind.name} exists already: {type(known).__name__}")
    _KINDS[kind.name] = kind
    return kind


def kind_of(name: str) -> AtomKind:
    """The registered atom kind of that name."""
    try:
        return _KINDS[name]
    except KeyError:
        raise KernelError(f"unknown kernel {name!r}; known are {', '.join(kinds())}") from None


def kinds() -> tuple[str, ...]:
    """Names of all registered atom kinds."""
    return tuple(_KINDS)


for _kind in (Linear(), Periodic(), SquaredExponential()):
    register(_kind)

__all__ = [
    "Atom",
    "AtomKind",
    "Hyperparameter",
    "Linear",
    "Periodic",
    "SquaredExponential",
    "kind_of",
    "kinds",
    "register",
]

"""Hyperparameters: where each of a kernel's stands in a vector, the vector as a value with names, and priors over it.

`VectorLayout` and `NamedVector` hold for any kernel; `Layout` and `Hyperparameters` are those of a composition. An
expression with brackets (`kerneltrail.methods.cks`) orders its hyperparameters in its own way.

Priors are data: one for each type of hyperparameter, with overrides per covariate (method §3.1). Every prior is a
Normal in the unconstrained space; a LogNormal on a positive hyperparameter is a Normal on its log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Atom, Hyperparameter
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.fourier import Array

AMPLITUDE = Hyperparameter("amplitude", "amplitude", fallback=(1.0, 0.5))
"""σ_f² of a product."""
NOISE = Hyperparameter("noise", "noise", fallback=(0.0, 0.5))
"""σ², the noise variance."""


@dataclass(frozen=True)
class Slot:
    """One entry of a hyperparameter vector.

    Attributes:
        name: unique within the kernel, e.g. ``PER[hour].period``.
        spec: what kind of hyperparameter it is.
        product: index of its product, or -1 for the noise.
        atom: index of its atom within the product, or -1 for amplitude and noise.
        covariate: the covariate it belongs to, or None.
    """

    name: str
    spec: Hyperparameter
    product: int
    atom: int
    covariate: str | None


class VectorLayout(ABC):
    """The order of a kernel's hyperparameters; the noise is last.

    Attributes:
        slots: what each entry is.
        positive: which entries are optimised as logarithms.
    """

    slots: tuple[Slot, ...]
    positive: NDArray[np.bool_]

    @property
    @abstractmethod
    def kernel(self) -> str:
        """The kernel's text, for messages."""

    @property
    def size(self) -> int:
        """Number of hyperparameters, noise included."""
        return len(self.slots)

    @property
    def names(self) -> tuple[str, ...]:
        """The slots' names, in order."""
        return tuple(slot.name for slot in self.slots)

    def constrain(self, unconstrained: ArrayLike) -> Array:
        """Natural values from unconstrained ones: exp for positive hyperparameters; any leading shape."""
        u = self._sized(unconstrained)
        return np.where(self.positive, np.exp(np.where(self.positive, u, 0.0)), u)

    def unconstrain(self, values: ArrayLike) -> Array:
        """Unconstrained values from natural ones: log for positive hyperparameters; any leading shape."""
        v = self._sized(values)
        if np.any((v <= 0.0) & self.positive):
            bad = [slot.name for slot, p in zip(self.slots, ((v <= 0) & self.positive).T, strict=True) if np.any(p)]
            raise KernelError(f"{', '.join(bad)} of {self.kernel} must be positive")
        return np.where(self.positive, np.log(np.where(self.positive, v, 1.0)), v)

    def _sized(self, vectors: ArrayLike) -> Array:
        array = np.asarray(vectors, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.size:  # one value would otherwise be spread over all of them
            raise KernelError(
                f"{self.kernel} has {self.size} hyperparameters ({', '.join(self.names)}), "
                f"got an array of shape {array.shape}"
            )
        return array


class NamedVector(Mapping[str, float], ABC):
    """A kernel's hyperparameters as one value: a mapping from names to natural values.

    Attributes:
        unconstrained: the vector in the unconstrained space, in the order of the layout.
    """

    unconstrained: tuple[float, ...]

    @property
    @abstractmethod
    def layout(self) -> VectorLayout:
        """The order of the vector."""

    def _check(self) -> None:
        """Make plain floats of the vector; refuse one that is too short, too long or not finite."""
        object.__setattr__(self, "unconstrained", tuple(float(value) for value in self.unconstrained))
        layout = self.layout
        if len(self.unconstrained) != layout.size:
            raise KernelError(
                f"{layout.kernel} has {layout.size} hyperparameters ({', '.join(layout.names)}), "
                f"got {len(self.unconstrained)} values"
            )
        if not np.all(np.isfinite(self.unconstrained)):
            bad = [n for n, u in zip(layout.names, self.unconstrained, strict=True) if not np.isfinite(u)]
            raise KernelError(f"{', '.join(bad)} of {layout.kernel} must be finite")

    @property
    def vector(self) -> Array:
        """The unconstrained vector as an array."""
        return np.array(self.unconstrained)

    @property
    def values_array(self) -> Array:
        """The natural values as an array."""
        return self.layout.constrain(self.vector)

    def __getitem__(self, name: str) -> float:
        try:
            index = self.layout.names.index(name)
        except ValueError:
            raise KeyError(name) from None
        return float(self.values_array[index])

    def __iter__(self) -> Iterator[str]:
        return iter(self.layout.names)

    def __len__(self) -> int:
        return len(self.unconstrained)


@dataclass(frozen=True)
class Layout(VectorLayout):
    """The order of a composition's hyperparameters: for each product its amplitude, then its atoms'; the noise last.

    >>> from kerneltrail.kernels import parse
    >>> [slot.name for slot in layout_of(parse("LIN[x] + PER[x]")).slots]  # doctest: +NORMALIZE_WHITESPACE
    ['LIN[x].amplitude', 'LIN[x].location', 'PER[x].amplitude', 'PER[x].lengthscale', 'PER[x].period', 'noise']
    """

    composition: Composition
    slots: tuple[Slot, ...]
    amplitude_index: tuple[int, ...]
    atom_index: tuple[tuple[slice, ...], ...]
    positive: NDArray[np.bool_]

    @property
    def kernel(self) -> str:
        """The composition's text, for messages."""
        return self.composition.text or "noise alone"


def _atom_names(product: Product) -> list[str]:
    """Names for the atoms, told apart where one stands twice: PER[x], PER[x]#2."""
    seen: dict[Atom, int] = {}
    names = []
    for atom in product.atoms:
        seen[atom] = seen.get(atom, 0) + 1
        names.append(str(atom) if seen[atom] == 1 else f"{atom}#{seen[atom]}")
    return names


@lru_cache(maxsize=65536)
def layout_of(composition: Composition) -> Layout:
    """The layout of a composition (computed once per composition)."""
    slots: list[Slot] = []
    amplitudes: list[int] = []
    atoms: list[tuple[slice, ...]] = []
    for p, product in enumerate(composition):
        prefix = "" if product.order == 1 else f"{product}: "
        amplitudes.append(len(slots))
        slots.append(Slot(f"{product}.amplitude", AMPLITUDE, p, -1, None))
        places = []
        for a, (atom, name) in enumerate(zip(product.atoms, _atom_names(product), strict=True)):
            start = len(slots)
            slots.extend(
                Slot(f"{prefix}{name}.{spec.name}", spec, p, a, atom.covariate) for spec in atom.spec.hyperparameters
            )
            places.append(slice(start, len(slots)))
        atoms.append(tuple(places))
    slots.append(Slot("noise", NOISE, -1, -1, None))
    positive = np.array([slot.spec.positive for slot in slots])
    positive.setflags(write=False)
    return Layout(composition, tuple(slots), tuple(amplitudes), tuple(atoms), positive)


@dataclass(frozen=True)
class Hyperparameters(NamedVector):
    """A composition's hyperparameters as one value: a mapping from names to natural values."""

    composition: Composition
    unconstrained: tuple[float, ...]

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def from_values(cls, composition: Composition, values: Mapping[str, float] | ArrayLike) -> Hyperparameters:
        """From natural values, by name or in the layout's order."""
        layout = layout_of(composition)
        if isinstance(values, Mapping):
            wrong = set(values) ^ set(layout.names)
            if wrong:
                raise KernelError(
                    f"hyperparameters of {composition or 'noise alone'} are {', '.join(layout.names)}; "
                    f"missing or unknown: {', '.join(sorted(wrong))}"
                )
            values = [values[name] for name in layout.names]
        return cls(composition, tuple(layout.unconstrain(values)))

    @property
    def layout(self) -> Layout:
        """The layout of the vector."""
        return layout_of(self.composition)


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
    def standardised(cls) -> Priors:
        """HeartSteps' priors for a target of standard deviation 1: its own had one of 2.9 (method §3.1)."""
        return cls._table(lengthscale=(-1.0, 0.75), amplitude=(-1.5, 0.75), period=(-1.0, 0.75), noise=(-1.0, 0.75))

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

"""Where each hyperparameter of a kernel stands in a vector, and the vector as a value with names.

`VectorLayout` and `NamedVector` hold for any kernel; `Layout` and `Hyperparameters` are those of a composition. An
expression with brackets (`kerneltrail.methods.cks`) orders its hyperparameters in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

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

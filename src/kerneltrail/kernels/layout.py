"""Where each hyperparameter of a composition stands in a vector, and the vector as a value with names and units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Atom, Hyperparameter
from kerneltrail.kernels.composition import Composition, Product

Array = NDArray[np.float64]

AMPLITUDE = Hyperparameter("amplitude", "amplitude", fallback=(1.0, 0.5))
"""σ_f² of a product."""
NOISE = Hyperparameter("noise", "noise", fallback=(0.0, 0.5))
"""σ², the noise variance."""


@dataclass(frozen=True)
class Slot:
    """One entry of the hyperparameter vector.

    Attributes:
        name: unique within the composition, e.g. ``PER[hour].period``.
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


@dataclass(frozen=True)
class Layout:
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
            raise KernelError(f"{', '.join(bad)} of {self.composition or 'noise alone'} must be positive")
        return np.where(self.positive, np.log(np.where(self.positive, v, 1.0)), v)

    def _sized(self, vectors: ArrayLike) -> Array:
        array = np.asarray(vectors, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.size:  # one value would otherwise be spread over all of them
            raise KernelError(
                f"{self.composition or 'noise alone'} has {self.size} hyperparameters ({', '.join(self.names)}), "
                f"got an array of shape {array.shape}"
            )
        return array


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
class Hyperparameters(Mapping[str, float]):
    """A composition's hyperparameters as one value: a mapping from names to natural values.

    Attributes:
        composition: the kernel they belong to.
        unconstrained: the vector in the unconstrained space, in the layout's order.
    """

    composition: Composition
    unconstrained: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "unconstrained", tuple(float(value) for value in self.unconstrained))
        if len(self.unconstrained) != self.layout.size:
            raise KernelError(
                f"{self.composition or 'noise alone'} has {self.layout.size} hyperparameters "
                f"({', '.join(self.layout.names)}), got {len(self.unconstrained)} values"
            )
        if not np.all(np.isfinite(self.unconstrained)):
            bad = [n for n, u in zip(self.layout.names, self.unconstrained, strict=True) if not np.isfinite(u)]
            raise KernelError(f"{', '.join(bad)} of {self.composition or 'noise alone'} must be finite")

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

"""Where each hyperparameter of a composition stands in a vector, and the vector as a value with names and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Atom
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.entries import AMPLITUDE, NOISE, Entries, Named, Slot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout(Entries):
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
class Hyperparameters(Named):
    """A composition's hyperparameters as one value: a mapping from names to natural values.

    Attributes:
        composition: the kernel they belong to.
        unconstrained: the vector in the unconstrained space, in the layout's order.
    """

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

    @property
    def _entries(self) -> Layout:
        """The layout, as any order of entries."""
        return self.layout

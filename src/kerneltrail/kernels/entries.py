"""A hyperparameter vector's entries by name: what each is, and the vector as a mapping to natural values.

A composition (`layout`) and an expression with brackets (`kerneltrail.methods.cks.layout`) order their entries each in
their own way; what can be said of any order is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Hyperparameter

Array = NDArray[np.float64]

AMPLITUDE = Hyperparameter("amplitude", "amplitude", fallback=(1.0, 0.5))
"""σ_f² of a product."""
NOISE = Hyperparameter("noise", "noise", fallback=(0.0, 0.5))
"""σ², the noise variance."""


@dataclass(frozen=True)
class Slot:
    """One entry of the hyperparameter vector.

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


class Entries(ABC):
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


class Named(Mapping[str, float], ABC):
    """A kernel's hyperparameters as one value: a mapping from names to natural values.

    Attributes:
        unconstrained: the vector in the unconstrained space, in the order of the entries.
    """

    unconstrained: tuple[float, ...]

    @property
    @abstractmethod
    def _entries(self) -> Entries:
        """The order of the vector."""

    def _check(self) -> None:
        """Make plain floats of the vector; refuse one that is too short, too long or not finite."""
        object.__setattr__(self, "unconstrained", tuple(float(value) for value in self.unconstrained))
        entries = self._entries
        if len(self.unconstrained) != entries.size:
            raise KernelError(
                f"{entries.kernel} has {entries.size} hyperparameters ({', '.join(entries.names)}), "
                f"got {len(self.unconstrained)} values"
            )
        if not np.all(np.isfinite(self.unconstrained)):
            bad = [n for n, u in zip(entries.names, self.unconstrained, strict=True) if not np.isfinite(u)]
            raise KernelError(f"{', '.join(bad)} of {entries.kernel} must be finite")

    @property
    def vector(self) -> Array:
        """The unconstrained vector as an array."""
        return np.array(self.unconstrained)

    @property
    def values_array(self) -> Array:
        """The natural values as an array."""
        return self._entries.constrain(self.vector)

    def __getitem__(self, name: str) -> float:
        try:
            index = self._entries.names.index(name)
        except ValueError:
            raise KeyError(name) from None
        return float(self.values_array[index])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries.names)

    def __len__(self) -> int:
        return len(self.unconstrained)

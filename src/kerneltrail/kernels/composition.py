"""Products of atoms, and compositions: sets of products, summed. Immutable, canonical, hashable.

A product carries one amplitude σ_f² (an amplitude per factor would not be identifiable, method §2), and a composition
is a *set*, so two that are equal are the same model whatever the order they were written in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Atom
from kerneltrail.store.digest import described

LARGEST = 10_000
"""Most factors of a composition: (A+B)*(C+D)*… doubles with every bracket that is multiplied out."""


@dataclass(frozen=True)
class Product:
    """σ_f² times one or more atoms, over one or several covariates.

    Factors are sorted, and those that absorb each other (SE×SE on one covariate is SE) are merged, so equality means
    "the same kernel".

    >>> Product((Atom("SE", "temperature"), Atom("PER", "hour")))
    Product('PER[hour]*SE[temperature]')
    """

    atoms: tuple[Atom, ...]

    def __post_init__(self) -> None:
        if not self.atoms:
            raise KernelError("a product needs at least one atom")
        merged: list[Atom] = []
        for atom in sorted(self.atoms, key=lambda atom: (atom.kind, atom.covariate)):
            if merged and merged[-1] == atom and atom.spec.idempotent:
                continue
            merged.append(atom)
        object.__setattr__(self, "atoms", tuple(merged))

    @property
    def covariates(self) -> tuple[str, ...]:
        """The covariates it reads, each once, sorted."""
        return tuple(sorted({atom.covariate for atom in self.atoms}))

    @property
    def order(self) -> int:
        """Number of factors."""
        return len(self.atoms)

    def __mul__(self, other: Product | Composition) -> Product | Composition:
        if isinstance(other, Product):
            return Product(self.atoms + other.atoms)
        if isinstance(other, Composition):
            return Composition((self,)) * other
        return NotImplemented

    def __add__(self, other: Product | Composition) -> Composition:
        if not isinstance(other, Composition | Product):
            return NotImplemented
        return Composition((self,)) + other

    def __lt__(self, other: Product) -> bool:
        return self._key < other._key

    @cached_property
    def _key(self) -> tuple[int, str]:
        return (self.order, str(self))

    def __str__(self) -> str:
        return "*".join(map(str, self.atoms))

    def __repr__(self) -> str:
        return f"Product({str(self)!r})"


@dataclass(frozen=True)
class Composition:
    """A set of products, summed; the noise σ²I is added on top by whoever evaluates it.

    `+` joins sets, `*` multiplies out, so nested sums and products end as a sum of products. Fewest factors come first
    in the text. The empty composition is falsy: the root of the graph of transitions, or noise alone.

    >>> from kerneltrail.kernels import parse
    >>> parse("PER[hour]*SE[temperature] + LIN[x]")
    Composition('LIN[x] + PER[hour]*SE[temperature]')
    >>> (parse("LIN[x]") + parse("SE[x]")) * parse("PER[x]")
    Composition('LIN[x]*PER[x] + PER[x]*SE[x]')
    """

    products: tuple[Product, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "products", tuple(sorted(set(self.products))))

    @classmethod
    def sum(cls, *parts: Composition) -> Composition:
        """The sum of any number of compositions; sorted once, where repeated `+` would sort each time."""
        return cls(tuple(chain.from_iterable(parts)))

    @classmethod
    def product(cls, *parts: Composition) -> Composition:
        """The product of one or more compositions, multiplied out."""
        single: list[Atom] = []
        sums: list[Composition] = []
        for part in parts:
            if len(part) == 1:
                single.extend(part.products[0].atoms)
            else:
                sums.append(part)
        if single:  # all plain factors at once: sorted once
            sums.append(cls((Product(tuple(single)),)))
        total = sums.pop()
        for each in sums:
            total = total * each
        return total

    @property
    def covariates(self) -> tuple[str, ...]:
        """The covariates it reads, each once, sorted."""
        return tuple(sorted({name for product in self.products for name in product.covariates}))

    @cached_property
    def text(self) -> str:
        """The text form (method §2); `parse` reads it back to an equal composition."""
        return " + ".join(map(str, self.products))

    def __add__(self, other: Composition | Product) -> Composition:
        if isinstance(other, Product):
            return Composition((*self.products, other))
        if isinstance(other, Composition):
            return Composition(self.products + other.products)
        return NotImplemented

    def __mul__(self, other: Composition | Product) -> Composition:
        if isinstance(other, Product):
            other = Composition((other,))
        if isinstance(other, Composition):
            if len(self) * other._factors + len(other) * self._factors > LARGEST:
                raise KernelError(
                    f"multiplied out, a kernel of {len(self)} and one of {len(other)} products would have more than "
                    f"{LARGEST} factors"
                )
            return Composition(tuple(Product(a.atoms + b.atoms) for a in self.products for b in other.products))
        return NotImplemented

    def __sub__(self, other: Composition | Product) -> Composition:
        if not isinstance(other, Composition | Product):
            return NotImplemented
        gone = other.products if isinstance(other, Composition) else (other,)
        return Composition(tuple(p for p in self.products if p not in gone))

    def __contains__(self, product: object) -> bool:
        return product in self.products

    def __iter__(self) -> Iterator[Product]:
        return iter(self.products)

    def __len__(self) -> int:
        return len(self.products)

    def __lt__(self, other: Composition) -> bool:
        return (len(self), self.text) < (len(other), other.text)

    @cached_property
    def _factors(self) -> int:
        return sum(product.order for product in self.products)

    @cached_property
    def _hash(self) -> int:
        return hash(self.products)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Composition], tuple[tuple[Product, ...]]]:
        return Composition, (self.products,)  # without the hash: texts hash differently in every process

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Composition({self.text!r})"


described.register(Product, str)
described.register(Composition, str)

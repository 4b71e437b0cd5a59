"""Sums of products of atoms *with* their values: what a foreign kernel is multiplied out to.

A composition forgets hyperparameters, so two terms that differ in them only would fall together in it. Here they are
kept apart, and refused at the end if the composition cannot tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Product, layout_of


@dataclass(frozen=True, order=True)
class Factor:
    """An atom with its hyperparameters, in the order of its kind."""

    atom: Atom
    values: tuple[float, ...]


@dataclass(frozen=True)
class Term:
    """size × factors; or size × white noise."""

    size: float
    factors: tuple[Factor, ...]
    white: bool = False

    def __mul__(self, other: Term) -> Term:
        for one, two in ((self, other), (other, self)):
            if one.white and two.factors:
                factors = "*".join(str(factor.atom) for factor in two.factors)
                raise KernelError(f"WhiteKernel times {factors} is no noise variance")
        return Term(self.size * other.size, _absorb(self.factors + other.factors), self.white or other.white)


def _absorb(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Factors sorted, with SE×SE on one covariate made one: 1/ℓ² = 1/ℓ₁² + 1/ℓ₂²."""
    merged: dict[Atom, float] = {}
    others = []
    for factor in factors:
        if factor.atom.kind == "SE":
            merged[factor.atom] = merged.get(factor.atom, 0.0) + factor.values[0] ** -2
        else:
            others.append(factor)
    return tuple(sorted([*others, *(Factor(atom, (inverse**-0.5,)) for atom, inverse in merged.items())]))


def _alike(one: tuple[Factor, ...], two: tuple[Factor, ...]) -> bool:
    """Whether factors of the same atoms have the same values, up to the rounding of merging them in another order."""
    pairs = zip((v for f in one for v in f.values), (v for f in two for v in f.values), strict=True)
    return all(isclose(a, b, rel_tol=1e-12) for a, b in pairs)


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms."""

    terms: tuple[Term, ...]

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial(self.terms + other.terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Polynomial(tuple(a * b for a in self.terms for b in other.terms))

    def hyperparameters(self, noise: float = 0.0) -> Hyperparameters:
        """The composition that equals this sum; `noise` is added to its noise variance.

        Raises:
            KernelError: where no composition equals it.
        """
        found: dict[Product, Term] = {}
        for term in self.terms:
            if term.white:
                noise += term.size
                continue
            if not term.factors:
                raise KernelError(f"the constant {term.size:.3g} stands on its own, and no atom is a constant")
            factors = _absorb(term.factors)
            product = Product(tuple(factor.atom for factor in factors))
            before = found.get(product)
            if before is not None and not _alike(before.factors, factors):
                raise KernelError(
                    f"{product} occurs twice with different hyperparameters, but a composition is a set of products"
                )
            found[product] = Term(term.size + (before.size if before else 0.0), factors)
        if noise <= 0.0:
            raise KernelError("there is no noise: add a WhiteKernel, or say noise=")
        layout = layout_of(Composition(tuple(found)))
        values = [0.0] * layout.size
        values[-1] = noise
        for p, product in enumerate(layout.composition):
            values[layout.amplitude_index[p]] = found[product].size
            for place, factor in zip(layout.atom_index[p], found[product].factors, strict=True):
                values[place] = factor.values
        return Hyperparameters.from_values(layout.composition, values)

"""What adapters of kernels share: columns by name, and sums of products of atoms *with* their values.

Such a sum is what another library's kernel is multiplied out to. A composition forgets hyperparameters, so two terms
that differ in them only would fall together in it. Here they are kept apart, and refused at the end if the composition
cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Product, layout_of


@dataclass(frozen=True, order=True)
class Factor:
    """An atom with its hyperparameters, in the order of its kind."""

    atom: Atom
    values: tuple[float, ...]

    def absorbing(self, other: Factor) -> Factor:
        """The single atom that equals this one times another of the same idempotent kind."""
        layout = layout_of(Composition((Product((self.atom,)),)))
        one, two = (layout.unconstrain([1.0, *each.values, 1.0])[1:-1].tolist() for each in (self, other))
        values = layout.constrain([0.0, *self.atom.spec.merged(one, two), 0.0])[1:-1]
        return Factor(self.atom, tuple(values.tolist()))


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
    """Factors sorted, with those that absorb each other (SE×SE on one covariate) made one."""
    merged: list[Factor] = []
    for factor in sorted(factors):
        if merged and merged[-1].atom == factor.atom and factor.atom.spec.idempotent:
            merged[-1] = merged[-1].absorbing(factor)
        else:
            merged.append(factor)
    return tuple(merged)


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
        terms: dict[Product, Term] = {}
        for term in self.terms:
            if term.white:
                noise += term.size
                continue
            if not term.factors:
                raise KernelError(f"the constant {term.size:.3g} stands on its own, and no atom is a constant")
            factors = _absorb(term.factors)
            product = Product(tuple(factor.atom for factor in factors))
            before = terms.get(product)
            if before is not None and not _alike(before.factors, factors):
                raise KernelError(
                    f"{product} occurs twice with different hyperparameters, but a composition is a set of products"
                )
            terms[product] = Term(term.size + (before.size if before else 0.0), factors)
        if noise <= 0.0:
            raise KernelError("there is no noise: add a WhiteKernel, or say noise=")
        layout = layout_of(Composition(tuple(terms)))
        values = [0.0] * layout.size
        values[-1] = noise
        for p, product in enumerate(layout.composition):
            values[layout.amplitude_index[p]] = terms[product].size
            for slots, factor in zip(layout.atom_index[p], terms[product].factors, strict=True):
                values[slots] = factor.values
        return Hyperparameters.from_values(layout.composition, values)


def columns_of(composition: Composition, covariates: Sequence[str]) -> dict[str, int]:
    """Column number of every covariate (other libraries' kernels know no names), for all that are read."""
    check_names(covariates)
    columns = {name: i for i, name in enumerate(covariates)}
    missing = [name for name in composition.covariates if name not in columns]
    if missing:
        raise KernelError(
            f"{composition} reads {', '.join(missing)}, which is not among the columns {', '.join(covariates)}"
        )
    return columns


def check_names(covariates: Sequence[str]) -> None:
    """Refuse names that would not tell the columns apart."""
    if isinstance(covariates, str):
        raise KernelError(f"covariates must be a list of names, got the text {covariates!r}")
    if len(set(covariates)) != len(covariates):
        raise KernelError(f"covariates must differ from each other, got {', '.join(covariates)}")


def named_values(atom: Atom, values: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    """An atom's natural values by the names of its hyperparameters."""
    names = (spec.name for spec in atom.spec.hyperparameters)
    return dict(zip(names, map(float, values), strict=True))

"""Kernel expressions: sums and products of atoms, nested as the grammar writes them. Immutable, canonical, hashable.

An expression is what the search of method §10.1 grows and fits: *each atom that is written has hyperparameters of its
own, once*. In ``PER[x]*(LIN[x] + SE[x])`` there is one period; in ``SE[x] + SE[x]`` there are two lengthscales. Its
`composition` says which products it multiplies out to, as a set, for comparison with methods that select from a pool.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Composition, Product
from kerneltrail.kernels.text import parse_as


class Expression(ABC):
    """An atom, a sum or a product of expressions; build them with `leaf`, `plus` and `times`."""

    parts: tuple[Expression, ...]
    """What is added or multiplied; nothing for an atom."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The nested text form; `kerneltrail.kernels.parse` reads it as the composition."""

    @property
    @abstractmethod
    def composition(self) -> Composition:
        """What it multiplies out to."""

    @cached_property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.leaves)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Its atoms, from left to right."""
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    @property
    def key(self) -> tuple[int, str]:
        """Smallest expressions first, then by text: the order of parts."""
        return (self.size, self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"


@dataclass(frozen=True, repr=False)
class Leaf(Expression):
    """One atom.

    `origin` is which atom of the expression before a step this is, from left to right; None if it is new. It takes no
    part in comparisons.
    """

    atom: Atom
    origin: int | None = field(default=None, compare=False)
    parts = ()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Itself."""
        return (self,)

    @property
    def text(self) -> str:
        """The atom's text."""
        return str(self.atom)

    @property
    def composition(self) -> Composition:
        """The atom alone."""
        return Composition((Product((self.atom,)),))


@dataclass(frozen=True, repr=False)
class Sum(Expression):
    """A sum of two or more expressions, none of them a sum; build it with `plus`."""

    parts: tuple[Expression, ...]

    @cached_property
    def text(self) -> str:
        """The parts' texts, joined."""
        return " + ".join(part.text for part in self.parts)

    @cached_property
    def composition(self) -> Composition:
        """The parts' products together."""
        return Composition.sum(*(part.composition for part in self.parts))


@dataclass(frozen=True, repr=False)
class Times(Expression):
    """A product of two or more expressions, none of them a product; build it with `times`."""

    parts: tuple[Expression, ...]

    @cached_property
    def text(self) -> str:
        """The parts' texts, sums in brackets."""
        return "*".join(f"({part})" if isinstance(part, Sum) else part.text for part in self.parts)

    @cached_property
    def composition(self) -> Composition:
        """Every product of one part with every product of the others."""
        return Composition.product(*(part.composition for part in self.parts))


def leaf(kind: str, covariate: str) -> Leaf:
    """The expression of one atom."""
    return Leaf(Atom(kind, covariate))


def read(text: str) -> Expression:
    """The expression of a text: what `Expression.text` wrote, or anything of that kind, in canonical form.

    Raises:
        KernelSyntaxError: with a caret under the character that could not be read.
    """
    expression = parse_as(text, Leaf, plus, times)
    if expression is None:
        raise KernelError("an expression needs at least one part")
    return expression


def numbered(expression: Expression) -> Expression:
    """The same expression with every atom's `origin` its own place: what a step makes of it can then be traced back."""
    return _numbered(expression, itertools.count())


def _numbered(expression: Expression, places: Iterator[int]) -> Expression:
    if isinstance(expression, Leaf):
        return replace(expression, origin=next(places))
    parts = tuple(_numbered(part, places) for part in expression.parts)
    return Sum(parts) if isinstance(expression, Sum) else Times(parts)


def plus(*parts: Expression) -> Expression:
    """The sum, in canonical form: flat and sorted. Equal parts stay: they may differ in their hyperparameters.

    >>> plus(leaf("SE", "x"), plus(leaf("LIN", "x"), leaf("SE", "x"))).text
    'LIN[x] + SE[x] + SE[x]'
    """
    flat = _flat(parts, Sum)
    return _single(flat) or Sum(tuple(flat))


def times(*parts: Expression) -> Expression:
    """The product, in canonical form: flat, sorted, and with what absorbs itself (SE×SE on one covariate) once.

    >>> times(leaf("SE", "x"), plus(leaf("LIN", "x"), leaf("PER", "x")), leaf("SE", "x")).text
    'SE[x]*(LIN[x] + PER[x])'
    """
    factors: list[Expression] = []
    for part in _flat(parts, Times):
        if isinstance(part, Leaf) and part.atom.spec.idempotent and part in factors:
            continue
        factors.append(part)
    return _single(factors) or Times(tuple(factors))


def _flat(parts: Iterable[Expression], operation: type[Sum] | type[Times]) -> list[Expression]:
    """The parts, with those of the same operation opened, in order."""
    flat = (inner for part in parts for inner in (part.parts if isinstance(part, operation) else (part,)))
    return sorted(flat, key=lambda part: part.key)


def _single(parts: list[Expression]) -> Expression | None:
    if not parts:
        raise KernelError("an expression needs at least one part")
    return parts[0] if len(parts) == 1 else None

"""Where each hyperparameter of an expression stands in a vector, and the vector as a value with names and units.

Every atom written has its own hyperparameters. Amplitudes are as few as can be told apart: one for each term of the
outermost sum, and in a sum inside a product one for each term but the first, relative to it. So
``PER[x]*(LIN[x] + SE[x])`` has six hyperparameters beside the noise, and a plain sum of products has those of its
composition, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Scaler
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Priors, Product
from kerneltrail.kernels.atoms import Hyperparameter
from kerneltrail.kernels.hyperparameters import AMPLITUDE, NOISE, NamedVector, Slot, VectorLayout
from kerneltrail.methods.cks.expression import Expression, Leaf, Sum
from kerneltrail.methods.protocol import Array


@dataclass(frozen=True)
class ExpressionLayout(VectorLayout):
    """The layout of an expression's hyperparameters; None is noise alone.

    Attributes:
        expression: the kernel.
        slots: what each entry of a vector is; the noise last.
        places: where each atom's own hyperparameters stand.
        amplitudes: which entries are amplitudes, (A,).
        relative: which of these are relative to a first term, (A,).
        carry: the log amplitude of each atom as a sum of amplitudes, (atoms, A).
        pull: amplitudes as sums and differences of atoms' log amplitudes, (A, atoms). ``pull @ carry`` is the identity;
            atoms' amplitudes within one product can be moved from one to another, so the reverse is not.
        positive: which entries are optimised as logarithms.
    """

    expression: Expression | None
    slots: tuple[Slot, ...]
    places: tuple[slice, ...]
    amplitudes: NDArray[np.int64]
    relative: NDArray[np.bool_]
    carry: Array
    pull: Array
    positive: NDArray[np.bool_]

    @property
    def kernel(self) -> str:
        """The expression's text, for messages."""
        return "noise alone" if self.expression is None else self.expression.text

    def moments(self, priors: Priors) -> tuple[Array, Array]:
        """Prior mean and variance of each entry; a relative amplitude has those of a ratio of two."""
        mean, variance = priors.moments_of(self.slots)
        among = self.amplitudes[self.relative]
        mean[among] = 0.0
        variance[among] *= 2.0
        return mean, variance


class _Builder:
    """Collects the entries while an expression is walked through from left to right."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.places: list[slice] = []
        self.carried: list[tuple[int, ...]] = []  # amplitudes of each atom
        self.amplitudes: list[tuple[int, bool, dict[int, float]]] = []  # entry, whether relative, atoms it is made of
        self.names: dict[str, int] = {}

    def slot(self, what: str, spec: Hyperparameter, leaf: int, covariate: str | None) -> int:
        """A new entry; names that occur again are numbered."""
        self.names[what] = self.names.get(what, 0) + 1
        base, dot, last = what.rpartition(".")
        count = self.names[what]
        name = what if count == 1 else f"{base}#{count}{dot}{last}"
        self.slots.append(Slot(name, spec, leaf, -1, covariate))
        return len(self.slots) - 1

    def walk(self, node: Expression, carried: tuple[int, ...]) -> dict[int, float]:
        """Write a node's entries; returns which atoms' log amplitudes add up to the node's."""
        if isinstance(node, Leaf):
            index = len(self.places)
            start = len(self.slots)
            for each in node.atom.spec.hyperparameters:
                self.slot(f"{node.atom}.{each.name}", each, index, node.atom.covariate)
            self.places.append(slice(start, len(self.slots)))
            self.carried.append(carried)
            return {index: 1.0}
        if isinstance(node, Sum):
            return self.terms(node, carried)
        total: dict[int, float] = {}
        for i, part in enumerate(node.parts):
            total |= self.walk(part, carried if i == 0 else ())
        return total

    def terms(self, node: Sum, carried: tuple[int, ...]) -> dict[int, float]:
        """A sum inside a product: every term but the first has an amplitude, relative to the first."""
        first, *others = node.parts
        base = self.walk(first, carried)
        for part in others:
            slot = self.amplitude(part, relative=True)
            pulled = self.walk(part, (*carried, slot))
            self.amplitudes.append((slot, True, {**pulled, **{leaf: -sign for leaf, sign in base.items()}}))
        return base

    def amplitude(self, node: Expression, *, relative: bool) -> int:
        text = node.text if not isinstance(node, Sum) else f"({node.text})"
        return self.slot(f"{text}.{'relative ' if relative else ''}amplitude", AMPLITUDE, -1, None)


@lru_cache(maxsize=16384)
def expression_layout(expression: Expression | None) -> ExpressionLayout:
    """The form of an expression (computed once)."""
    builder = _Builder()
    terms = () if expression is None else expression.parts if isinstance(expression, Sum) else (expression,)
    for term in terms:
        amplitude = builder.amplitude(term, relative=False)
        builder.amplitudes.append((amplitude, False, builder.walk(term, (amplitude,))))
    builder.slot("noise", NOISE, -1, None)
    builder.amplitudes.sort(key=lambda each: each[0])
    column = {amplitude: a for a, (amplitude, _, _) in enumerate(builder.amplitudes)}
    carry = np.zeros((len(builder.places), len(column)))
    for leaf, carried in enumerate(builder.carried):
        carry[leaf, [column[amplitude] for amplitude in carried]] = 1.0
    pull = np.zeros((len(column), len(builder.places)))
    for a, (_, _, parts) in enumerate(builder.amplitudes):
        for leaf, sign in parts.items():
            pull[a, leaf] = sign
    return ExpressionLayout(
        expression,
        tuple(builder.slots),
        tuple(builder.places),
        np.array([amplitude for amplitude, _, _ in builder.amplitudes], dtype=np.int64),
        np.array([relative for _, relative, _ in builder.amplitudes], dtype=bool),
        carry,
        pull,
        np.array([slot.spec.positive for slot in builder.slots]),
    )


@dataclass(frozen=True)
class ExpressionParameters(NamedVector):
    """An expression with its hyperparameters: a mapping from names to natural values; None is noise alone.

    `unconstrained` is the vector in the unconstrained space, in the layout's order.
    """

    expression: Expression | None
    unconstrained: tuple[float, ...]

    def __post_init__(self) -> None:
        self._check()

    @property
    def layout(self) -> ExpressionLayout:
        """The layout of the vector."""
        return expression_layout(self.expression)

    @property
    def composition(self) -> Composition:
        """The products to which the expression multiplies out."""
        return Composition() if self.expression is None else self.expression.composition

    @property
    def leaf_amplitudes(self) -> Array:
        """The log amplitude of each atom; what a product shares is with its first factor."""
        return self.layout.carry @ self.vector[self.layout.amplitudes]

    def in_data_units(self, scaler: Scaler) -> ExpressionParameters:
        """The same kernel on covariates and target in data units (compare `kerneltrail.data.in_data_units`)."""
        layout, values = self.layout, self.values_array
        amplitudes = self.leaf_amplitudes
        leaves = () if self.expression is None else self.expression.leaves
        for index, leaf in enumerate(leaves):
            slots, name = layout.places[index], leaf.atom.covariate
            for at in range(slots.start, slots.stop):
                unit = layout.slots[at].spec.unit
                if unit == "length":
                    values[at] = scaler.length(name, values[at])
                elif unit == "location":
                    values[at] = scaler.location(name, values[at])
            if leaf.atom.spec.linear:  # quadratic in its covariate, so the range² moves into the amplitude
                amplitudes[index] -= 2.0 * np.log(scaler.length(name, 1.0))
        target = 2.0 * np.log(scaler.scale)
        values[layout.amplitudes] = np.exp(layout.pull @ amplitudes + np.where(layout.relative, 0.0, target))
        values[-1] *= scaler.scale**2
        return ExpressionParameters(self.expression, tuple(layout.unconstrain(values)))


def multiplied_out(kernel: ExpressionParameters) -> tuple[Hyperparameters, ...]:
    """The products of which an expression is the sum, each as a kernel of its own with the expression's noise.

    The same product may come twice, with other hyperparameters: a list says what a set (`Composition`) cannot.
    Factors that absorb each other (SE×SE on one covariate) become one.
    """
    if kernel.expression is None:
        return ()
    places = iter(range(len(kernel.layout.places)))
    terms = _terms(kernel.expression, places)
    amplitudes, noise = kernel.leaf_amplitudes, kernel.unconstrained[-1]
    leaves = kernel.expression.leaves
    products = []
    for term in terms:
        merged: list[tuple[Atom, list[float]]] = []
        for index in sorted(term, key=lambda index: leaves[index].atom):
            atom, parameters = leaves[index].atom, list(kernel.unconstrained[kernel.layout.places[index]])
            if atom.spec.idempotent and merged and merged[-1][0] == atom:
                merged[-1] = (atom, atom.spec.merged(merged[-1][1], parameters))
            else:
                merged.append((atom, parameters))
        atoms = tuple(atom for atom, _ in merged)
        vector = [float(amplitudes[term].sum()), *(value for _, parameters in merged for value in parameters), noise]
        products.append(Hyperparameters(Composition((Product(atoms),)), tuple(vector)))
    return tuple(products)


def _terms(node: Expression, places: Iterator[int]) -> list[list[int]]:
    """Which atoms each product has."""
    if isinstance(node, Leaf):
        return [[next(places)]]
    parts = [_terms(part, places) for part in node.parts]
    if isinstance(node, Sum):
        return [*chain(*parts)]
    return [[*chain(*term)] for term in product(*parts)]

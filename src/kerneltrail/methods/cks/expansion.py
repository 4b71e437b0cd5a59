"""An expression multiplied out: every product by itself, with the hyperparameters it has in the expression."""

from __future__ import annotations

from collections.abc import Iterator

from kerneltrail.kernels import Atom, Composition, Hyperparameters, Product
from kerneltrail.methods.cks.expression import Expression, Leaf, Sum
from kerneltrail.methods.cks.form import Tied


def multiplied_out(kernel: Tied) -> tuple[Hyperparameters, ...]:
    """The products of which an expression is the sum, each as a kernel of its own with the expression's noise.

    The same product may come twice, with other hyperparameters: a list says what a set (`Composition`) cannot. Factors
    that absorb each other (SE×SE on one covariate) become one.
    """
    if kernel.expression is None:
        return ()
    places = iter(range(len(kernel.form.places)))
    terms = _terms(kernel.expression, places)
    amplitudes, noise = kernel.leaf_amplitudes, kernel.unconstrained[-1]
    leaves = kernel.expression.leaves
    found = []
    for term in terms:
        merged: list[tuple[Atom, list[float]]] = []
        for index in sorted(term, key=lambda index: leaves[index].atom):
            atom, own = leaves[index].atom, list(kernel.unconstrained[kernel.form.places[index]])
            if atom.spec.idempotent and merged and merged[-1][0] == atom:
                merged[-1] = (atom, atom.spec.merged(merged[-1][1], own))
            else:
                merged.append((atom, own))
        product = Product(tuple(atom for atom, _ in merged))
        vector = [float(amplitudes[term].sum()), *(value for _, own in merged for value in own), noise]
        found.append(Hyperparameters(Composition((product,)), tuple(vector)))
    return tuple(found)


def _terms(node: Expression, places: Iterator[int]) -> list[list[int]]:
    """Which atoms each product has."""
    if isinstance(node, Leaf):
        return [[next(places)]]
    parts = [_terms(part, places) for part in node.parts]
    if isinstance(node, Sum):
        return [term for part in parts for term in part]
    total = parts[0]
    for part in parts[1:]:
        total = [left + right for left in total for right in part]
    return total

"""Where a child's search starts: at its parent's fitted values, with what is new in several places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.methods.cks.expression import Expression, Leaf, Sum
from kerneltrail.methods.cks.layout import ExpressionLayout, ExpressionParameters, expression_layout
from kerneltrail.methods.protocol import Array

Bools = NDArray[np.bool_]

FAR = 2.0
"""Prior standard deviations by which a new part starts out of the way of the old ones."""


@dataclass(frozen=True)
class Inheritance:
    """A child's hyperparameters as far as its parent knows them, atom by atom.

    Attributes:
        vector: unconstrained; the prior's mean where the parent knows nothing, (k,). Amplitudes are in `amplitudes`.
        new: which entries of it, amplitudes aside, are to be searched for, (k,).
        amplitudes: log amplitude of each atom, (atoms,); 0 for a new factor.
        terms: which atoms are new terms of a sum, whose amplitude is to be searched for, (atoms,).
        factors: which atoms are new factors, (atoms,).
    """

    vector: Array
    new: Bools
    amplitudes: Array
    terms: Bools
    factors: Bools


def inherit(parent: ExpressionParameters, child: Expression, moments: tuple[Array, Array]) -> Inheritance:
    """Trace a child's atoms back to its parent's (`Leaf.origin`) and take over what these had.

    An atom exchanged for another keeps the amplitude. A new term starts as large as the terms beside it, or as the
    prior has it in the outermost sum.
    """
    layout, vector = expression_layout(child), np.array(moments[0], dtype=np.float64)
    vector[-1] = parent.unconstrained[-1]  # the noise
    new = np.zeros(layout.size, dtype=bool)
    known, before = parent.leaf_amplitudes, () if parent.expression is None else parent.expression.leaves
    leaves = child.leaves
    amplitudes = np.zeros(len(leaves))
    for index, leaf in enumerate(leaves):
        slots = layout.places[index]
        new[slots] = leaf.origin is None or before[leaf.origin] != leaf
        if leaf.origin is not None:
            amplitudes[index] = known[leaf.origin]
            if not new[slots].any():
                vector[slots] = parent.unconstrained[parent.layout.places[leaf.origin]]
    terms = np.zeros(len(leaves), dtype=bool)
    usual = float(moments[0][layout.amplitudes[~layout.relative]].mean())
    _size_terms(child, iter(range(len(leaves))), amplitudes, terms, usual, outermost=True)
    fresh = np.array([leaf.origin is None for leaf in leaves])
    return Inheritance(vector, new, amplitudes, terms, fresh & ~terms)


def _size_terms(
    node: Expression, places: Iterator[int], amplitudes: Array, terms: Bools, usual: float, *, outermost: bool
) -> float:
    """Give new terms of sums their amplitude; the log amplitude of the node itself."""
    if isinstance(node, Leaf):
        return float(amplitudes[next(places)])
    if not isinstance(node, Sum):
        return sum(_size_terms(part, places, amplitudes, terms, usual, outermost=False) for part in node.parts)
    sizes, added = [], []
    for part in node.parts:
        if isinstance(part, Leaf) and part.origin is None:
            added.append(next(places))
        else:
            sizes.append(_size_terms(part, places, amplitudes, terms, usual, outermost=False))
    amplitudes[added] = usual if outermost or not sizes else float(np.mean(sizes))
    terms[added] = True
    return sizes[0] if sizes else usual


@dataclass(frozen=True)
class StartingPoints:
    """Points from which a candidate's search may start, each (m, k).

    Heirs have old values kept and new ones varied, and are none without a parent; in fresh ones nothing is kept.
    """

    heir: Array
    fresh: Array


def starts_for(
    child: Expression,
    moments: tuple[Array, Array],
    parent: ExpressionParameters | None,
    columns: Mapping[str, tuple[float, float]],
    periods: Mapping[str, Sequence[float]],
    rng: np.random.Generator,
    draws: int,
) -> StartingPoints:
    """Where to start: at the parent's values, and anew; `draws` random ones of each.

    Of the heirs, the first has new values at the prior's mean, the second out of the way (a new summand small, a new
    factor almost constant, so that the child starts as good as its parent), the others are draws from the prior. Fresh
    ones are needed because what a part of the parent stood in for may now have a part of its own, and the old one is
    free for something else. Periods that are not inherited are the likely ones, in turn, where there are any.

    The parent is the fitted expression that the child was made from; or the child itself, `numbered`, fitted before.
    """
    layout = expression_layout(child)
    mean, scale = moments[0], np.sqrt(moments[1])
    # Half a standard deviation: with all of them at their own whim the lot would seldom be a good start.
    fresh = mean + 0.5 * scale * rng.standard_normal((draws + 1, layout.size))
    fresh[0] = mean
    _put_periods(fresh, layout, np.ones(layout.size, dtype=bool), periods)
    if parent is None:
        return StartingPoints(np.empty((0, layout.size)), fresh)
    given = inherit(parent, child, moments)
    heir = np.tile(given.vector, (draws + 2, 1))
    amplitudes = np.tile(given.amplitudes, (draws + 2, 1))
    heir[2:] = np.where(given.new, mean + scale * rng.standard_normal((draws, layout.size)), heir[2:])
    spread = scale[layout.amplitudes].max(initial=0.0)
    amplitudes[2:] += given.terms * spread * rng.standard_normal((draws, len(given.terms)))
    amplitudes[1] -= given.terms * FAR * spread
    _put_periods(heir, layout, given.new, periods)
    leaves = child.leaves
    for index in np.flatnonzero(given.factors):
        slots = layout.places[index]
        for at in range(slots.start, slots.stop):
            kind = layout.slots[at].spec.kind
            if kind in ("lengthscale", "location"):  # a line far from its zero is nearly constant
                heir[1, at] = mean[at] + (FAR if kind == "lengthscale" else -FAR) * scale[at]
        if leaves[index].atom.spec.linear:  # of size 1 over the rows, so that the product stays as large as it was
            centre, sd = columns[leaves[index].atom.covariate]
            size = (centre - heir[:, slots.start]) ** 2 + sd**2
            amplitudes[:, index] = -np.log(np.maximum(size, 1e-6))
    heir[:, layout.amplitudes] = amplitudes @ layout.pull.T
    varied = given.new.any() or given.terms.any()
    return StartingPoints(heir if varied else heir[:1], fresh)


def _put_periods(points: Array, layout: ExpressionLayout, new: Bools, periods: Mapping[str, Sequence[float]]) -> None:
    """Write likely periods, in turn, where periods are new."""
    for i, slot in enumerate(layout.slots):
        likely = periods.get(slot.covariate or "", ())
        if slot.spec.kind == "period" and new[i] and likely:
            points[:, i] = np.log([likely[r % len(likely)] for r in range(len(points))])

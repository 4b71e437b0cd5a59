"""Where a child's search starts: at its parent's fitted values, with what is new in several places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels import Composition, Hyperparameters, Product, layout_of

Array = NDArray[np.float64]

FAR = 2.0
"""Prior standard deviations by which a new part starts out of the way of the old ones."""


@dataclass(frozen=True)
class Inheritance:
    """A child's hyperparameters as far as its parent knows them.

    Attributes:
        vector: unconstrained; the prior's mean where the parent knows nothing, (k,).
        new: whether each is to be searched for, (k,). What a product only borrows from one that is still there
            has a value and is new all the same.
        joined: for each product, whether it is one of the parent's with factors added or exchanged.
    """

    vector: Array
    new: NDArray[np.bool_]
    joined: tuple[bool, ...]


def inherit(parent: Hyperparameters, child: Composition, mean: Array) -> Inheritance:
    """Map a parent's hyperparameters to a child's, product by product.

    A product that the parent has keeps its values. Any other takes those of the parent's product with which it shares
    most factors, amplitude included; factors without a counterpart get the prior's mean.
    """
    layout, known = layout_of(child), parent.layout
    vector, new = np.array(mean, dtype=np.float64), np.ones(layout.size, dtype=bool)
    vector[-1], new[-1] = parent.unconstrained[-1], False  # the noise
    joined = []
    for p, product in enumerate(child):
        q = _closest(product, parent.composition)
        if q is None:
            joined.append(False)
            continue
        source = parent.composition.products[q]
        kept = source == product
        # Borrowed: the parent's product is there as well, so the values have an owner already.
        borrowed = not kept and source in child
        joined.append(not kept and not borrowed)
        vector[layout.amplitude_index[p]] = parent.unconstrained[known.amplitude_index[q]]
        new[layout.amplitude_index[p]] = borrowed
        free = list(range(source.order))
        for place, atom in zip(layout.atom_index[p], product.atoms, strict=True):
            match = next((i for i in free if source.atoms[i] == atom), None)
            if match is None:
                continue
            free.remove(match)
            vector[place] = parent.unconstrained[known.atom_index[q][match]]
            new[place] = borrowed
    return Inheritance(vector, new, tuple(joined))


def _closest(product: Product, parent: Composition) -> int | None:
    """Index of the parent's product that shares most factors; of several, the one with the fewest others."""
    own = Counter(product.atoms)
    best, found = (0, 0), None
    for q, other in enumerate(parent):
        shared = sum((own & Counter(other.atoms)).values())
        if shared and (shared, -other.order) > best:
            best, found = (shared, -other.order), q
    return found


@dataclass(frozen=True)
class Starts:
    """Points from which a candidate's search may start.

    Attributes:
        heir: old values kept and new ones varied, (m, k); none without a parent.
        fresh: nothing kept, (m, k).
    """

    heir: Array
    fresh: Array


def starts_for(
    child: Composition,
    moments: tuple[Array, Array],
    parent: Hyperparameters | None,
    centre: Mapping[str, float],
    periods: Mapping[str, Sequence[float]],
    rng: np.random.Generator,
    draws: int,
) -> Starts:
    """Where to start: at the parent's values, and anew.

    Of the heirs, the first has new values at the prior's mean, the second out of the way (a new summand small, a new
    factor almost constant, so that the child starts as good as its parent), the others are draws from the prior. Fresh
    ones are needed because what a part of the parent stood in for may now have a part of its own, and the old one is
    free for something else. Periods that are not inherited are the likely ones, in turn, where there are any.

    Args:
        child: the candidate.
        moments: mean and variance of its prior.
        parent: fitted hyperparameters of the expression it was made from.
        centre: mean of each covariate.
        periods: likely periods on each covariate.
        rng: source of draws.
        draws: how many to draw of each.
    """
    mean, scale = moments[0], np.sqrt(moments[1])
    # Half a standard deviation: with all of them at their own whim the lot would seldom be a good start.
    fresh = mean + 0.5 * scale * rng.standard_normal((draws + 1, len(mean)))
    fresh[0] = mean
    _put_periods(fresh, child, np.ones(len(mean), dtype=bool), periods)
    if parent is None:
        return Starts(np.empty((0, len(mean))), fresh)
    given = inherit(parent, child, mean)
    heir = np.tile(given.vector, (draws + 2, 1))
    heir[2:] = np.where(given.new, mean + scale * rng.standard_normal((draws, len(mean))), heir[2:])
    _put_periods(heir, child, given.new, periods)
    _stand_aside(heir[1], child, given, mean, scale, centre)
    return Starts(heir if given.new.any() else heir[:1], fresh)


def _put_periods(
    points: Array, child: Composition, new: NDArray[np.bool_], periods: Mapping[str, Sequence[float]]
) -> None:
    """Write likely periods, in turn, where periods are new."""
    for i, slot in enumerate(layout_of(child).slots):
        likely = periods.get(slot.covariate or "", ())
        if slot.spec.kind == "period" and new[i] and likely:
            points[:, i] = np.log([likely[r % len(likely)] for r in range(len(points))])


def _stand_aside(
    point: Array, child: Composition, given: Inheritance, mean: Array, scale: Array, centre: Mapping[str, float]
) -> None:
    """Write new values that leave the parent's parts as they are."""
    layout = layout_of(child)
    for i, slot in enumerate(layout.slots):
        if not given.new[i] or slot.product < 0:
            continue
        factor = given.joined[slot.product]
        if slot.atom < 0 and not factor:
            point[i] = mean[i] - FAR * scale[i]
        elif slot.spec.kind == "lengthscale" and factor:
            point[i] = mean[i] + FAR * scale[i]
        elif slot.spec.kind == "location" and factor:
            point[i] = mean[i] - FAR * scale[i]
            # A line far from its zero is nearly constant; its size there goes into the amplitude.
            size = max(abs(centre[slot.covariate or ""] - point[i]), 1e-3)
            point[layout.amplitude_index[slot.product]] -= 2.0 * np.log(size)

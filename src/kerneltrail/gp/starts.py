"""Where searches for MAP hyperparameters start: the best of many points spread over the prior, whitened.

Once there is an optimum, further ones are looked for at points that keep some of its hyperparameters.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.gp.quasi_newton import FARTHEST
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.hyperparameters import layout_of

Array = NDArray[np.float64]

APART = 0.25
"""Starts closer than this, in prior standard deviations, lead to the same optimum: the better one is enough."""

GRIDS = {
    "period": np.linspace(-2.0, 2.5, 13),
    "lengthscale": np.linspace(-2.4, 1.6, 6),
    "location": np.linspace(-3.5, 3.5, 11),
}
"""Values of an atom's hyperparameter at which other optima are looked for; of a PER's two the period's."""

LITTLE, SHORT = -2.0, -1.2
"""Another noise, and another lengthscale beside a period, where an optimum's is larger than about half of that."""

MUCH = 0.3
"""Another noise or lengthscale where it is not."""


def spread_points(composition: Composition, rng: np.random.Generator, size: int) -> Array:
    """Points spread over the prior, (size, k): a Latin hypercube, with the rest at its median in the first half."""
    slots = layout_of(composition).slots
    k = len(slots)
    periods = [i for i, slot in enumerate(slots) if slot.spec.kind == "period"]
    # A Latin hypercube: each hyperparameter's candidates are evenly spread over its prior, in shuffled order.
    levels = (np.argsort(rng.random((k, size)), axis=1).T + rng.random((size, k))) / size
    points = np.clip(scipy.special.ndtri(levels), -0.5 * FARTHEST, 0.5 * FARTHEST)
    # Half of them vary the periods only: the rest at its prior median is the safest guess.
    others = [i for i in range(k) if i not in periods]
    points[: size // 2 if periods else 1, others] = 0.0
    if periods:
        spread = (np.argsort(rng.random((len(periods), size)), axis=1).T + 0.5) / size
        points[:, periods] = np.clip(scipy.special.ndtri(spread), -2.5, 2.5)
    return points


def other_periods(w: Array, composition: Composition, rng: np.random.Generator, size: int) -> Array:
    """Points that differ from w in one period, `size` for each period; half of them also in the lengthscale beside it.

    The rest of w fits already, so modes in the period show as they are. With the rest from the prior they may not.
    """
    slots = layout_of(composition).slots
    parts = [np.empty((0, len(w)))]
    for i, slot in enumerate(slots):
        if slot.spec.kind != "period" or not size:
            continue
        levels = (np.arange(size // 2) + rng.random()) / (size // 2)
        same = [j for j, s in enumerate(slots) if (s.product, s.atom) == (slot.product, slot.atom) and j != i]
        for shift in (False, True):
            part = np.repeat(w[None], size // 2, axis=0)
            part[:, i] = np.clip(scipy.special.ndtri(levels), -2.5, 2.5)
            if shift:
                part[:, same] = np.where(w[same] > -0.4, -1.0, 0.4)
            parts.append(part)
    return np.concatenate(parts)


def other_explanations(w: Array, composition: Composition) -> Array:
    """Points that differ from w in the hyperparameters of one atom, each with w's noise and with another, on a grid.

    What is noise at one optimum is signal at another, with a shorter lengthscale, another period, or another zero of a
    product with LIN, while its amplitudes are much the same. LIN on its own has no other optimum and is left out.
    """
    slots = layout_of(composition).slots
    (noise,) = (i for i, slot in enumerate(slots) if slot.spec.kind == "noise")
    parts = [np.empty((0, len(w)))]
    for (product, atom), group in groupby(range(len(slots)), key=lambda i: (slots[i].product, slots[i].atom)):
        columns = {slots[i].spec.kind: i for i in group}
        kind = next((kind for kind in GRIDS if kind in columns), None)
        if atom < 0 or kind is None or (kind == "location" and composition.products[product].order == 1):
            continue
        levels = {columns[kind]: GRIDS[kind].tolist(), noise: [w[noise], _other(w[noise], LITTLE)]}
        if kind == "period" and (beside := columns.get("lengthscale")) is not None:
            levels[beside] = [w[beside], _other(w[beside], SHORT)]
        mesh = np.stack([values.ravel() for values in np.meshgrid(*levels.values())], axis=1)
        part = np.repeat(w[None], len(mesh), axis=0)
        part[:, list(levels)] = mesh
        parts.append(part)
    return np.concatenate(parts)


def _other(value: float, low: float) -> float:
    """A value on the other side: low, or `MUCH` where it is low already."""
    return low if value > 0.5 * low else MUCH


def best_apart(points: Array, values: Array, wanted: int) -> list[int]:
    """Which points of least value are not too close to each other; where these are too few, others as well."""
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    picked: list[int] = []
    left = order
    while len(left) and len(picked) < wanted:
        picked.append(int(left[0]))
        left = left[1:]
        left = left[np.abs(points[left] - points[picked[-1]]).max(axis=1, initial=0.0) > APART]
    if len(picked) < wanted:
        picked += [i for i in order.tolist() if i not in picked][: wanted - len(picked)]
    return picked or list(range(min(wanted, len(points))))


class KnownPoints:
    """Points whose values at all batches are known, with what is known of the inverse Hessian there.

    Attributes:
        points: (P, k).
        values: minus log posteriors, (P, T).
        inverse: for each point (k, k); the identity where nothing is known.
    """

    def __init__(self, points: Array, values: Array) -> None:
        self.points, self.values, self.inverse = points, values, [np.eye(points.shape[1])] * len(points)

    def add(self, points: Array, values: Array, inverse: Array) -> None:
        """Further points that share an inverse Hessian."""
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, values])
        self.inverse += [inverse] * len(points)

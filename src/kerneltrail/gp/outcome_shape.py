"""How outcomes are spread around what is predicted of them, where that is no bell: many zeros, gaps, ends of a scale.

A prediction is a Normal or a Student-t. Its density is multiplied by a weight for each stretch of the outcomes' range,
learnt from pilot users (method (76)). So a prediction still says where an outcome is likely to be, and the weights say
which outcomes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.gp.bell import LEAST, Array, Bell

Places = NDArray[np.int64]
"""Of stretches, counted from the one without a lower end."""

GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
"""Multiples of it, less their whole parts, are spread evenly between 0 and 1, however many there are."""

FARTHEST = 1e-30
"""Least probability of a tail whose end is told."""

STARTS = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 33))
"""Of what is left out of an interval, shares that are tried below it: most of them near all and near nothing."""


@dataclass(frozen=True)
class OutcomeShape:
    """Which outcomes there are: a weight for each stretch of their range (method (76)).

    Attributes:
        edges: between stretches, ascending, in the target's units; the first and the last stretch have no end.
        log_weights: of the stretches' densities; one more than edges.
        width: factor by which the bell is wider than without a shape.
        floor: the lowest outcome, if that many rows have it exactly; None otherwise.
        ceiling: the highest, likewise.
    """

    edges: tuple[float, ...]
    log_weights: tuple[float, ...]
    width: float = 1.0
    floor: float | None = None
    ceiling: float | None = None

    def log_density(self, bell: Bell, y: Array) -> Array:
        """Log density of outcomes, (m,); one that many rows share is spread over its stretch."""
        bell, edges, weights = bell.wider(self.width), np.array(self.edges), np.array(self.log_weights)
        total = scipy.special.logsumexp(np.log(bell.stretches(edges)) + weights, axis=1)
        return bell.log_density(y) + weights[np.searchsorted(edges, y)] - total

    def quantile(self, bell: Bell, below: Array) -> Array:
        """Outcomes below which there are such probabilities: (m, k) for `below` of that shape."""
        spread = _Spread.of(self, bell)
        place = (spread.up_to[:, None, 1:-1] < below[:, :, None]).sum(axis=2)
        start, size = (np.take_along_axis(each, place, axis=1) for each in (spread.up_to, spread.weighted))
        share = np.clip((below - start) / np.maximum(size, LEAST), 0.0, 1.0)
        return self._within(spread.inside(place, share))

    def below(self, bell: Bell, y: Array) -> Array:
        """Probability of less than an outcome, (m,).

        Rows at an end that many have are spread evenly over its stretch's: as if the end were no single outcome.
        """
        spread = _Spread.of(self, bell)
        place: Places = np.searchsorted(np.array(self.edges), y)[:, None].astype(np.int64)
        part = spread.share(place, y[:, None])
        for end in (self.floor, self.ceiling):
            part[y == end, 0] = (0.5 + GOLDEN * np.arange(np.sum(y == end))) % 1.0
        start, size = (np.take_along_axis(each, place, axis=1) for each in (spread.up_to, spread.weighted))
        return (start + size * part)[:, 0]

    def interval(self, bell: Bell, level: float) -> tuple[Array, Array]:
        """The shortest interval that holds an outcome with probability `level`: (lower, upper), each (m,).

        It does not begin or end within the stretch of an end that many rows have, but with that end.
        """
        starts = np.tile((1.0 - level) * STARTS, (len(bell.mean), 1))
        lower, upper = self.quantile(bell, starts), self.quantile(bell, np.minimum(starts + level, 1.0))
        if self.floor is not None:
            lower = np.where(lower <= self.edges[1], self.floor, lower)
        if self.ceiling is not None:
            upper = np.where(upper >= self.edges[-2], self.ceiling, upper)
        best = np.argmin(upper - lower, axis=1)[:, None]
        low, high = (np.take_along_axis(each, best, axis=1)[:, 0] for each in (lower, upper))
        return low, high

    def draws(self, bell: Bell, size: int, rng: np.random.Generator) -> Array:
        """Draws of outcomes, (size, m)."""
        return self.quantile(bell, rng.uniform(size=(len(bell.mean), size))).T

    def _within(self, y: Array) -> Array:
        """Outcomes, none beyond an end that many rows have."""
        return np.clip(
            y, -np.inf if self.floor is None else self.floor, np.inf if self.ceiling is None else self.ceiling
        )


class _Spread(NamedTuple):
    """A bell with a shape, stretch by stretch: the bell, its edges, and each stretch's probability before and after."""

    bell: Bell
    edges: Array
    plain: Array
    weighted: Array
    up_to: Array

    @classmethod
    def of(cls, shape: OutcomeShape, bell: Bell) -> _Spread:
        bell, edges = bell.wider(shape.width), np.array(shape.edges)
        plain = bell.stretches(edges)
        log = np.log(plain) + np.array(shape.log_weights)
        weighted = np.exp(log - scipy.special.logsumexp(log, axis=1, keepdims=True))
        up_to = np.concatenate([np.zeros((len(plain), 1)), np.cumsum(weighted, axis=1)], axis=1)
        return cls(bell, edges, plain, weighted, up_to)

    def inside(self, place: Places, share: Array) -> Array:
        """Where, in a stretch, a share of its probability lies below; both (m, k)."""
        mean, scale, nu = (part[:, None] for part in self.bell)
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        low, high = (ends[place] - mean) / scale, (ends[place + 1] - mean) / scale
        size = np.take_along_axis(self.plain, place, axis=1)
        above = low > 0.0  # by the tail on its own side
        tail = np.where(above, scipy.special.stdtr(nu, -high), scipy.special.stdtr(nu, low))
        tail = tail + np.where(above, 1.0 - share, share) * size
        # scipy's inverse of a probability of nothing is +∞, and of next to nothing as well.
        z = np.where(tail > 0.0, scipy.special.stdtrit(nu, np.maximum(tail, FARTHEST)), -np.inf)
        return np.clip(mean + scale * np.where(above, -z, z), ends[place], ends[place + 1])

    def share(self, place: Places, y: Array) -> Array:
        """Share of a stretch's probability below outcomes in it, (m, k)."""
        mean, scale, nu = (part[:, None] for part in self.bell)
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        low, z = (ends[place] - mean) / scale, (y - mean) / scale
        size = np.take_along_axis(self.plain, place, axis=1)
        above = low > 0.0
        gone = np.where(
            above,
            scipy.special.stdtr(nu, -low) - scipy.special.stdtr(nu, -z),
            scipy.special.stdtr(nu, z) - scipy.special.stdtr(nu, low),
        )
        return np.clip(gone / size, 0.0, 1.0)

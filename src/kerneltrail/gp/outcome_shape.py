"""How outcomes lie around what is predicted of them, where that is no bell: many zeros, gaps, ratings, ends of a scale.

A prediction is a Normal or a Student-t. The probability of each stretch of the outcomes' range is multiplied by a
weight, learnt from pilot users (method (76)). So a prediction still says where an outcome is likely to be, and the
weights say where outcomes are at all. In some stretches there is one outcome only: zero, or one value of a rating.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.gp.bell import LEAST, Array, Bell

Places = NDArray[np.int64]
"""Of stretches, counted from the lowest."""

FARTHEST = 1e-30
"""Least probability of a tail whose end is told."""

STARTS = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 33))
"""Of what is left out of an interval, shares that are tried below it: most of them near all and near nothing."""

ANCHOR = 0.9
"""Level whose interval is the shortest of all; those of lower levels are the shortest inside it, of higher ones around
it."""

TIE = 1e-6
"""Scales of the bell that an interval may be longer for a probability of 1 more: of intervals of one length between
single outcomes, the most probable is taken."""


@dataclass(frozen=True)
class OutcomeShape:
    """Where outcomes are: a weight for each stretch of their range (method (76)).

    Attributes:
        edges: between stretches, ascending, in the target's units; the first and the last stretch have no end.
        log_weights: of the stretches; one more than edges.
        points: the only outcome of each stretch, or None where there are many.
        width: factor by which the bell is wider than without a shape.
        length: over which the probability of a single outcome is spread, at least, where a density is asked for.
    """

    edges: tuple[float, ...]
    log_weights: tuple[float, ...]
    points: tuple[float | None, ...]
    width: float = 1.0
    length: float = 1.0

    @property
    def floor(self) -> float | None:
        """The outcome below which there is none; None if there is no such."""
        return self.points[0]

    @property
    def ceiling(self) -> float | None:
        """The outcome above which there is none; None if there is no such."""
        return self.points[-1]

    def within(self, y: Array) -> Array:
        """Numbers in the outcomes' range: the nearest end for those beyond it."""
        low = -np.inf if self.floor is None else self.floor
        return np.clip(y, low, np.inf if self.ceiling is None else self.ceiling)

    def log_density(self, bell: Bell, y: Array) -> Array:
        """Log density of outcomes, (m,); a single outcome's probability is spread over its stretch."""
        spread, place = _Spread.of(self, bell), self._places(y)
        row = np.arange(len(y))
        mass = np.log(np.maximum(spread.weighted[row, place], LEAST))
        inside = spread.bell.log_density(y) + mass - np.log(spread.plain[row, place])
        point, extent = self._point[place], self._extent[place]
        single = mass - np.log(extent)
        # What lies further from a single outcome than it is spread has the bell's tail, and no more than it.
        single = np.where(np.abs(y - point) <= 0.5 * extent, single, np.minimum(inside, single))
        return np.where(np.isnan(point), inside, single)

    def quantile(self, bell: Bell, below: Array) -> Array:
        """Outcomes below which there are such probabilities: (m, k) for `below` of that shape."""
        return self._quantile(_Spread.of(self, bell), below)

    def below(self, bell: Bell, y: Array) -> tuple[Array, Array]:
        """Probability of less than an outcome, and of that outcome or less, each (m,); they differ for single ones."""
        spread, place = _Spread.of(self, bell), self._places(y)[:, None]
        start, size = (np.take_along_axis(each, place, axis=1)[:, 0] for each in (spread.up_to, spread.weighted))
        part = spread.share(place, y[:, None])[:, 0]
        alone = ~np.isnan(self._point[place[:, 0]])
        return start + size * np.where(alone, 0.0, part), start + size * np.where(alone, 1.0, part)

    def interval(self, bell: Bell, level: float) -> tuple[Array, Array]:
        """An interval that holds an outcome with at least that probability: (lower, upper), each (m,).

        That of level 0.9 is the shortest of all, so what it leaves out may all be on one side. That of a lower level is
        the shortest inside it.
        """
        spread = _Spread.of(self, bell)
        rows, room = len(bell.mean), 1.0 - ANCHOR
        start, *ends = self._shortest(spread, np.zeros(rows), np.full(rows, room), ANCHOR)
        if level < ANCHOR:
            _, *ends = self._shortest(spread, start, start + ANCHOR - level, level)
        elif level > ANCHOR:
            least = np.maximum(start - (level - ANCHOR), 0.0)
            _, *ends = self._shortest(spread, least, np.minimum(start, 1.0 - level), level)
        return ends[0], ends[1]

    def held(self, bell: Bell, level: float) -> Array:
        """Probability of the interval of a level, (m,): more than the level where it ends with single outcomes."""
        low, high = self.interval(bell, level)
        return self.below(bell, high)[1] - self.below(bell, low)[0]

    def draws(self, bell: Bell, size: int, rng: np.random.Generator) -> Array:
        """Draws of outcomes, (size, m)."""
        return self.quantile(bell, rng.uniform(size=(len(bell.mean), size))).T

    def chance_of(self, bell: Bell, place: int) -> Array:
        """Probability of a stretch, (m,): of the lowest outcome for 0 where there is a floor."""
        return _Spread.of(self, bell).weighted[:, place]

    def _shortest(self, spread: _Spread, least: Array, most: Array, level: float) -> tuple[Array, Array, Array]:
        """Of intervals with probabilities between two below them, the shortest: that probability, lower, upper."""
        starts = least[:, None] + (most - least)[:, None] * STARTS
        ends = np.minimum(starts + level, 1.0)
        lower, upper = self._quantile(spread, starts), self._quantile(spread, ends)
        held = spread.between(lower, upper)
        with np.errstate(invalid="ignore"):
            long = upper - lower - TIE * spread.bell.scale[:, None] * held
        best = np.argmin(np.where(np.isnan(long), np.inf, long), axis=1)[:, None]
        start, low, high = (np.take_along_axis(each, best, axis=1)[:, 0] for each in (starts, lower, upper))
        return start, low, high

    def _quantile(self, spread: _Spread, below: Array) -> Array:
        # A probability that a stretch just reaches is its own, whatever rounding made of it.
        place = (spread.up_to[:, None, 1:-1] < below[:, :, None] - 1e-12).sum(axis=2)
        start, size = (np.take_along_axis(each, place, axis=1) for each in (spread.up_to, spread.weighted))
        share = np.clip((below - start) / np.maximum(size, LEAST), 0.0, 1.0)
        point = self._point[place]
        return np.where(np.isnan(point), spread.inside(place, share), point)

    def _places(self, y: Array) -> Places:
        return np.searchsorted(np.array(self.edges), y).astype(np.int64)

    @cached_property
    def _point(self) -> Array:
        """Single outcomes, NaN where there are many."""
        return np.array([np.nan if point is None else point for point in self.points])

    @cached_property
    def _extent(self) -> Array:
        """Length over which each stretch's single outcome is spread; 1 where there are many."""
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        extent = 2.0 * np.minimum(ends[1:] - self._point, self._point - ends[:-1])
        return np.where(np.isnan(extent), 1.0, np.maximum(extent, self.length))


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

    def between(self, lower: Array, upper: Array) -> Array:
        """Probability of all stretches that intervals touch, (m, k)."""
        first, last = (np.searchsorted(self.edges, ends) for ends in (lower, upper))
        return np.take_along_axis(self.up_to, last + 1, axis=1) - np.take_along_axis(self.up_to, first, axis=1)

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

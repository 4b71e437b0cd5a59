"""Two places of an effect that were compared because they differ most: how much of that is the picking (method (77)).

Some two places always differ. So a difference is judged beside those of functions without an effect that are known as
well, of which the two places are picked in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.gp.numerics import root
from kerneltrail.kernels import Array

DRAWS = 1000
"""Functions drawn to see how far some two places lie apart by chance."""

LEVEL = 0.9
"""Of the interval that leaves out nothing by chance more often than it says."""


class Picking(NamedTuple):
    """What picking two places does to their difference.

    Attributes:
        chance: how probable it is that some two places differ as much, in standard errors, where nothing does.
        stretch: by which an interval of the difference is wider than that of two places that were given; at least 1.
    """

    chance: float
    stretch: float


GIVEN = Picking(0.0, 1.0)
"""Of places that nobody picked."""


def picking(mean: Array, covariance: Array, start: int, end: int, among: NDArray[np.int64]) -> Picking:
    """Of two places of an effect, the least and the greatest among some.

    Args:
        mean, covariance: of the effect at all places, (g,) and (g, g).
        start, end: the two places.
        among: those among which they were picked; empty if they were given.
    """
    if not len(among):
        return GIVEN
    inside = covariance[np.ix_(among, among)]
    spread = np.sqrt(np.maximum(np.add.outer(np.diag(inside), np.diag(inside)) - 2.0 * inside, 0.0))
    first, last = int(np.flatnonzero(among == start)[0]), int(np.flatnonzero(among == end)[0])
    if not spread[first, last] > 0.0:
        return GIVEN
    white = np.random.default_rng(0).standard_normal((DRAWS, len(among)))  # the same for everybody
    drawn = white @ root(inside, what="the covariance of an effect", scale=float(covariance.max())).T
    low, high = drawn.argmin(axis=1), drawn.argmax(axis=1)
    apart = drawn[np.arange(DRAWS), high] - drawn[np.arange(DRAWS), low]
    errors = np.divide(apart, spread[low, high], out=np.zeros(DRAWS), where=spread[low, high] > 0.0)
    z = float((mean[end] - mean[start]) / spread[first, last])
    return Picking(float(np.mean(errors >= z)), stretch(z, float(np.quantile(errors, LEVEL))))


def stretch(z: float, usual: float) -> float:
    """By how much an interval widens for a difference of z standard errors (method (80)).

    Args:
        z: the difference.
        usual: what chance exceeds with probability 1 - `LEVEL` where nothing differs.
    """
    given = float(scipy.special.ndtri(0.5 + 0.5 * LEVEL))
    if usual <= given:
        return 1.0
    if z <= usual:
        return usual / given
    # Far out, picking is like so many independent differences of which one was picked.
    log_count = np.log(0.5 - 0.5 * LEVEL) - scipy.special.log_ndtr(-usual)
    return z / -float(scipy.special.ndtri_exp(log_count + scipy.special.log_ndtr(-z)))

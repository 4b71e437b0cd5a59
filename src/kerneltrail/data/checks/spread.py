"""How values are spread: what lies far away from the rest, what is skewed, what runs in parallel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels import Array

KNOWN_CODES = frozenset(
    sign * value for value in (9.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0) for sign in (1.0, -1.0)
) | {-1.0, -1024.0, 1e9, 1e10, 1e20, -1e9, 32767.0, -32768.0, 65535.0, 2147483647.0, -2147483648.0, 4294967295.0}
"""Numbers that programs and people write for "no value"."""

_SIDE = 6
"""At most so many different values on one side are called far from the rest; more of them are a group."""
_REST = 10
"""The rest has to have so many different values at least: else there is no saying what is far from it."""
_ROWS = 20
"""Fewer values say nothing about what is far."""
_AWAY = 0.4
"""No more than this share of the values is called far from the rest."""
_SPREADS = 10.0
"""Interquartile ranges of the rest that a far value is away from it."""
_SINGLE = 3.0
"""Widths of the rest that a single value is away from it."""
_REPEATED = 3
"""A far value that comes so often is a code rather than a slip."""


@dataclass(frozen=True)
class Far:
    """Values far away from the rest.

    Attributes:
        codes: those that come again and again: likely codes for a missing value.
        strays: the others.
        low, high: between which the rest lies.
    """

    codes: tuple[float, ...]
    strays: tuple[float, ...]
    low: float
    high: float

    def within(self, values: Array) -> NDArray[np.bool_]:
        """Which values are not far."""
        return (values >= self.low) & (values <= self.high)


def far_values(values: Array) -> Far | None:
    """What lies far away from the rest of some numbers (no NaN among them); None if nothing does.

    A value that is repeated is far if it is farther from the nearest of the rest than that is wide, and than ten of its
    interquartile ranges; a known code is far at half the width, and a single value at three times. The tail of a skewed
    count is not far: of numbers that are never negative the logarithm has to be 1.5 times as far from the rest as its
    upper half is wide. Of normal, exponential, log-normal and count-like columns of 40 rows or more at most one in a
    hundred has far values by this rule, and so it is of Student's t with three degrees of freedom.

    >>> far_values(np.array([*range(20), 9999.0, 9999.0, 9999.0]))
    Far(codes=(9999.0,), strays=(), low=0.0, high=19.0)
    """
    if len(values) < _ROWS:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(counts)])
    ordered, best = np.sort(values), (0, 0)
    for below in range(_SIDE + 1):
        for above in range(_SIDE + 1):
            last = len(distinct) - above
            if below + above <= sum(best) or last - below < _REST:
                continue
            rest = ordered[ends[below] : ends[last]]
            if len(rest) < (1.0 - _AWAY) * len(values):
                continue
            fits = below == 0 or _is_far(rest, distinct[:below][::-1], counts[:below][::-1])
            if fits and (above == 0 or _is_far(-rest[::-1], -distinct[last:], counts[last:], mirrored=True)):
                best = (below, above)
    below, above = best
    if not below + above:
        return None
    last = len(distinct) - above
    low, high = float(distinct[below]), float(distinct[last - 1])
    far = [(float(v), int(c)) for v, c in zip(distinct, counts, strict=True) if not low <= v <= high]
    codes = tuple(v for v, c in far if c >= _REPEATED or (c > 1 and v in KNOWN_CODES))
    strays = tuple((v, c) for v, c in far if v not in codes)
    rest = ordered[ends[below] : ends[last]]
    if sum(c for _, c in strays) > max(_REPEATED, 0.01 * len(values)):
        strays = ()
    strays = tuple((v, c) for v, c in strays if v < low or not _is_tail(rest, v))
    if not codes and not strays:
        return None
    return Far(codes, tuple(v for v, _ in strays), low, high)


def _is_far(rest: Array, away: Array, counts: NDArray[np.int64], *, mirrored: bool = False) -> bool:
    """Whether values below the (sorted) rest, the nearest first, are far from it; `mirrored` if signs are turned."""
    if np.sum(counts >= _REPEATED) > 2:
        return False  # a group of its own, such as January's days after December's
    gap, width = rest[0] - away[0], rest[-1] - rest[0]
    quarter, half = len(rest) // 4, len(rest) // 2
    spread = rest[min(quarter + half, len(rest) - 1)] - rest[quarter]
    often = counts.min() >= _REPEATED
    if gap > (1.0 if often else _SINGLE) * width and gap > _SPREADS * spread:
        return True
    signed = -away if mirrored else away
    if not often or not all(float(value) in KNOWN_CODES for value in signed):
        return False
    if gap > 0.5 * width:
        return True
    # One negative number among counts: -1, or -99 where the counts go to thousands.
    return not mirrored and rest[0] >= 0.0 and rest[-1] >= 20.0 and bool((rest == np.round(rest)).all())


def _is_tail(rest: Array, value: float) -> bool:
    """Whether a large value may well be the tail of a skewed distribution of numbers that are never negative."""
    positive = rest[rest > 0.0]
    if rest[0] < 0.0 or not len(positive):
        return False
    return bool(np.log(value / positive.max()) < 1.5 * np.log(positive.max() / np.median(positive)))


def skewness(values: Array) -> float:
    """The third moment of the standardised values; 0 if they do not vary."""
    centred = values - values.mean()
    size = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean((centred / size) ** 3)) if size > 1e-12 * float(np.abs(values).max(initial=0.0)) else 0.0


def correlation(x: Array, y: Array) -> float:
    """Pearson's correlation; 0 if one of them does not vary."""
    x, y = x - x.mean(), y - y.mean()
    # Sums rather than products of vectors: those wake all of BLAS's threads, for a hundred times as long.
    sizes = float(np.sqrt(np.sum(x * x) * np.sum(y * y)))
    return float(np.sum(x * y)) / sizes if sizes > 0.0 and np.isfinite(sizes) else 0.0


def ranks(values: Array) -> Array:
    """Ranks from 0, with the mean rank where values are equal.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts) + 0.5 * (counts - 1.0))[inverse]

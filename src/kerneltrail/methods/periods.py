"""Likely periods, read from a periodogram: where searches for a period start.

The likelihood of a period has a mode near every fraction and multiple of the true one, each as narrow as the number of
cycles is large: a start drawn from a wide prior finds none of them. Starts are all that this decides; what is kept is
what the fit says.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy

from kerneltrail.data import User
from kerneltrail.methods.protocol import Array

PeriodLimits = Mapping[str, tuple[float, float]]
"""Shortest and longest period allowed, by covariate."""

Periods = Mapping[str, tuple[float, ...]]
"""Likely periods by covariate, the likeliest first."""

OVERSAMPLING = 5.0
"""Frequencies for each independent one, 1/range: enough not to step over a peak."""

MOST = 20_000
"""Frequencies tried at most."""


def likely_periods(
    x: Array, y: Array, shortest: float, longest: float = np.inf, *, count: int = 3, degree: int = 3
) -> tuple[float, ...]:
    """Periods at the highest peaks of the Lomb–Scargle periodogram of y over x, once a polynomial trend is removed.

    x may be in any order, with any gaps. No period is tried that is shorter than `shortest`, longer than `longest` or
    beyond the range; `count` says how many are wanted, `degree` is the trend's.
    """
    values = np.unique(x)
    spread = float(values[-1] - values[0]) if len(values) else 0.0
    if len(values) < degree + 3 or not 0.0 < shortest < min(spread, longest):
        return ()
    centred = 2.0 * (x - values[0]) / spread - 1.0
    trend = np.polynomial.Polynomial.fit(centred, y, degree, domain=[-1.0, 1.0])
    rest = y - trend(centred)
    size = float(rest.std())
    if not size > 1e-12 * max(1.0, float(np.abs(y).max())):
        return ()
    total = int(min(MOST, np.ceil(OVERSAMPLING * spread / shortest)))
    frequency = np.linspace(1.0 / min(spread, longest), 1.0 / shortest, max(total, 8))
    power = scipy.signal.lombscargle(x - x.mean(), rest / size, 2.0 * np.pi * frequency)
    peak = np.ones(len(power), dtype=bool)
    peak[1:] &= power[1:] >= power[:-1]
    peak[:-1] &= power[:-1] > power[1:]
    places = np.flatnonzero(peak)
    best = places[np.argsort(-power[places], kind="stable")[:count]]
    return tuple(float(1.0 / frequency[i]) for i in best)


def periods_within(rows: User, target: Array, limits: PeriodLimits) -> Periods:
    """Likely periods of a target on each covariate of some rows; none where there are no limits."""
    return {
        name: likely_periods(column, target, *limits.get(name, (0.0, np.inf)))
        for name, column in zip(rows.covariates, rows.X.T, strict=True)
    }

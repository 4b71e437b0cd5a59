"""Numbers on the page about simulated trials: those of one column are written alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kerneltrail.evaluation.intervals import Interval
from kerneltrail.kernels.phrases import counted
from kerneltrail.trial.simulator.summary import Average

MOST = 6
"""Decimals at most."""


def decimals(size: float, digits: int = 2) -> int:
    """Decimals that show so many digits of a number of that size.

    >>> decimals(0.0123), decimals(1.2), decimals(130.0), decimals(0.0)
    (3, 1, 0, 2)
    """
    if not math.isfinite(size) or size <= 0.0:
        return digits
    return min(max(digits - 1 - math.floor(math.log10(size)), 0), MOST)


def written(value: float, places: int) -> str:
    """A number with so many decimals, with the sign that people read as minus.

    >>> written(-1.234, 2), written(-0.001, 2)
    ('−1.23', '0.00')
    """
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")


def averages(column: Sequence[Average]) -> list[str]:
    r"""Means with their standard errors, all with the decimals that the largest error leaves.

    >>> averages([Average(0.1243, 0.0142), Average(0.0108, 0.0025)])
    ['0.124\xa0±\xa00.014', '0.011\xa0±\xa00.003']
    """
    errors = [each.error for each in column if each.error is not None]
    if any(errors):
        places = decimals(max(errors))
    else:
        places = decimals(max((abs(each.mean) for each in column), default=0.0), 3)
    return [
        written(each.mean, places) + ("" if each.error is None else f"\u00a0±\u00a0{written(each.error, places)}")
        for each in column
    ]


def numbers(column: Sequence[float], digits: int = 3) -> list[str]:
    """Numbers with the decimals that show so many digits of the largest.

    >>> numbers([2.771, 4.7, 0.0711])
    ['2.77', '4.70', '0.07']
    """
    places = decimals(max(map(abs, column), default=0.0), digits)
    return [written(each, places) for each in column]


def percent(share: float) -> str:
    r"""A share in whole percent.

    >>> percent(0.667)
    '67\xa0%'
    """
    return f"{100 * share:.0f}\u00a0%"


def percents(share: Interval) -> str:
    """The interval of a share in whole percent."""
    return f"{100 * share.low:.0f}–{100 * share.high:.0f}\u00a0%"


def of_trials(share: Interval) -> str:
    """A share of trials: how many of them, in percent, with the interval that so many trials leave."""
    found = f"{round(share.mean * share.users)} of {counted(share.users, 'trial')}"
    return f"{found} ({percent(share.mean)}; {percents(share)})"

"""Which columns are the hour of the day: their names say so, never their units, since sleep is in hours as well."""

from __future__ import annotations

import re

CLOCKS = frozenset({"hour", "clock", "hourofday", "timeofday"})
"""Words of a name that stand for the hour of the day."""
BESIDE = frozenset(
    {"at", "current", "day", "decision", "in", "local", "now", "of", "prompt", "start", "the", "time", "utc"}
)
"""Words that may stand beside them; with any other, as in `steps_prev_hour`, something else is meant."""
DAY = (0.0, 24.0)
"""Hours of a day."""


def is_hour(name: str, low: float, high: float) -> bool:
    """Whether a column is the hour of the day, by its name and the range of its values.

    >>> [is_hour(name, 8.0, 21.5) for name in ("hour", "Hour_local", "hourOfDay", "time_of_day", "clock")]
    [True, True, True, True, True]
    >>> [is_hour(name, 4.0, 9.0) for name in ("sleep", "sleep_hours", "steps_prev_hour", "time")]
    [False, False, False, False]
    >>> is_hour("hour", 0.0, 700.0)
    False
    """
    return DAY[0] <= low and high <= DAY[1] and _says_so(name)


def _says_so(name: str) -> bool:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = [word.lower() for word in re.split(r"[\W_]+", apart) if word]
    if words == ["hours"]:  # among other words the plural is a length of time, as in hours_slept
        return True
    named = CLOCKS.intersection(words) or {"time", "of", "day"} <= set(words)
    return bool(named) and set(words) <= CLOCKS | BESIDE

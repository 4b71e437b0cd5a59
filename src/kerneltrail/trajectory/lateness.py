"""Whether a batch's rows are later than those of the batches before, where rows come with their times.

Late rows are legitimate: a phone was offline. But rows that are sent twice count twice, so older ones are told.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.times import read_time
from kerneltrail.kernels.phrases import counted
from kerneltrail.store.validate import Malformed, conform

Time = int | float | datetime
"""A value of the column that puts rows in order."""

OrderCells = NDArray[Any] | list[datetime]
"""A batch's values of that column."""


def newest(times: OrderCells, before: Time | None) -> Time:
    """The newest time of a batch and of what was known before, unless that was of another kind."""
    known: Any = before
    time = times.max().item() if isinstance(times, np.ndarray) else max(times)
    return time if known is None or _differ(time, known) else max(time, known)


def lateness(column: str, times: OrderCells, before: Time | None) -> str:
    """What to say of rows that are not later than the newest ones before; empty where there is nothing to say.

    One time for several rows is as it should be where times are whole days, or where rows of the batch share one: then
    only older rows are told.
    """
    if before is None:
        return ""
    oldest: Any = times.min().item() if isinstance(times, np.ndarray) else min(times)
    if _differ(oldest, before):
        kinds = ("numbers", "dates and times")
        now, then = kinds if isinstance(before, datetime) else kinds[::-1]
        return f"column {column!r} holds {now}, and {then} before, so nobody knows whether these rows are later"
    if oldest > before or (oldest == before and _shared(times, before)):
        return ""
    cells, latest = list(times), newest(times, None)
    late = sum(time < before or (time == before and not _shared(times, before)) for time in cells)
    span = f"is {oldest}" if oldest == latest else f"runs from {oldest} to {latest}"
    which = f"{late} of {counted(len(cells), 'row')} {'is' if late == 1 else 'are'}"
    return (
        f"{which} not later than the newest row before, of {before}: {column} {span} in this batch; all are taken as "
        "further rows, and if some were sent before, intervals are too narrow now"
    )


def _shared(times: OrderCells, time: Time) -> bool:
    """Whether several rows may have the same time."""
    whole_day = isinstance(time, datetime) and time == datetime(time.year, time.month, time.day)
    return whole_day or len(set(times)) < len(times)


def _differ(one: Time, other: Time) -> bool:
    return isinstance(one, datetime) != isinstance(other, datetime)


def encoded(time: Time) -> int | float | str:
    """A time for a file."""
    return time.isoformat() if isinstance(time, datetime) else time


def decoded(stored: Any) -> Time | None:
    """A time from a file; files of before have none."""
    conform(stored, int | float | str | None, "its newest time")
    if not isinstance(stored, str):
        return None if stored is None else stored
    time = read_time(stored)
    if time is None or time.tzinfo is not None:
        raise Malformed(f"its newest time is {stored!r}, which is none without a zone")
    return time

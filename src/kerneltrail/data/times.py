"""Times that are not written as ISO 8601: read by a format that is stated, and a format suggested where none is.

Nothing is guessed: a format is only ever suggested, and where days and months could be meant either way, both are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError

EPOCHS = {"epoch-seconds": 1_000_000, "epoch-milliseconds": 1_000}
"""Formats for numbers that count from the beginning of 1970, in UTC, with the microseconds in each of their units."""

_DATES = (
    "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
    "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y",
    "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d %Y", "%B %d, %Y",
)  # fmt: skip
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%H:%M:%S%z", "%H:%M:%S %z")
FORMATS = (*_DATES, *(f"{day}{mark}{clock}" for day in _DATES for mark in (" ", "T", ", ", "  ") for clock in _CLOCKS))
"""Formats that are recognised; the commoner ones come first."""

_SAMPLE = 40
"""So many texts sift the formats; those left are tried on all."""
_MOST = 0.8
"""A format that reads this share of a column is worth a word, even if it does not read all of it."""
_YEARS = (datetime(2000, 1, 1), datetime(2100, 1, 1))
"""Numbers that would be times within these years are taken for such, when gaps are looked for."""
_ZERO = datetime(1970, 1, 1)
_EXAMPLES = f"such as '%d/%m/%Y %H:%M', or {' or '.join(EPOCHS)}"


def read_time(value: Any, written: str | None = None) -> datetime | None:
    """A time from a cell of a table, or None where it is none; a text is read by a format, or else as ISO 8601.

    >>> read_time("22/07/2015 16:31", "%d/%m/%Y %H:%M"), read_time("22/07/2015"), read_time(1437582713, "epoch-seconds")
    (datetime.datetime(2015, 7, 22, 16, 31), None, datetime.datetime(2015, 7, 22, 16, 31, 53))
    """
    try:
        if isinstance(value, date):
            return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        if written in EPOCHS:
            return _ZERO + timedelta(microseconds=round(float(value) * EPOCHS[written]))
        if not isinstance(value, str):
            return None
        return datetime.fromisoformat(value) if written is None else datetime.strptime(value, written)
    except (TypeError, ValueError, OverflowError):
        return None


def check_format(written: str | None) -> None:
    """Refuse a format that cannot be read with, or that leaves out the day."""
    if written is None or written in EPOCHS:
        return
    now = datetime(2015, 7, 22, 16, 31, 53, tzinfo=UTC)
    try:
        back = datetime.strptime(now.strftime(written), written)
    except (TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"{written!r} is no format of times: {problem}; {_EXAMPLES}") from None
    if (back.year, back.month, back.day) != (now.year, now.month, now.day):
        raise DataError(f"the format {written!r} must have year, month and day; {_EXAMPLES}")


def write_times(times: NDArray[Any], written: str | None) -> list[Any]:
    """Times as texts (or numbers since 1970) that `read_time` reads back by the same format."""
    if written is None:
        return [str(time) for time in times]
    if written in EPOCHS:
        unit, counts = EPOCHS[written], times.astype("datetime64[us]").astype(np.int64).tolist()
        return [count / unit if count % unit else count // unit for count in counts]
    # Zones were turned into UTC when the times were read.
    stamps = (time.replace(tzinfo=UTC) for time in times.astype("datetime64[us]").tolist())
    return [stamp.strftime(written) for stamp in stamps]


def likely_formats(texts: Sequence[str]) -> dict[str, int]:
    """Formats that read most of the texts, with how many each reads, the best first.

    Of formats that mean the same for all these texts only the commonest is there. Several that read all of them
    contradict each other: 03/04/2016 is in March or in April.

    >>> likely_formats(["22/07/2015", "01/08/2015"]), list(likely_formats(["03/04/2016", "05/04/2016"]))
    ({'%d/%m/%Y': 2}, ['%d/%m/%Y', '%m/%d/%Y'])
    """
    distinct = Counter(texts)
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    # Python compiles every format that is tried, half a millisecond each: the marks between the numbers tell first.
    usual = Counter(map(_marks, sample)).most_common(1)[0][0] if sample else ""
    alike = (written for written in FORMATS if usual.startswith(_marks(re.sub("%.", "", written))))
    sifted = [written for written in alike if _reads(sample, written) >= _MOST * len(sample)]
    meanings: dict[tuple[datetime | None, ...], str] = {}
    for written in sifted:
        meanings.setdefault(tuple(read_time(text, written) for text in distinct), written)
    counts = {
        written: sum(count for time, count in zip(times, distinct.values(), strict=True) if time is not None)
        for times, written in meanings.items()
    }
    kept = {written: count for written, count in counts.items() if count >= _MOST * len(texts)}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def _marks(text: str) -> str:
    return re.sub(r"\w", "", text)


def _reads(texts: Sequence[str], written: str) -> int:
    return sum(read_time(text, written) is not None for text in texts)


def suggestion(values: Sequence[Any]) -> str:
    """A sentence on how a column of times may have been written, to be appended to an error; empty if nobody can say.

    >>> suggestion(["13/04/2016 08:00", "14/04/2016 12:00"])
    "; they can be read with --time-format '%d/%m/%Y %H:%M' (time_format= in Python)"
    """
    texts = [str(value) for value in values if not isinstance(value, date)]
    counts = likely_formats(texts) if texts else {}
    best = [written for written, count in counts.items() if count == max(counts.values())]
    if len(best) > 1:
        return (
            f"; {' and '.join(map(repr, best[:3]))} fit equally well and mean different days: say which one with "
            "--time-format (time_format= in Python)"
        )
    if best:
        odd = next((text for text in texts if read_time(text, best[0]) is None), None)
        but = "" if odd is None else f" but for {odd!r}, which has to be corrected first"
        return f"; they can be read with --time-format {best[0]!r} (time_format= in Python){but}"
    count = sum(_is_count(text) for text in texts)
    if _MOST * len(texts) <= count < len(texts):
        odd = next(text for text in texts if not _is_count(text))
        return f"; {count} of {len(texts)} rows hold numbers, and {odd!r} is none"
    return ""


def _is_count(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def clock(order: NDArray[Any]) -> tuple[NDArray[Any], str] | None:
    """The times that order values stand for, and what they are; None where they are mere numbers.

    Numbers are taken for times if all of them count seconds or milliseconds since 1970 to within this century, or are
    days such as 20150722.

    >>> clock(np.array([20150731, 20150801]))[0].astype("datetime64[D]").tolist()
    [datetime.date(2015, 7, 31), datetime.date(2015, 8, 1)]
    >>> clock(np.array([1, 2, 3])) is None
    True
    """
    if order.dtype.kind == "M":
        return order.astype("datetime64[us]"), "times"
    if order.dtype.kind not in "iuf" or not order.size:
        return None
    for name, micro in EPOCHS.items():
        low, high = (int((year - _ZERO).total_seconds()) * (1_000_000 // micro) for year in _YEARS)
        if low <= order.min() and order.max() < high:
            counts = np.round(order.astype(np.float64) * micro).astype(np.int64)
            return counts.astype("datetime64[us]"), f"{name.removeprefix('epoch-')} since 1970"
    days = list(_days(order))
    return (np.array(days, dtype="datetime64[us]"), "days written as numbers") if None not in days else None


def _days(order: NDArray[Any]) -> Iterator[datetime | None]:
    for value in order.tolist():
        time = read_time(str(int(value)), "%Y%m%d") if value == int(value) and 19e6 < value < 22e6 else None
        yield time
        if time is None:
            return

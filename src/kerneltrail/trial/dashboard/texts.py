"""Times, ages and shares as the desk writes them: short, with a zone, in words that need no explanation."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from kerneltrail.kernels.phrases import counted
from kerneltrail.report.model_page.numbers import NONE
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.rhythm import on_clock


def moment(when: datetime | str | None, zone: str = "UTC") -> str:
    """A time on a clock, to the minute.

    >>> moment("2026-03-03T18:30:00+00:00", "Europe/Zurich"), moment(None)
    ('Tue 3 Mar 2026, 19:30', '–')
    """
    if when is None:
        return NONE
    local = (instant(when) if isinstance(when, str) else when).astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


def dated(when: datetime | str | None, zone: str = "UTC") -> str:
    """A time with the clock that it is on, wherever that is not said once for several.

    >>> dated("2026-03-03T18:30:00+00:00", "Europe/Zurich"), dated(None)
    ('Tue 3 Mar 2026, 19:30 (Europe/Zurich)', '–')
    """
    return NONE if when is None else on_clock(instant(when) if isinstance(when, str) else when, zone)


def day_of(when: datetime | str, zone: str = "UTC") -> str:
    """A day on a clock.

    >>> day_of("2026-03-03T23:30:00+00:00", "Europe/Zurich")
    'Wed 4 Mar 2026'
    """
    local = (instant(when) if isinstance(when, str) else when).astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.day} {local:%b %Y}"


def age(span: timedelta, units: int = 2) -> str:
    """How long, in its largest units.

    >>> [age(timedelta(seconds=s)) for s in (20, 90, 7200, 100000, 691200)]
    ['less than a minute', '1 minute', '2 hours', '1 day 3 hours', '8 days']
    """
    seconds = max(int(span.total_seconds()), 0)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days >= 7:
        return counted(days, "day")
    parts = [counted(count, unit) for count, unit in ((days, "day"), (hours, "hour"), (minutes, "minute")) if count]
    return " ".join(parts[:units]) or "less than a minute"


def share(part: int, whole: int) -> str:
    """A share with its count.

    >>> share(3, 8), share(0, 0)
    ('3 of 8 (38 %)', '–')
    """
    return f"{part:,} of {whole:,} ({100.0 * part / whole:.0f} %)" if whole else NONE

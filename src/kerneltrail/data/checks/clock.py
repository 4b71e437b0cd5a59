"""Checks of the order of rows, and of time where the order column tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from kerneltrail.data.checks.findings import Finding, TimeSummary
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import Index, who
from kerneltrail.data.checks.values import rows_of
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import number, singular

_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_LONG = 10.0
"""A gap is long if it is so many times the longest of nine in ten."""
_RATE = 5.0
"""Rows that come so many times as often, or as seldom, as those of other users."""
_GRID = 0.9
"""Where this share of rows comes at the same time after the row before, times are regular."""
_YEARS = 5.0 * 365.0 * 86400.0
"""Times that far from all others are mistakes."""


def span(seconds: float) -> str:
    """A length of time in a sentence.

    >>> span(90.0), span(86400.0), span(5.4 * 86400.0), span(0.01)
    ('1.5 minutes', '1 day', '5.4 days', '0.01 seconds')
    """
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    shown = number(seconds / size)
    return f"{shown} {singular(unit) if shown == '1' else unit}"


def _kept(data: Inspection) -> dict[str, Index]:
    """Each user's rows that are not left out for a missing value: a night that is left out is a gap."""
    groups = {name: index[data.kept[index]] for name, index in data.rows.groups.items()}
    return {name: index for name, index in groups.items() if len(index)}


def _steps(data: Inspection, groups: Mapping[str, Index]) -> dict[str, Array]:
    """Seconds between neighbouring rows, by user; equal times are not counted."""
    if data.seconds is None:
        return {}
    steps = {name: np.diff(data.seconds[index]) for name, index in groups.items()}
    return {name: lengths[lengths > 0.0] for name, lengths in steps.items() if (lengths > 0.0).any()}


def time_summary(data: Inspection) -> TimeSummary | None:
    """When the rows were that are kept."""
    if data.times is None or not data.kept.any():
        return None
    times, kind = data.times
    times = times[data.kept]
    first, last = (str(time)[:16].replace("T", " ") for time in (times.min(), times.max()))
    steps = _steps(data, _kept(data))
    if not steps:
        return TimeSummary(kind, first, last)
    user = max(steps, key=lambda name: steps[name].max())
    return TimeSummary(
        kind, first, last, float(np.median(np.concatenate(list(steps.values())))), float(steps[user].max()), user
    )


def far_times(data: Inspection) -> Iterator[Finding]:
    """Times that lie years from all others."""
    if data.times is None or data.seconds is None or data.rows.count < 10:
        return
    times, _ = data.times
    order = np.argsort(data.seconds)
    breaks = np.flatnonzero(np.diff(data.seconds[order]) > _YEARS) + 1
    parts = np.split(order, breaks)
    largest = max(parts, key=len)
    away = [int(row) for part in parts if part is not largest for row in part]
    if away and len(away) <= 0.1 * data.rows.count:
        dates = sorted({str(times[row])[:10] for row in away})
        when = f"{dates[0]} and the like" if len(dates) > 1 else dates[0]
        message = f"order column {data.schema.order!r} is {when} in {data.rows.where(away)}, years from all others"
        advice = "A clock that was never set? Correct the times or leave the rows out: they put rows in a wrong order."
        users = data.rows.users_of(away)
        yield Finding("warning", "far-time", (data.schema.order,), users, data.rows.numbered(away), message, advice)


def gaps(data: Inspection) -> Iterator[Finding]:
    """Long times without a row that is kept."""
    groups = _kept(data)
    steps = _steps(data, groups)
    if data.seconds is None or not steps:
        return
    usual = float(np.quantile(np.concatenate(list(steps.values())), 0.9))
    longest = {name: float(lengths.max()) for name, lengths in steps.items() if lengths.max() > _LONG * usual}
    longest = {name: gap for name, gap in longest.items() if gap < _YEARS}
    if longest:
        users = tuple(sorted(longest, key=lambda name: -longest[name]))
        index = groups[users[0]]
        last, before = map(int, index[int(np.argmax(np.diff(data.seconds[index]))) :][:2])
        every = data.rows.groups[users[0]].tolist()
        within = every.index(before) - every.index(last) - 1
        message = (
            f"{who(users)} {'has a gap' if len(users) == 1 else 'have gaps'} in time of more than {span(_LONG * usual)}"
        )
        message += f"; the longest is {span(longest[users[0]])}, before {data.rows.where([before])}"
        left_out = f"{rows_of(within)} in between {'is' if within == 1 else 'are'} left out"
        message += f"; {left_out} for a missing value" if within else ""
        advice = "What held before a gap may not hold after it. A second period of a study can be a user of its own."
        yield Finding("note", "gap", (data.schema.order,), users, data.rows.numbered([before]), message, advice)


def rates(data: Inspection) -> Iterator[Finding]:
    """Users with rows that come much more often, or more seldom, than those of others."""
    steps = {name: lengths for name, lengths in _steps(data, _kept(data)).items() if len(lengths) > 4}
    if len(steps) < 3:
        return
    medians = {name: float(np.median(lengths)) for name, lengths in steps.items()}
    usual = float(np.median(list(medians.values())))
    odd = tuple(name for name, median in medians.items() if not usual / _RATE <= median <= usual * _RATE)
    if odd:
        message = (
            f"rows of {who(odd)} come every {span(medians[odd[0]])}{' or so' if len(odd) > 1 else ''}, those of others "
            f"every {span(usual)}"
        )
        advice = "Are these the same kind of rows? A batch of a given size then covers very different times."
        yield Finding("note", "rate", (data.schema.order,), odd, (), message, advice)


def irregular(data: Inspection) -> Iterator[Finding]:
    """Rows off the grid, where nearly all come at equal times from each other."""
    steps = np.concatenate(list(_steps(data, data.rows.groups).values()) or [np.empty(0)])
    if data.seconds is None or len(steps) < 20:
        return
    lengths, counts = np.unique(np.round(steps), return_counts=True)
    usual = float(lengths[np.argmax(counts)])
    if counts.max() < _GRID * len(steps) or usual < 1.0:
        return
    off: list[int] = []
    for index in data.rows.groups.values():
        ratios = np.diff(data.seconds[index]) / usual
        # After a long gap rows may well begin at another minute.
        off += index[1:][(np.abs(ratios - np.round(ratios)) > 0.02) & (ratios < _LONG)].tolist()
    if off:
        after = "come at odd times" if len(off) > 1 else "comes at an odd time"
        message = f"{rows_of(len(off))} {after}, where all others are {span(usual)} apart, or a multiple of it"
        message += f": {data.rows.where(off)}"
        advice = "Was a clock wrong or set anew, or does the row belong to something else?"
        yield Finding(
            "note", "irregular", (data.schema.order,), data.rows.users_of(off), data.rows.numbered(off), message, advice
        )


def unsorted(data: Inspection) -> Iterator[Finding]:
    """Rows that the table does not have in time order; texts that do not increase."""
    order = data.rows.order
    if data.report.unsorted:
        users = data.report.unsorted
        message = f"rows of {who(users)} are not in time order in the table; they were sorted by {data.schema.order!r}"
        advice = "Nothing is to be done if that column is the right one."
        yield Finding("note", "unsorted", (data.schema.order,), users, (), message, advice)
    if order is not None and order.dtype.kind in "UO":
        texts = [str(value) for value in order.tolist()]
        back = [int(b) for index in data.rows.groups.values() for a, b in pairwise(index) if texts[b] < texts[a]]
        if back:
            message = f"order values are texts that do not increase: {texts[back[0]]!r} in {data.rows.where(back[:1])}"
            advice = f"Are the rows in time order? {rows_of(len(back))} go back; use numbers or times to be sure."
            yield Finding(
                "warning",
                "order",
                (data.schema.order,),
                data.rows.users_of(back),
                data.rows.numbered(back),
                message,
                advice,
            )


def _tells_time(data: Inspection) -> bool:
    return data.times is not None


CHECKS = (
    Check("rows out of time order", unsorted),
    Check("times years from all others", far_times, _tells_time),
    Check("long gaps in time", gaps, _tells_time, told=("far-time",)),
    Check("users with another rate of rows", rates, _tells_time),
    Check("irregular times", irregular, _tells_time),
)

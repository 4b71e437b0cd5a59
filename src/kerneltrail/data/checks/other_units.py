"""Users whose values are in another unit than everybody else's: by their difference, their ratio, or where most lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.checks.conversions import UNITS, fitting
from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing, number

_TIMES = (10.0, 2.0)
"""A user's median that is so many times smaller or larger than anybody else's may be in another unit, if it is also so
many times as far from theirs (in logarithms) as theirs are from each other."""
_TIMES_OF_FEW = {4: (30.0, 3.0), 5: (20.0, 3.0), 6: (15.0, 3.0), 7: (10.0, 3.0), 8: (10.0, 3.0)}
"""The same by the number of users, where they are few: in 4 to 20 users whose medians are log-normal with sd 1 it then
happens by chance in at most 0.2 % of columns."""
_WIDER = 2.0
"""Another unit leaves ratios and zeros as they are: where values spread so many times wider than others', or so many
times fewer are above 0, it is the behaviour that differs."""
_RANGES = {4: 27.0, 5: 8.5, 6: 5.0, 7: 3.5}
_RANGES_OF_MANY = 2.5
"""A median is far out if it is so many times as far from the others' medians as these are from each other, by number of
users: by chance it then is in at most 0.2 % of columns whose medians are normal, or log-normal and above 0."""


_SHORTER = 10.0
"""A scale that is so many times shorter has decimals."""


def other_units(data: Inspection) -> Iterator[Finding]:
    """A user with values that all, or most of which, lie far from everybody else's."""
    if len(data.rows.groups) < 4:
        return
    for name in data.measured:
        if data.rises(name):
            continue
        values, far = data.rows.values[name], data.far[name]
        kept = np.isfinite(values) if far is None else np.isfinite(values) & far.within(values)
        groups = {user: values[index[kept[index]]] for user, index in data.rows.groups.items()}
        groups = {user: each for user, each in groups.items() if len(each) > 4}
        if len(groups) < 4:
            continue
        ranges = {user: (float(each.min()), float(each.max())) for user, each in groups.items()}
        sizes, bulks = _sizes(groups), {user: _Bulk.of(each) for user, each in groups.items()}
        for user in groups:
            said = _beyond(user, ranges, bulks) or _of_another_size(user, sizes)
            maybe = said or _elsewhere(user, bulks)
            fits = _fitting(user, groups) if maybe else []
            if said or fits:  # people do differ: most of a user's values elsewhere are no other unit without a reason
                message = f"{data.named(name)} of user {user!r} {maybe}"
                would = f" They would fit if {listing(fits[:2], 'or')}." if fits else ""
                advice = f"Is it in another unit, or another thing?{would} Bring it to the unit of the others."
                numbers = data.rows.numbered(data.rows.groups[user])
                yield Finding("warning", "other-unit", (name,), (user,), numbers, message, advice)


def _beyond(user: str, ranges: Mapping[str, tuple[float, float]], bulks: Mapping[str, _Bulk]) -> str:
    """All values lie farther from all others than these lie apart, and the median is far out.

    Without the latter people who hardly vary, as in weight, were told by chance: of 4 users in 46 % of columns.
    """
    low, high = ranges[user]
    others = [pair for other, pair in ranges.items() if other != user]
    bottom, top = min(a for a, _ in others), max(b for _, b in others)
    if not (top > bottom and max(low - top, bottom - high) > max(top - bottom, high - low)):
        return ""
    if not _is_far_out(user, bulks):
        return ""
    return (
        f"lies between {number(low)} and {number(high)}, that of all others between {number(bottom)} and {number(top)}"
    )


def _fitting(user: str, groups: Mapping[str, Array]) -> list[str]:
    """Changes of unit that would bring a user's values to where the others' are.

    Whole numbers are no tenths: who has few of a thing has not counted them on a shorter scale.
    """
    own, others = groups[user], np.concatenate([each for other, each in groups.items() if other != user])
    low, tenth, ninetieth, high = np.quantile(others, (0.01, 0.1, 0.9, 0.99)).tolist()
    whole = bool((own == np.round(own)).all())
    among = [(said, back) for said, back in UNITS if not (whole and np.ptp(back(np.array([0.0, 1.0]))) >= _SHORTER)]
    return fitting(own, (low, tenth, ninetieth, high), "the others'", among)


@dataclass(frozen=True)
class _Bulk:
    """Between which most of a user's values lie: their smallest, 10 %, median, 90 % and largest."""

    low: float
    tenth: float
    median: float
    ninetieth: float
    high: float

    @classmethod
    def of(cls, values: Array) -> _Bulk:
        return cls(*np.quantile(values, (0.0, 0.1, 0.5, 0.9, 1.0)).tolist())


def _elsewhere(user: str, bulks: Mapping[str, _Bulk]) -> str:
    """Where most of a user's values lie, if nobody else's do and the median is far out; empty if that is not so."""
    own, others = bulks[user], [each for other, each in bulks.items() if other != user]
    bottom, top = min(each.tenth for each in others), max(each.ninetieth for each in others)
    if own.tenth <= top and own.high >= bottom:  # who does little of a thing does much of it at times
        return ""
    if not _is_far_out(user, bulks):
        return ""
    medians = [each.median for each in others]
    return (
        f"lies mostly between {number(own.tenth)} and {number(own.ninetieth)} (median {number(own.median)}), that of "
        f"all others between {number(bottom)} and {number(top)} (medians {number(min(medians))} to "
        f"{number(max(medians))})"
    )


def _is_far_out(user: str, bulks: Mapping[str, _Bulk]) -> bool:
    """Whether a user's median is far from the others', in ranges of these; of values above 0 in logarithms, too."""
    others = np.array([each.median for other, each in bulks.items() if other != user])
    away = _in_ranges(bulks[user].median, others)
    if min(each.low for each in bulks.values()) > 0.0:
        away = min(away, _in_ranges(float(np.log(bulks[user].median)), np.log(others)))
    return away > _RANGES.get(len(bulks), _RANGES_OF_MANY)


def _in_ranges(median: float, others: Array) -> float:
    low, high = float(others.min()), float(others.max())
    return max(median - high, low - median, 0.0) / (high - low) if high > low else np.inf


@dataclass(frozen=True)
class _Size:
    """Of a user's values above 0: their share, and the smallest, 10 %, median, 90 % and largest of their logarithms."""

    share: float
    low: float
    tenth: float
    median: float
    ninetieth: float
    high: float

    @property
    def spread(self) -> float:
        return self.ninetieth - self.tenth


def _sizes(values: Mapping[str, NDArray[np.float64]]) -> dict[str, _Size]:
    """How large each user's values are; nothing where some are below 0, so that ratios say nothing."""
    if any((each < 0.0).any() for each in values.values()):
        return {}
    above = {user: np.log(each[each > 0.0]) for user, each in values.items()}
    return {
        user: _Size(len(each) / len(values[user]), *np.quantile(each, (0.0, 0.1, 0.5, 0.9, 1.0)).tolist())
        for user, each in above.items()
        if len(each) > 4
    }


def _of_another_size(user: str, sizes: Mapping[str, _Size]) -> str:
    """In what a user's values are of quite another size than anybody else's; empty if they are not.

    Hours among minutes are not far off by their difference. No value of the user lies in the bulk of another's, ratios
    vary as others' do, and about as many values are 0: a unit changes no more than the size. Who does little of a thing
    is found to do much at times, or nothing.
    """
    others = [size for other, size in sizes.items() if other != user]
    if user not in sizes or len(others) < 3:
        return ""
    own = sizes[user]
    smallest, largest = min(size.median for size in others), max(size.median for size in others)
    below = own.high < min(size.tenth for size in others)
    if not below and own.low <= max(size.ninetieth for size in others):
        return ""
    if own.share < min(size.share for size in others) / _WIDER:
        return ""
    if own.spread > max(_WIDER * float(np.median([size.spread for size in others])), np.log(_WIDER)):
        return ""
    times, ranges = _TIMES_OF_FEW.get(len(others) + 1, _TIMES)
    apart = smallest - own.median if below else own.median - largest
    if apart <= max(np.log(times), ranges * (largest - smallest)):
        return ""
    a, b, median = (number(float(np.exp(size))) for size in (smallest, largest, own.median))
    than = f"{number(float(np.exp(apart)))} times {'smaller' if below else 'larger'} than that of anybody else"
    return f"is at least {than}: its median is {median}, of the others between {a} and {b} (of values above 0)"


CHECKS = (Check("users in another unit", other_units, lambda data: len(data.rows.groups) > 3, told=("pilot-range",)),)

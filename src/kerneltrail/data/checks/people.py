"""Checks of users: too few, too little of one, another unit, actions that tell nothing, cells that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import who
from kerneltrail.data.checks.values import rows_of
from kerneltrail.kernels.phrases import number

FEW_USERS, FEW_ROWS, SMALL_BATCH = 5, 10, 5
_LITTLE = 0.1
"""A user with less than this share of the usual number of rows has little."""
_TIMES = (10.0, 2.0)
"""A user's median that is so many times smaller or larger than anybody else's may be in another unit, if it is also so
many times as far from theirs (in logarithms) as theirs are from each other."""
_TIMES_OF_FEW = {4: (30.0, 3.0), 5: (20.0, 3.0), 6: (15.0, 3.0), 7: (10.0, 3.0), 8: (10.0, 3.0)}
"""The same by the number of users, where they are few: in 4 to 20 users whose medians are log-normal with sd 1 it then
happens by chance in at most 0.2 % of columns."""
_WIDER = 2.0
"""Another unit leaves ratios and zeros as they are: where values spread so many times wider than others', or so many
times fewer are above 0, it is the behaviour that differs."""


def unusable(data: Inspection) -> Iterator[Finding]:
    """Users with a cell that cannot be used, and users of whom no row is left."""
    for name, problem in data.report.refused.items():
        message = f"user {name!r}: {problem.removeprefix(f'user {name!r}: ')}"
        yield Finding("error", "unusable", (), (name,), (), message, "Correct it in the table.")
    if data.report.empty:
        message = f"no row is left of {who(data.report.empty)}: each lacks a value"
        advice = "They take no part. Is a column missing for them altogether?"
        yield Finding("warning", "empty", (), data.report.empty, (), message, advice)


def few(data: Inspection) -> Iterator[Finding]:
    """Too few users, batches or rows to learn from; of new users only those with few rows matter."""
    sizes = {user.name: user.rows for user in data.users}
    if data.pilot is None and len(sizes) < FEW_USERS:
        message = "there is only one user" if len(sizes) == 1 else f"there are only {len(sizes)} users"
        advice = (
            "A graph is learnt from what users have in common: with fewer than five there is little to be learnt, and "
            "ten or more are a good start."
        )
        yield Finding("warning", "few-users", (), tuple(sizes), (), message, advice)
    if data.pilot is None and data.is_cut:
        yield from _few_batches(data)
    usual = float(np.median(list(sizes.values())))
    short = tuple(name for name, rows in sizes.items() if rows < max(FEW_ROWS, _LITTLE * usual))
    if short and len(short) < len(sizes):
        most = max(sizes[name] for name in short)
        have = "has" if len(short) == 1 else "have at most"
        message = f"{who(short)} {have} {rows_of(most)}, where {number(usual)} are usual"
        advice = "They say little about kernels. Did they leave early, or were their rows dropped?"
        yield Finding("note", "few-rows", (), short, (), message, advice)


def _few_batches(data: Inspection) -> Iterator[Finding]:
    single = tuple(user.name for user in data.users if user.batches < 2)
    if len(single) == len(data.users):
        message = "no user has more than one batch"
        advice = "How kernels change as rows come in cannot be learnt from one batch: choose a smaller --batch-size."
        yield Finding("warning", "few-batches", (), (), (), message, advice)
    elif len(single) > 0.5 * len(data.users):
        message = f"{len(single)} of {len(data.users)} users have a single batch"
        advice = "They say nothing about how kernels change as rows come in; a smaller --batch-size would."
        yield Finding("note", "few-batches", (), single, (), message, advice)
    sizes = [size for user in data.users for size in np.diff((0, *user.ends)).tolist()]
    usual = float(np.median(sizes or [SMALL_BATCH]))
    if usual < SMALL_BATCH:
        message = f"half of the batches have {rows_of(round(usual))} or fewer"
        advice = "A kernel selected after so few new rows is mostly the last one; larger batches cost nothing."
        yield Finding("note", "small-batches", (), (), (), message, advice)


def other_units(data: Inspection) -> Iterator[Finding]:
    """A user with values that all lie far from everybody else's: by their difference, or by their ratio."""
    if len(data.rows.groups) < 4:
        return
    for name in data.measured:
        if data.rises(name):
            continue
        values, far = data.rows.values[name], data.far[name]
        kept = np.isfinite(values) if far is None else np.isfinite(values) & far.within(values)
        groups = {user: values[index[kept[index]]] for user, index in data.rows.groups.items()}
        groups = {user: each for user, each in groups.items() if len(each) > 4}
        ranges = {user: (float(each.min()), float(each.max())) for user, each in groups.items()}
        sizes = _sizes(groups)
        for user, (low, high) in ranges.items():
            others = [pair for other, pair in ranges.items() if other != user]
            if len(others) < 3:
                break
            bottom, top = min(a for a, _ in others), max(b for _, b in others)
            width = top - bottom
            said = f"lies between {number(low)} and {number(high)}, that of all others between {number(bottom)} and "
            said += number(top)
            if not (width > 0.0 and max(low - top, bottom - high) > max(width, high - low)):
                said = _of_another_size(user, sizes)
            if said:
                message = f"{data.named(name)} of user {user!r} {said}"
                advice = "Is it in another unit, or another thing? Bring it to the unit of the others."
                numbers = data.rows.numbered(data.rows.groups[user])
                yield Finding("warning", "other-unit", (name,), (user,), numbers, message, advice)


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


def actions(data: Inspection) -> Iterator[Finding]:
    """Actions that never vary, or contradict availability or the stated probability."""
    name = data.schema.action
    if name is None:
        return
    action, free = data.rows.values[name], data.available
    there = np.isfinite(action) & free
    if there.any() and len(np.unique(action[there])) == 1:
        message = f"action {name!r} is {action[there][0]:g} in all {rows_of(int(there.sum()))} at which it was possible"
        advice = "What acting adds cannot be learnt from this: check the column, or fit without a reward model."
        yield Finding("warning", "action", (name,), (), (), message, advice)
    else:
        groups = {user: index[there[index]] for user, index in data.rows.groups.items()}
        users = tuple(
            user for user, index in groups.items() if len(index) >= FEW_ROWS and len(np.unique(action[index])) == 1
        )
        if users:
            message = f"action {name!r} never varies for {who(users)}"
            advice = "What acting adds for them is known only from the others."
            yield Finding("note", "action", (name,), users, (), message, advice)
    away = np.flatnonzero((action == 1.0) & ~free)
    if len(away):
        message = (
            f"action {name!r} is 1 in {rows_of(len(away))} at which the user was not available: {data.rows.where(away)}"
        )
        advice = "One of the two columns is wrong, or they belong to different rows."
        users = data.rows.users_of(away)
        yield Finding("warning", "action", (name,), users, data.rows.numbered(away), message, advice)


CHECKS = (
    Check("cells that cannot be used", unusable),
    Check("too few users or rows", few),
    Check("users in another unit", other_units, lambda data: len(data.rows.groups) > 3, told=("pilot-range",)),
    Check("actions that never vary", actions, lambda data: data.schema.action is not None),
)

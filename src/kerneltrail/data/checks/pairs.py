"""Checks of columns beside each other and rows beside each other: copies, leaks, duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import SAME, Check, Inspection
from kerneltrail.data.checks.rows import Index, who
from kerneltrail.data.checks.values import percent
from kerneltrail.kernels import Array

_BY_DESIGN = 0.2
"""Where more rows than this share their time with another, the order column does not tell rows apart on purpose."""


def leaks(data: Inspection) -> Iterator[Finding]:
    """Covariates that are the target in another form."""
    target = data.schema.target
    for name in data.schema.covariates:
        likeness = data.likeness(name, target)
        if likeness:
            how = f"a copy of target {target!r} (correlation above {SAME})"
            if likeness == "order":
                how = f"target {target!r} on another scale (correlation of ranks above {SAME})"
            message = f"covariate {name!r} is {how}"
            advice = "It gives the answer away: leave it out, unless it is known before the target is."
            yield Finding("warning", "leak", (name,), (), (), message, advice)


def copies(data: Inspection) -> Iterator[Finding]:
    """Covariates that say the same as another covariate."""
    leaking = {name for name in data.schema.covariates if data.likeness(name, data.schema.target)}
    names = [name for name in data.schema.covariates if name not in leaking]
    pairs = {(a, b): likeness for a, b in combinations(names, 2) if (likeness := data.likeness(a, b))}
    for kind, severity in (("same", "warning"), ("order", "note")):
        for group in _groups([pair for pair, likeness in pairs.items() if likeness == kind]):
            what = "are copies of each other" if kind == "same" else "are the same on different scales"
            message = f"{data.listed(group)} {what}"
            advice = "Kernels on one and on the other explain the same, and chains cannot tell them apart: keep one."
            yield Finding(severity, "copy", tuple(group), (), (), message, advice)  # type: ignore[arg-type]


def _groups(pairs: list[tuple[str, str]]) -> list[list[str]]:
    """Names that are linked by pairs, directly or through others."""
    groups: list[list[str]] = []
    for pair in pairs:
        linked = [group for group in groups if set(group) & set(pair)]
        merged = list(dict.fromkeys([*(name for group in linked for name in group), *pair]))
        groups = [*(group for group in groups if group not in linked), merged]
    return groups


def duplicates(data: Inspection) -> Iterator[Finding]:
    """Rows that are there twice, and rows of one user with the same time."""
    rows = data.rows
    if rows.order is None:
        return
    columns = np.column_stack(list(rows.values.values()))
    twice: list[int] = []
    tied: list[int] = []
    for index in rows.groups.values():
        copied, equal = _repeated(rows.order[index], columns[index])
        twice += index[copied].tolist()
        tied += index[equal].tolist()
    order = data.schema.order
    if twice and len(tied) <= _BY_DESIGN * rows.count:
        repeat = "1 row repeats another" if len(twice) == 1 else f"{len(twice)} rows repeat others"
        message = f"{repeat} of the same user, with the same time and values: {rows.where(twice)}"
        advice = "They count twice: leave the copies out."
        yield Finding("warning", "duplicate", (), rows.users_of(twice), rows.numbered(twice), message, advice)
    tied = sorted(set(tied) - set(twice))
    if tied:
        share = len(tied) / rows.count
        many = share > _BY_DESIGN
        have = "1 row has" if len(tied) == 1 else f"{len(tied)} rows ({percent(share)}) have"
        message = f"{have} the same user and the same {order!r} as a row before"
        message += "" if many else f", with other values: {rows.where(tied)}"
        finer = f"If that is not the order in time, give --order a finer column than {order!r}."
        question = finer if many else "Was something recorded twice, or a clock set back?"
        advice = f"They keep the order of the table. {question}"
        severity = "note" if many else "warning"
        yield Finding(severity, "same-time", (order,), rows.users_of(tied), rows.numbered(tied), message, advice)  # type: ignore[arg-type]


def _repeated(order: NDArray[np.generic], columns: Array) -> tuple[Index, Index]:
    """Of a user's rows in time order: those that equal one before in everything, and those that do in their time."""
    tied = np.flatnonzero(order[1:] == order[:-1]) + 1
    seen: set[tuple[object, bytes]] = set()
    copied = []
    for row in range(len(order)) if len(tied) else ():
        key = (order[row].item(), columns[row].tobytes())
        if key in seen:
            copied.append(row)
        seen.add(key)
    return np.array(copied, np.int64), tied


def twins(data: Inspection) -> Iterator[Finding]:
    """Users who have the same rows under two names."""
    known: dict[bytes, list[str]] = {}
    for user in data.users:
        if user.rows > 4:
            known.setdefault(user.X.tobytes() + user.y.tobytes(), []).append(user.name)
    for names in known.values():
        if len(names) > 1:
            index = [row for name in names for row in data.rows.groups[name]]
            message = f"{who(names)} have the same rows"
            advice = "Is it one person under two names? Leave out all but one."
            yield Finding("warning", "twins", (), tuple(names), data.rows.numbered(index), message, advice)


CHECKS = (
    Check("covariates that give the target away", leaks),
    Check("covariates that are copies", copies),
    Check("rows that are there twice", duplicates),
    Check("users who are there twice", twins),
)

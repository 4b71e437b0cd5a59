"""Checks of users: too few, too little of one, another unit, actions that tell nothing, cells that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import who
from kerneltrail.data.checks.values import rows_of
from kerneltrail.kernels.phrases import number

FEW_USERS, FEW_ROWS, SMALL_BATCH = 5, 10, 5
_LITTLE = 0.1
"""A user with less than this share of the usual number of rows has little."""


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
    Check("actions that never vary", actions, lambda data: data.schema.action is not None),
)

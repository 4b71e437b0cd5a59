"""Checks of new users against the pilot users of a model: other units, other ranges, names that are taken."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kerneltrail.data.checks.conversions import MARGIN, fitting
from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import who
from kerneltrail.data.checks.values import percent
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing, number

_MOST = 0.5
"""A user with a larger share of values outside is told."""


def ranges(data: Inspection) -> Iterator[Finding]:
    """Columns of which most values of a user lie outside the range of the pilot users."""
    pilot = data.pilot
    if pilot is None:
        return
    same = {user.name for user in data.users if pilot.has_rows_of(user)}
    for name in data.measured:
        known = pilot.quantiles.get(name)
        if known is None:
            continue
        # Of a model that keeps quantiles, one odd value of a pilot user does not widen the range.
        low, high = (known[1], known[-2]) if len(known) > 2 else known
        margin = MARGIN * (high - low) if high > low else MARGIN * abs(high)
        values = data.rows.values[name]
        outside = (values < low - margin) | (values > high + margin)
        groups = {
            user: index[np.isfinite(values[index])] for user, index in data.rows.groups.items() if user not in same
        }
        users = tuple(user for user, index in groups.items() if len(index) and outside[index].mean() > _MOST)
        if not users:
            continue
        index = np.concatenate([groups[user] for user in users])
        new = values[index]
        all_of = "all users" if len(users) == len(groups) > 1 else who(users)
        share = percent(float(outside[index].mean()))
        message = (
            f"{data.named(name)} of {all_of} lies between {number(float(new.min()))} and {number(float(new.max()))} "
            f"(median {number(float(np.median(new)))}), that of the pilot users between {number(known[0])} and "
            f"{number(known[-1])}; {share} of the rows lie outside of what is usual there"
        )
        advice = (
            f"Is it the same unit?{would_fit(new, known)} If the values are right, predictions there say little: they "
            "fall back to the prior, with its uncertainty."
        )
        yield Finding(
            "warning", "pilot-range", (name,), users, data.rows.numbered(index[outside[index]]), message, advice
        )


def would_fit(new: Array, known: tuple[float, ...]) -> str:
    """A sentence on changes of unit that would bring new values to where the pilot users' are; empty for none."""
    guesses = conversions(new, known)
    return f" They would fit if {listing(guesses[:2], 'or')}." if guesses else ""


def conversions(new: Array, known: tuple[float, ...]) -> list[str]:
    """Changes of unit that would bring new values to where the pilot users' are."""
    if len(known) < 7:
        return []
    _, low, tenth, _, ninetieth, high, _ = known
    return fitting(new, (low, tenth, ninetieth, high), "the pilot users'")


def names(data: Inspection) -> Iterator[Finding]:
    """Users with the name of a pilot user."""
    pilot = data.pilot
    if pilot is None:
        return
    taken = {user.name: pilot.has_rows_of(user) for user in data.users if user.name in pilot.names}
    other = tuple(name for name, same in taken.items() if same is False)
    if other:
        have = "has the name of a pilot user" if len(other) == 1 else "have the names of pilot users"
        message = f"{who(other)} {have}, but other rows"
        advice = (
            "If they are other people, rename them. If they are the same, the model has learnt from a part of these "
            "rows, or from batches cut otherwise, and predicts them too well."
        )
        yield Finding("warning", "pilot-name", (), other, (), message, advice)
    known = tuple(name for name, same in taken.items() if same is not False)
    if known:
        message = f"{who(known)} {'is a pilot user' if len(known) == 1 else 'are pilot users'} of this model"
        advice = "The model has learnt from these rows: how well it predicts them says nothing about new users."
        yield Finding("note", "pilot-user", (), known, (), message, advice)


CHECKS = (
    Check("columns outside the pilot users' range", ranges),
    Check("names of pilot users", names),
)

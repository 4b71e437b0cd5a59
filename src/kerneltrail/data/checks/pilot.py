"""Checks of new users against the pilot users of a model: other units, other ranges, names that are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.rows import who
from kerneltrail.data.checks.values import percent
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing, number

_MARGIN = 0.1
"""How far outside the pilot users' range, in parts of it, a value still counts as within."""
_MOST = 0.5
"""A user with a larger share of values outside is told."""

CONVERSIONS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("these were °F and the pilot users' were °C", lambda x: (x - 32.0) / 1.8),
    ("these were °C and the pilot users' were °F", lambda x: 1.8 * x + 32.0),
    ("these were per cent and the pilot users' were shares", lambda x: x / 100.0),
    ("these were shares and the pilot users' were per cent", lambda x: 100.0 * x),
    ("these were in thousandths of the pilot users' unit", lambda x: x / 1000.0),
    ("these were in thousands of the pilot users' unit", lambda x: 1000.0 * x),
    ("these were minutes and the pilot users' were hours", lambda x: x / 60.0),
    ("these were hours and the pilot users' were minutes", lambda x: 60.0 * x),
    ("these were pounds and the pilot users' were kilograms", lambda x: x / 2.20462),
    ("these were kilograms and the pilot users' were pounds", lambda x: 2.20462 * x),
    ("these were counts and the pilot users' were logarithms", lambda x: np.log(np.maximum(x, 0.0) + 0.5)),
    ("these were logarithms and the pilot users' were counts", lambda x: np.exp(np.minimum(x, 100.0)) - 0.5),
)
"""What may have happened between two tables, and how it would be undone."""


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
        margin = _MARGIN * (high - low) if high > low else _MARGIN * abs(high)
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
    if len(known) < 7 or known[4] <= known[2]:
        return []
    _, low, tenth, _, ninetieth, high, _ = known
    margin, width = _MARGIN * (high - low), ninetieth - tenth
    fitting = []
    for words, convert in CONVERSIONS:
        back = convert(new)
        spread = float(np.quantile(back, 0.9) - np.quantile(back, 0.1))
        inside = float(np.mean((back >= low - margin) & (back <= high + margin)))
        if inside > 0.9 and tenth <= np.median(back) <= ninetieth and width / 3.0 < spread < 3.0 * width:
            fitting.append(words)
    return fitting


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

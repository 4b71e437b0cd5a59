"""Checks of the probabilities with which actions were drawn: certain ones, and those that the actions contradict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.checks.findings import Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.values import percent, rows_of
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import listing, number

FALSE_ALARMS = 1e-6
"""At most so often a table is told whose actions were drawn with the stated probabilities: both rules are bounds."""
_LEVELS = 10
"""Of more different probabilities than this, neighbouring ones are taken together."""
_SHOWN = 3


@dataclass(frozen=True)
class Level:
    """Rows with one probability, or with neighbouring ones.

    Attributes:
        low, high: smallest and largest probability.
        rows: how many.
        expected: mean probability.
        acted: share of rows with the action.
    """

    low: float
    high: float
    rows: int
    expected: float
    acted: float

    @classmethod
    def of(cls, chance: Array, action: Array) -> Level:
        """Of some rows."""
        low, high = float(chance.min()), float(chance.max())
        return cls(low, high, len(chance), float(chance.mean()), float(action.mean()))

    @property
    def log_bound(self) -> float:
        """Logarithm of what the probability of so many actions, or so few, is at most (Chernoff's bound, both sides).

        It holds whatever the probabilities are that have this mean: Hoeffding's inequality for unequal chances.
        """
        x, p = self.acted, self.expected
        parts = [a * np.log(a / b) for a, b in ((x, p), (1.0 - x, 1.0 - p)) if a > 0.0]
        return float(np.log(2.0) - self.rows * sum(parts))

    def __str__(self) -> str:
        stated = number(self.low) if self.low == self.high else f"{number(self.low)} to {number(self.high)}"
        return f"in {percent(self.acted)} of {rows_of(self.rows)} with {stated}"


def levels(chance: Array, action: Array) -> list[Level]:
    """Rows by their probability, or by tenths of the rows in order of it."""
    stated, level = np.unique(np.round(chance, 9), return_inverse=True)
    if len(stated) > _LEVELS:
        ends = np.quantile(chance, np.arange(1, _LEVELS) / _LEVELS)
        level = np.searchsorted(ends, chance, side="right")
    return [Level.of(chance[level == i], action[level == i]) for i in np.unique(level)]


def contradicted(chance: Array, action: Array) -> list[Level]:
    """All rows, or those levels, whose share of actions the probabilities do not explain."""
    every, parts = Level.of(chance, action), levels(chance, action)
    sure = np.log(0.5 * FALSE_ALARMS / (1 + len(parts)))
    if every.log_bound < sure:
        return [every]
    return [each for each in parts if each.log_bound < sure]


def log_ratio(chance: Array, action: Array) -> float:
    """How many times more probable the actions are by 1 − p than by p, as a logarithm.

    If they were drawn with p, the ratio is 1 on average, also where p depends on what was drawn before: it is above c
    at most once in c tables (Markov's inequality).
    """
    return float(np.sum((1.0 - 2.0 * action) * np.log(chance / (1.0 - chance))))


def probabilities(data: Inspection) -> Iterator[Finding]:
    """Probabilities of 0 or 1, and probabilities that the actions contradict: in all rows, or in those of a level."""
    name, column = data.schema.probability, data.schema.action
    if name is None:
        return
    chance, free = data.rows.values[name], data.available
    certain = np.flatnonzero(((chance == 0.0) | (chance == 1.0)) & free)
    if len(certain):
        message = f"probability {name!r} is 0 or 1 in {rows_of(len(certain))}: {data.rows.where(certain)}"
        advice = "Nothing was randomised there. Is it per cent, a rounded value, or the action itself?"
        if data.schema.availability is None:
            advice += " If the user was not available then, name that column with --availability."
        users = data.rows.users_of(certain)
        yield Finding("warning", "probability", (name,), users, data.rows.numbered(certain), message, advice)
    if column is None:
        return
    action = data.rows.values[column]
    drawn: NDArray[np.bool_] = np.isfinite(action) & (chance > 0.0) & (chance < 1.0) & free
    if not drawn.any():
        return
    chance, action = chance[drawn], action[drawn]
    odd, other = contradicted(chance, action), log_ratio(chance, action) > np.log(2.0 / FALSE_ALARMS)
    if odd or other:
        parts = levels(chance, action) if other and sum(each.rows for each in odd) < len(chance) else odd
        message = _said(column, name, parts, len(chance))
        advice = "That is no chance. Is it the probability of another action, or of not acting?"
        if other and not contradicted(1.0 - chance, action):
            advice = "That is no chance, and 1 less the probability fits: it is that of not acting."
        yield Finding("warning", "probability", (name,), (), (), message, advice)


def _said(action: str, probability: str, odd: Sequence[Level], rows: int) -> str:
    if len(odd) == 1 and odd[0].rows == rows:
        (every,) = odd
        return (
            f"action {action!r} is 1 in {percent(every.acted)} of the rows, where probability {probability!r} says "
            f"{percent(every.expected)}"
        )
    shown = sorted(sorted(odd, key=lambda each: each.log_bound)[:_SHOWN], key=lambda each: each.low)
    return f"action {action!r} does not follow probability {probability!r}: it is 1 {listing(map(str, shown))}"


CHECKS = (Check("wrong probabilities", probabilities, lambda data: data.schema.probability is not None),)

"""Causal excursion effects as they were estimated: numbers with their errors, a table, and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from kerneltrail.data.frames import frame_like
from kerneltrail.errors import DataError
from kerneltrail.evaluation.tables import csv_text
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import counted, limit, listing, number, rounded
from kerneltrail.names import nearest

INTERCEPT = "acting"
"""The name of the effect where every moderator is 0: of acting itself, where there is no moderator."""
BASELINE = "(intercept)"
"""The name of the outcome where nobody acts and every control is 0."""

COLUMNS = ("name", "estimate", "standard_error", "lower", "upper", "p_value")


@dataclass(frozen=True)
class Estimate:
    """One number with its uncertainty.

    Attributes:
        value: the estimate.
        standard_error: of it.
        lower, upper: limits of its interval.
        p_value: two-sided, of no effect.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    p_value: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True)
class ExcursionEffects:
    """What acting changes at the next outcome, on average over the participants' histories: method (64).

    Attributes:
        names: of the effects: `acting`, then each moderator.
        estimates: of what acting adds where every moderator is 0, then of how that changes per unit of each.
        covariance: of the estimates, over participants.
        degrees: degrees of freedom of the t distribution behind intervals and p values.
        level: of the intervals.
        n: participants with at least one row.
        rows: that were used: somebody could act, and nothing is missing.
        unavailable: rows at which nobody could act; they are left out.
        missing: of the rows at which somebody could act, how many lack the outcome or a covariate, by column.
        numerator: the probability p̃ towards which rows are weighted; None if it differs between rows.
        controls: names of what explains the outcome without acting, and their coefficients.
    """

    names: tuple[str, ...]
    estimates: Array
    covariance: Array
    degrees: int
    level: float
    n: int
    rows: int
    unavailable: int
    missing: Mapping[str, int]
    numerator: float | None
    controls: Mapping[str, float]

    @property
    def standard_errors(self) -> Array:
        """Of the estimates, clustered by participant."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def _half(self) -> float:
        return float(scipy.special.stdtrit(self.degrees, 0.5 + self.level / 2))

    @property
    def intervals(self) -> Array:
        """Lower and upper limit of each, (p, 2)."""
        half = self._half * self.standard_errors
        return np.column_stack([self.estimates - half, self.estimates + half])

    @property
    def p_values(self) -> Array:
        """Two-sided, of each effect being 0."""
        return _p_values(self.estimates, self.standard_errors, self.degrees)

    def combined(self, weights: Mapping[str, float]) -> Estimate:
        """A weighted sum of the effects, such as the effect of acting at one value of a moderator.

        Raises:
            DataError: for a name that is none of `names`.
        """
        for name in weights:
            if name not in self.names:
                raise DataError(f"there is no effect {name!r}; {nearest(name, self.names, 'there are')}")
        row = np.array([weights.get(name, 0.0) for name in self.names])
        value, error = float(row @ self.estimates), float(np.sqrt(row @ self.covariance @ row))
        half = self._half * error
        chance = _p_values(np.array([value]), np.array([error]), self.degrees)
        return Estimate(value, error, value - half, value + half, float(chance[0]))

    def at(self, **moderators: float) -> Estimate:
        """What acting adds where the moderators have these values; those that are not named are 0."""
        return self.combined({INTERCEPT: 1.0, **moderators})

    def __getitem__(self, name: str) -> Estimate:
        return self.combined({name: 1.0})

    def table(self) -> list[dict[str, Any]]:
        """A row for each effect."""
        columns = [self.estimates, self.standard_errors, *self.intervals.T, self.p_values]
        return [
            {"name": name, **{key: float(column[place]) for key, column in zip(COLUMNS[1:], columns, strict=True)}}
            for place, name in enumerate(self.names)
        ]

    def to_frame(self) -> Any:
        """The table as a frame of the first library that is installed."""
        rows = self.table()
        return frame_like(None, {name: [row[name] for row in rows] for name in COLUMNS})

    def to_csv(self) -> str:
        """The table as a CSV file's text."""
        return csv_text(COLUMNS, self.table())

    def left_out(self) -> str:
        """What was not used, in a sentence; empty if everything was."""
        parts = [f"{counted(count, 'row')} without {_named(name)}" for name, count in self.missing.items() if count]
        if self.unavailable:
            parts.append(f"{counted(self.unavailable, 'row')} at which nobody could act")
        return f"Left out: {listing(parts)}." if parts else ""

    def words(self, outcome: str = "the outcome", unit: str = "") -> list[str]:
        """The effects in sentences, each with its interval and in the outcome's unit."""
        after, share = f" {unit}" if unit else "", f"{100 * self.level:g} % interval"
        lines = []
        for name, row in zip(self.names, self.table(), strict=True):
            low, high = row["lower"], row["upper"]
            width = high - low
            size = (
                f"{rounded(row['estimate'], width)}{after} ({share} {limit(low, width)} to {limit(high, width)}; "
                f"p {_p_text(row['p_value'])})"
            )
            sure = "" if low > 0 or high < 0 else " The data do not tell whether it is above or below 0."
            if name != INTERCEPT:
                lines.append(f"Per unit of {name} the effect of acting changes by {size}.{sure}")
            elif len(self.names) == 1:
                lines.append(f"Acting changed {outcome} by {size}, on average over decisions.{sure}")
            else:
                zero = listing(f"{each} is 0" for each in self.names[1:])
                lines.append(f"Where {zero}, acting changed {outcome} by {size}.{sure}")
        lines.append(f"{counted(self.n, 'participant')}, {counted(self.rows, 'decision')} with an outcome.")
        return [*lines, *([self.left_out()] if self.left_out() else [])]


def _named(column: str) -> str:
    return "an outcome" if column == "outcome" else repr(column)


def _p_values(values: Array, errors: Array, degrees: int) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):  # an effect that was estimated without any error
        ratio = np.where(errors > 0, np.abs(values) / errors, np.where(values == 0, 0.0, np.inf))
    return 2.0 * scipy.special.stdtr(degrees, -ratio)


def _p_text(chance: float) -> str:
    return "below 0.001" if chance < 0.001 else number(round(chance, 3))

"""What a model keeps of its pilot users' columns and rows, so that new users can be compared with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail.data.checks.findings import QUANTILES
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.hours import DAY, is_hour
from kerneltrail.data.schema import Schema
from kerneltrail.data.user import User
from kerneltrail.kernels import Array

ROOM = 0.5
"""How far outside the pilot users' range, in parts of it, a value is plausible: new people may be somewhat unlike."""


def quantiles_of_columns(schema: Schema, users: Sequence[User]) -> dict[str, list[float] | dict[str, int]]:
    """Of target and covariates over users in data units, by column: quantiles (`QUANTILES`), or rows by level."""
    if not any(user.rows for user in users):
        return {}
    columns = {name: np.concatenate([user.X[:, i] for user in users]) for i, name in enumerate(schema.covariates)}
    columns[schema.target] = np.concatenate([user.y for user in users])
    kept: dict[str, list[float] | dict[str, int]] = {}
    for name, values in columns.items():
        if name in schema.levels:
            kept[name] = {level: int(np.sum(values == code)) for code, level in enumerate(schema.levels[name])}
            continue
        with np.errstate(all="ignore"):  # differences of huge numbers overflow; such a column says nothing
            quantiles = np.quantile(values, QUANTILES)
        if np.isfinite(quantiles).all():
            kept[name] = quantiles.tolist()
    return kept


def _whole(values: Mapping[str, Any]) -> bool:
    return all(isinstance(value, int) for value in values.values())


@dataclass(frozen=True)
class PilotSummary:
    """The pilot users of a model, in a few numbers.

    Attributes:
        schema: how they were read and scaled.
        names: of the users.
        quantiles: of their columns, at `QUANTILES`; of an older model only smallest and largest value, if those.
        digests: of their rows, by name; none of an older model.
        levels: rows by level, of their categorical columns; none of an older model.
    """

    schema: Schema
    names: tuple[str, ...]
    quantiles: Mapping[str, tuple[float, ...]] = field(default_factory=FrozenDict)
    digests: Mapping[str, str] = field(default_factory=FrozenDict)
    levels: Mapping[str, Mapping[str, int]] = field(default_factory=FrozenDict)

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], provenance: Mapping[str, Any]) -> PilotSummary:
        """From what a model's file says; files of before do not say all of it."""
        stored, digests = provenance.get("columns"), provenance.get("rows")
        quantiles: dict[str, tuple[float, ...]] = {}
        levels: dict[str, FrozenDict[int]] = {}
        if schema.scaler is not None and schema.scaling == "group":
            scaler = schema.scaler
            ranges = zip(scaler.covariates, scaler.low, scaler.high, strict=True)
            quantiles = {name: (low, high) for name, low, high in ranges if name not in schema.levels}
        for name, values in stored.items() if isinstance(stored, Mapping) else ():
            if isinstance(values, list) and len(values) == len(QUANTILES) and np.all(np.isfinite(values)):
                quantiles[name] = tuple(map(float, values))
            elif isinstance(values, Mapping) and tuple(values) == schema.levels.get(name) and _whole(values):
                levels[name] = FrozenDict(values)
        return cls(
            schema,
            tuple(names),
            FrozenDict(quantiles),
            FrozenDict(
                {str(name): str(digest) for name, digest in digests.items()} if isinstance(digests, Mapping) else {}
            ),
            FrozenDict(levels),
        )

    def range(self, column: str) -> tuple[float, float] | None:
        """Smallest and largest value of the pilot users."""
        values = self.quantiles.get(column)
        return None if values is None else (values[0], values[-1])

    def plausible(self, column: str, *, positive: bool = True) -> tuple[float, float] | None:
        """Between which values those of new people lie; None where that is not known.

        Half the pilot users' range is allowed on either side of it. The hour of the day, which its name tells and not
        its unit, lies between 0 and 24; of a categorical column there are no other codes than those of its levels. A
        trial refuses to decide on other values.

        Args:
            column: covariate or target.
            positive: whether nothing is plausible below 0 where no pilot user was; else only where somebody was at 0,
                as counts are: a temperature that was above 0 in summer falls below.
        """
        if column in self.schema.levels:
            return 0.0, len(self.schema.levels[column]) - 1.0
        known = self.range(column)
        if known is None or not known[1] > known[0]:
            return None
        low, high = known
        if is_hour(column, low, high):
            return DAY
        room = ROOM * (high - low)
        ends_at_0 = low >= 0.0 if positive else low == 0.0
        return max(low - room, 0.0) if ends_at_0 else low - room, high + room

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """What is plausible of all covariates, (d,) each, infinite where it is not known: others are told."""
        pairs = [self.plausible(name, positive=False) or (-np.inf, np.inf) for name in self.schema.covariates]
        low, high = np.array(pairs).T
        return low, high

    @cached_property
    def plausible_target(self) -> tuple[float, float] | None:
        """`plausible` of the target."""
        return self.plausible(self.schema.target)

    def usual(self, column: str) -> float:
        """What is usual among the pilot users, in data units.

        Of numbers their median; the middle of what is known of them in an older model, or of the scaled range. Of a
        categorical column the code of the level with most rows; of an older model, which kept none, of the middle one.
        """
        levels = self.schema.levels.get(column)
        if levels is not None:
            rows = self.levels.get(column)
            return float(round((len(levels) - 1) / 2) if rows is None else np.argmax(list(rows.values())))
        values = self.quantiles.get(column)
        if values is not None:
            return float(np.median(values))  # the quantiles lie evenly around it
        return 0.5 if self.schema.scaler is None else self.schema.scaler.location(column, 0.5)

    def has_rows_of(self, user: User) -> bool | None:
        """Whether a user in data units has the rows of the pilot user of that name; None if nobody knows."""
        known = self.digests.get(user.name)
        return None if known is None else known == self.schema.scaler_for(user).apply(user).rows_digest

"""What a model keeps of its pilot users' columns and rows, so that new users can be compared with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kerneltrail.data.checks.findings import QUANTILES
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.schema import Schema
from kerneltrail.data.user import User


def quantiles_of_columns(schema: Schema, users: Sequence[User]) -> dict[str, list[float]]:
    """Quantiles (`QUANTILES`) of target and covariates over users in data units, by column; levels have none."""
    if not any(user.rows for user in users):
        return {}
    columns = {name: np.concatenate([user.X[:, i] for user in users]) for i, name in enumerate(schema.covariates)}
    columns[schema.target] = np.concatenate([user.y for user in users])
    with np.errstate(all="ignore"):  # differences of huge numbers overflow; such a column says nothing
        quantiles = {
            name: np.quantile(values, QUANTILES) for name, values in columns.items() if name not in schema.levels
        }
    return {name: values.tolist() for name, values in quantiles.items() if np.isfinite(values).all()}


@dataclass(frozen=True)
class PilotSummary:
    """The pilot users of a model, in a few numbers.

    Attributes:
        schema: how they were read and scaled.
        names: of the users.
        quantiles: of their columns, at `QUANTILES`; of an older model only smallest and largest value, if those.
        digests: of their rows, by name; none of an older model.
    """

    schema: Schema
    names: tuple[str, ...]
    quantiles: Mapping[str, tuple[float, ...]] = field(default_factory=FrozenDict)
    digests: Mapping[str, str] = field(default_factory=FrozenDict)

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], provenance: Mapping[str, Any]) -> PilotSummary:
        """From what a model's file says; files of before do not say all of it."""
        stored, digests = provenance.get("columns"), provenance.get("rows")
        quantiles: dict[str, tuple[float, ...]] = {}
        if schema.scaler is not None and schema.scaling == "group":
            scaler = schema.scaler
            ranges = zip(scaler.covariates, scaler.low, scaler.high, strict=True)
            quantiles = {name: (low, high) for name, low, high in ranges if name not in schema.levels}
        for name, values in stored.items() if isinstance(stored, Mapping) else ():
            if isinstance(values, list) and len(values) == len(QUANTILES) and np.all(np.isfinite(values)):
                quantiles[name] = tuple(map(float, values))
        return cls(
            schema,
            tuple(names),
            FrozenDict(quantiles),
            FrozenDict(
                {str(name): str(digest) for name, digest in digests.items()} if isinstance(digests, Mapping) else {}
            ),
        )

    def range(self, column: str) -> tuple[float, float] | None:
        """Smallest and largest value of the pilot users."""
        values = self.quantiles.get(column)
        return None if values is None else (values[0], values[-1])

    def usual(self, column: str) -> float:
        """The pilot users' median; the middle of what is known of them in an older model, or of the scaled range."""
        values = self.quantiles.get(column)
        if values is not None:
            return float(np.median(values))  # the quantiles lie evenly around it
        return 0.5 if self.schema.scaler is None else self.schema.scaler.location(column, 0.5)

    def has_rows_of(self, user: User) -> bool | None:
        """Whether a user in data units has the rows of the pilot user of that name; None if nobody knows."""
        known = self.digests.get(user.name)
        return None if known is None else known == self.schema.scaler_for(user).apply(user).rows_digest

"""The columns of a table and how they are read: what a model keeps so that a new user's table means the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kerneltrail.data.batching import Batching
from kerneltrail.data.columns import text_of
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.scaling import Scaler, Scaling, TargetScaling
from kerneltrail.data.table import MISSING, check_marks
from kerneltrail.data.times import check_format
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array, Priors
from kerneltrail.names import nearest, unique
from kerneltrail.store.validate import plain

Policy = str | float
"""What to do about a missing value: ``error``, ``drop`` the row, or fill in a number (or a level) stated here."""

LATER = ("time_format", "delimiter", "decimal")
"""Fields that stored schemas of before do not have."""


@dataclass(frozen=True)
class Schema:
    """Which columns hold what, how batches are cut, what happens to missing values, and the scaler in use.

    Attributes:
        user: column that names the user.
        order: column that puts a user's rows in time order.
        target: column to be predicted.
        covariates: columns to predict it from.
        batching: how rows are cut into batches.
        action: column of the action, 0 or 1, if there is one.
        availability: column that says whether the user was available, 0 or 1, if there is one.
        probability: column of the action's randomisation probability, if there is one.
        levels: for each categorical covariate its levels; a level becomes its position, 0, 1, …, in this order, so
            neighbours in the list are what a kernel takes to be similar.
        missing: policy by column, for those where a missing value is not an error.
        available_only: whether rows at which the user was not available are dropped.
        scaling: ``group`` (one scaler for everybody), ``user`` (each user's own) or ``none``.
        target_scaling: ``none`` or ``standard``.
        units: unit by covariate or target, for people to read.
        labels: what people call a column, where that is not its name; for words and figures.
        value_names: for a covariate of numbers, what some of its values are called, such as 0 morning and 1 evening:
            pairs (value, name), given as a mapping or as pairs; for words and figures.
        scaler: the group's fitted scaler; None before fitting, and under ``user`` scaling.
        time_format: how times in the order column are written, if not as ISO 8601: as ``datetime.strptime`` reads them,
            such as ``%d/%m/%Y %H:%M``, or ``epoch-seconds`` or ``epoch-milliseconds``.
        delimiter, decimal: how a text file is written, as in `read_table`.
    """

    user: str
    order: str
    target: str
    covariates: tuple[str, ...]
    batching: Batching
    action: str | None = None
    availability: str | None = None
    probability: str | None = None
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)
    missing: Mapping[str, Policy] = field(default_factory=FrozenDict)
    available_only: bool = False
    scaling: Scaling = "group"
    target_scaling: TargetScaling = "none"
    units: Mapping[str, str] = field(default_factory=FrozenDict)
    scaler: Scaler | None = None
    time_format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    labels: Mapping[str, str] = field(default_factory=FrozenDict)
    value_names: Mapping[str, tuple[tuple[float, str], ...]] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if isinstance(self.covariates, str):
            raise DataError(f"covariates must be a list of names, such as [{self.covariates!r}]")
        put(self, "covariates", tuple(self.covariates))
        put(self, "levels", FrozenDict({name: _levels(name, levels) for name, levels in self.levels.items()}))
        put(self, "missing", FrozenDict(self.missing))
        put(self, "units", FrozenDict(self.units))
        put(self, "labels", FrozenDict({name: _label(name, label) for name, label in self.labels.items()}))
        value_names = {name: _value_names(name, names) for name, names in self.value_names.items()}
        put(self, "value_names", FrozenDict(value_names))
        if not self.covariates:
            raise DataError("at least one covariate is needed")
        unique(self.covariates, "covariates")
        for role, name in (("target", self.target), ("user", self.user)):
            if name in self.covariates:
                raise DataError(f"column {name!r} cannot be both the {role} and a covariate")
        if self.target in (self.user, self.order):
            raise DataError(f"column {self.target!r} cannot be the target and also name or order the rows")
        if self.scaling not in ("group", "user", "none"):
            raise DataError(f"scaling must be 'group', 'user' or 'none', got {self.scaling!r}")
        if self.target_scaling not in ("none", "standard"):
            raise DataError(f"target_scaling must be 'none' or 'standard', got {self.target_scaling!r}")
        if self.available_only and self.availability is None:
            raise DataError("available_only=True needs the availability column to be named")
        if self.scaler is not None and self.scaler.covariates != self.covariates:
            raise DataError(f"the scaler is for {', '.join(self.scaler.covariates)}, not {', '.join(self.covariates)}")
        check_marks(self.delimiter, self.decimal)
        check_format(self.time_format)
        self._check_names(self.levels, self.covariates, "categorical")
        self._check_names(self.units, (*self.covariates, self.target), "units")
        self._check_names(self.missing, self.values, "missing")
        self._check_names(self.labels, (*self.values, self.user, self.order), "labels")
        self._check_names(self.value_names, self.covariates, "value_names")
        for name in self.value_names:
            if name in self.levels:
                raise DataError(f"value_names= names values of {name!r}, which has levels with names (categorical=)")
        for name, policy in self.missing.items():
            self._check_policy(name, policy)

    @staticmethod
    def _check_names(given: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        names = set(known)
        for name in given:
            if name not in names:
                raise DataError(f"{what}= names {name!r}, which is not in use; {nearest(name, known, 'in use are')}")

    def _check_policy(self, name: str, policy: Policy) -> None:
        if policy in ("error", "drop"):
            return
        allowed = "'error' or 'drop'"
        if name in self.levels:
            if policy in self.levels[name]:
                return
            allowed += f", or one of its levels ({', '.join(self.levels[name])})"
        elif name in self.covariates:
            if isinstance(policy, int | float) and not isinstance(policy, bool) and math.isfinite(policy):
                return
            allowed += ", or a finite number to fill in"
        raise DataError(f"the policy for missing values of {name!r} must be {allowed}, got {policy!r}")

    @property
    def values(self) -> tuple[str, ...]:
        """The columns in which a value can be missing: covariates, target, and the optional ones in use."""
        optional = (self.action, self.availability, self.probability)
        return (*self.covariates, self.target, *(name for name in optional if name is not None))

    @property
    def roles(self) -> frozenset[str]:
        """All columns that have a role."""
        batch = () if self.batching.column is None else (self.batching.column,)
        return frozenset((self.user, self.order, *self.values, *batch))

    def policy(self, column: str) -> Policy:
        """What happens to a missing value in that column."""
        return self.missing.get(column, "error")

    def unit(self, column: str) -> str:
        """The unit of a covariate or of the target; empty if it has none."""
        return self.units.get(column, "")

    def label(self, column: str) -> str:
        """What people call a column: its label, or its name."""
        return self.labels.get(column, column)

    def names_of(self, column: str) -> dict[float, str]:
        """Names of a covariate's values: those of a categorical one's codes 0, 1, …, or those given; else none."""
        if column in self.levels:
            return {float(code): level for code, level in enumerate(self.levels[column])}
        return dict(self.value_names.get(column, ()))

    def name_of(self, column: str, value: float) -> str | None:
        """What a covariate's value is called, if it has a name; to rounding, as values have been scaled and back."""
        names = self.names_of(column)
        nearest_value = min(names, key=lambda named: abs(named - value), default=math.inf)
        return names[nearest_value] if math.isclose(nearest_value, value, rel_tol=1e-9, abs_tol=1e-9) else None

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Ranges known without looking at rows: the codes of declared levels."""
        return {name: (0.0, float(len(levels) - 1)) for name, levels in self.levels.items()}

    def fitted(self, users: Sequence[User]) -> Schema:
        """The schema with the scaler of these users, who are in data units; without one under ``user`` scaling."""
        if self.scaling == "user":
            return replace(self, scaler=None)
        return replace(self, scaler=self._fit(users))

    def scaler_for(self, user: User) -> Scaler:
        """The scaler of a user in data units: the group's, or one fitted on the user's own rows."""
        if self.scaling == "user":
            return self._fit([user]) if user.rows else Scaler.identity(self.covariates)
        return Scaler.identity(self.covariates) if self.scaler is None else self.scaler

    def _fit(self, users: Sequence[User]) -> Scaler:
        scaled = self.scaling != "none"
        return Scaler.fit(users, covariates=scaled, target=self.target_scaling, ranges=self.ranges)

    @property
    def knows_ranges(self) -> bool:
        """Whether the scaler says which values of covariates were met when it was fitted; unscaled, nobody does."""
        return self.scaler is not None and self.scaling == "group"

    def outside(self, X: Array) -> list[tuple[str, ...]]:
        """For each row, in data units, the covariates with a value that nobody had when the scaler was fitted.

        Such a value is smaller than the smallest or larger than the largest. Where ranges are not known, none is.
        """
        if self.scaler is None or not self.knows_ranges:
            return [()] * len(X)
        low, high = np.array(self.scaler.low), np.array(self.scaler.high)
        beyond = (low > X) | (high < X)
        return [tuple(itertools.compress(self.covariates, row)) for row in beyond.tolist()]

    def with_missing(self, policy: Policy) -> Schema:
        """The schema with a policy for the columns that have none; ``error`` takes that of all others back."""
        given = {} if policy == "error" else {**dict.fromkeys(self.values, policy), **self.missing}
        return replace(self, missing=given)

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a model file's header; of `LATER` only what is set, as in files of before."""
        stored = {**plain(self), "batching": self.batching.to_json()}
        return {key: value for key, value in stored.items() if key not in LATER or value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Schema:
        """The schema that `to_json` described."""
        try:
            scaler = None if stored["scaler"] is None else Scaler.from_json(stored["scaler"])
            return cls(**{**stored, "batching": Batching.from_json(stored["batching"]), "scaler": scaler})
        except (KeyError, TypeError, AttributeError) as problem:
            raise DataError(f"not a stored schema: {problem!r}") from None


def default_priors(schema: Schema) -> Priors:
    """The priors for data that are read so: those for covariates scaled to [0, 1] and a standardised target.

    For a target as it is they are the paper's for HeartSteps, and for covariates as they are the synthetic ones.
    """
    if schema.scaling == "none":
        return Priors.synthetic()
    return Priors.standardised() if schema.target_scaling == "standard" else Priors.heartsteps()


def _levels(name: str, levels: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise DataError(f"the levels of {name!r} must be a list, such as ['still', 'active']")
    texts = tuple(text_of(level) for level in levels)
    if len(texts) < 2 or len(set(texts)) != len(texts):
        raise DataError(f"the levels of {name!r} must be at least two, all different, got {list(levels)}")
    for text in texts:
        if text.lower() in MISSING:
            raise DataError(
                f"level {text!r} of {name!r} is how a CSV file says that a value is missing; name it otherwise"
            )
    return texts


def _label(name: str, label: Any) -> str:
    if not isinstance(label, str) or not label.strip() or "\n" in label:
        raise DataError(f"the label of {name!r} must be a text on one line, got {label!r}")
    return label.strip()


def _value_names(name: str, names: Any) -> tuple[tuple[float, str], ...]:
    """Pairs (value, name), sorted by value."""
    expected = f"the names of the values of {name!r} must be given by number, such as {{0: 'morning', 1: 'evening'}}"
    try:
        pairs = [(float(value), called) for value, called in dict(names).items()]
    except (TypeError, ValueError):
        raise DataError(f"{expected}, got {names!r}") from None
    texts = {called.strip() for _, called in pairs if isinstance(called, str)} - {""}
    if not pairs or len(texts) != len(pairs) or not all(math.isfinite(value) for value, _ in pairs):
        raise DataError(f"{expected}, all different, got {names!r}")
    return tuple(sorted((value, called.strip()) for value, called in pairs))

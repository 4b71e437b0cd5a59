"""Scaling: covariates to [0, 1] by their smallest and largest value, the target by shift and scale; and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.data.arrays import deviations, read_numbers
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import index_of, unique
from kerneltrail.store.validate import plain

Scaling = Literal["group", "user", "none"]
TargetScaling = Literal["none", "standard"]


@dataclass(frozen=True)
class Scaler:
    """z = (x - low) / (high - low) for each covariate, and (y - shift) / scale for the target.

    Values outside [low, high] fall outside [0, 1]; nothing is clipped. A covariate that was constant when fitted has
    its range taken as 1, so the constant maps to 0 and every other value stays apart: the map is always invertible.

    >>> scaler = Scaler(("hour",), (8.0,), (20.0,))
    >>> scaler.transform([[14.0]]).item(), scaler.length("hour", 0.25), scaler.location("hour", 0.25)
    (0.5, 3.0, 11.0)
    """

    covariates: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "covariates", tuple(self.covariates))
        unique(self.covariates, "scaler")
        for label in ("low", "high"):
            put(self, label, tuple(float(value) for value in getattr(self, label)))
        put(self, "shift", float(self.shift))
        put(self, "scale", float(self.scale))
        if not len(self.covariates) == len(self.low) == len(self.high):
            raise DataError(f"a scaler of {len(self.covariates)} covariates needs as many lows and highs")
        for name, low, high in zip(self.covariates, self.low, self.high, strict=True):
            if not (math.isfinite(low) and low <= high and math.isfinite(high - low)):
                raise DataError(f"covariate {name!r} cannot be scaled from [{low}, {high}] to [0, 1]")
        if not (math.isfinite(self.shift) and math.isfinite(self.scale) and self.scale > 0.0):
            raise DataError(
                f"the target's shift must be finite and its scale above 0, got {self.shift} and {self.scale}"
            )

    @classmethod
    def identity(cls, covariates: Sequence[str]) -> Scaler:
        """The scaler that changes nothing, bit for bit."""
        names = tuple(covariates)
        return cls(names, (0.0,) * len(names), (1.0,) * len(names))

    @classmethod
    def fit(
        cls,
        users: User | Iterable[User],
        *,
        covariates: bool = True,
        target: TargetScaling = "none",
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Scaler:
        """The scaler of one user's rows, or of a group's together.

        Args:
            users: whose rows say what low, high, shift and scale are.
            covariates: whether covariates are scaled at all.
            target: ``standard`` shifts the target by its mean and divides by its standard deviation (1 if constant).
            ranges: (low, high) known beforehand for some covariates, such as the codes of declared levels.
        """
        group = [users] if isinstance(users, User) else list(users)
        if not group or not any(user.rows for user in group):
            raise DataError("a scaler needs at least one row to be fitted on")
        names = group[0].covariates
        for user in group:
            if user.covariates != names:
                raise DataError(f"users {group[0].name!r} and {user.name!r} have different covariates")
        X = np.concatenate([user.X for user in group])
        known = ranges or {}
        bounds = [known.get(name, (column.min(), column.max())) for name, column in zip(names, X.T, strict=True)]
        if not covariates:
            bounds = [(0.0, 1.0)] * len(names)
        shift, scale = 0.0, 1.0
        if target == "standard":
            y = np.concatenate([user.y for user in group])
            shift, scale = float(y.mean()), float(deviations(y)) or 1.0
        return cls(names, tuple(b[0] for b in bounds), tuple(b[1] for b in bounds), shift, scale)

    @cached_property
    def _low(self) -> Array:
        return np.array(self.low)

    @cached_property
    def _range(self) -> Array:
        return np.array([self._range_of(index) for index in range(len(self.low))])

    def _range_of(self, index: int) -> float:
        extent = self.high[index] - self.low[index]
        return extent if extent > 0.0 else 1.0

    def _index(self, covariate: str) -> int:
        return index_of(covariate, self.covariates, "the scaler")

    def transform(self, X: ArrayLike) -> Array:
        """Covariates in data units, shape (..., d), to scaled ones."""
        return (self._checked(X) - self._low) / self._range

    def inverse(self, Z: ArrayLike) -> Array:
        """Scaled covariates, shape (..., d), back to data units."""
        return self._low + self._checked(Z) * self._range

    def _checked(self, X: ArrayLike) -> Array:
        array = read_numbers(X, "X", self.covariates)
        if array.ndim == 0 or array.shape[-1] != len(self.covariates):
            raise DataError(
                f"expected {len(self.covariates)} columns ({', '.join(self.covariates)}), got shape {array.shape}"
            )
        return array

    def transform_target(self, y: ArrayLike) -> Array:
        """A target in data units to scaled."""
        return (read_numbers(y, "the target") - self.shift) / self.scale

    def inverse_target(self, y: ArrayLike) -> Array:
        """A scaled target, or a mean of it, back to data units."""
        return self.shift + np.asarray(y, dtype=np.float64) * self.scale

    def inverse_variance(self, variance: ArrayLike) -> Array:
        """A variance (or covariance, amplitude, noise) of the scaled target to the data's units, squared."""
        return np.asarray(variance, dtype=np.float64) * self.scale**2

    def target_size(self, value: float) -> float:
        """A standard deviation of the scaled target to data units."""
        return float(value) * self.scale

    def length(self, covariate: str, value: float) -> float:
        """A lengthscale or period on the scaled covariate to data units: times the range."""
        return float(value) * self._range_of(self._index(covariate))

    def location(self, covariate: str, value: float) -> float:
        """A location on the scaled covariate to data units: low plus value times the range."""
        index = self._index(covariate)
        return self.low[index] + float(value) * self._range_of(index)

    def scaled_length(self, covariate: str, value: float) -> float:
        """A lengthscale or period in data units to the scaled covariate: the inverse of `length`."""
        return float(value) / self._range_of(self._index(covariate))

    def scaled_location(self, covariate: str, value: float) -> float:
        """A location in data units to the scaled covariate: the inverse of `location`."""
        index = self._index(covariate)
        return (float(value) - self.low[index]) / self._range_of(index)

    def apply(self, user: User) -> User:
        """A user in data units, scaled."""
        self._same_columns(user)
        return user.with_X(self.transform(user.X)).with_y((user.y - self.shift) / self.scale)

    def undo(self, user: User) -> User:
        """A scaled user back in data units."""
        self._same_columns(user)
        return user.with_X(self.inverse(user.X)).with_y(self.inverse_target(user.y))

    def _same_columns(self, user: User) -> None:
        if user.covariates != self.covariates:
            raise DataError(
                f"the scaler knows {', '.join(self.covariates)}; user {user.name!r} has {', '.join(user.covariates)}"
            )

    def to_json(self) -> dict[str, Any]:
        """As plain lists and numbers; JSON writes the shortest digits that read back as the same float64."""
        return dict(plain(self))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scaler:
        """The scaler that `to_json` described."""
        try:
            return cls(*(stored[field.name] for field in fields(cls)))
        except (KeyError, TypeError, ValueError) as problem:
            raise DataError(f"not a stored scaler: {problem!r}") from None

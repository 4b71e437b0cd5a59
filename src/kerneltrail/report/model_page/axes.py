"""What stands at the axes of the page: columns as people call them, names of values, times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema, User
from kerneltrail.kernels.phrases import rounded, singular

Array = NDArray[np.float64]

TIMES = "M"
"""NumPy's letter for a type of times."""


def with_unit(name: str, schema: Schema) -> str:
    """A column as it is called, with its unit, for an axis."""
    label, unit = schema.label(name), schema.unit(name)
    called_by_it = label.lower() in (unit.lower(), singular(unit).lower())  # "hour", not "hour (hours)"
    return label if not unit or called_by_it else f"{label} ({unit})"


def value_names(name: str, values: Iterable[float], schema: Schema) -> list[str]:
    """What values of a covariate are called, or their numbers, for the ticks of an axis that has the unit."""
    every = [float(value) for value in values]
    return [schema.name_of(name, value) or rounded(value, 0.5 * (max(every) - min(every))) for value in every]


def times_of(user: User) -> NDArray[Any] | None:
    """When a user's rows were, if the table orders them by times; in seconds."""
    order = user.order
    return order.astype("datetime64[s]") if order is not None and order.dtype.kind in TIMES else None


def brief(values: NDArray[np.float64]) -> list[float]:
    """Numbers to four digits, which is finer than a pixel."""
    return [float(f"{value:.4g}") for value in values.tolist()]

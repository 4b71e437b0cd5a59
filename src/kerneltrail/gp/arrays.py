"""What is taken for real numbers, and what is refused by name. Everything public that takes arrays asks here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError, NumericalError

Array = NDArray[np.float64]

_NOUNS = {"c": "complex numbers", "M": "dates", "m": "durations", "O": "objects", "S": "text", "U": "text", "T": "text"}


def real_numbers(values: Any, what: str, *, ndmin: int = 0) -> Array:
    """A new C-contiguous float64 array of booleans, integers or floats; anything else is refused.

    NumPy would take the real part of complex numbers, and count the days or nanoseconds of dates.

    Args:
        values: an array, or what NumPy makes one of.
        what: named in the error, e.g. ``user 'ann': covariates``.
        ndmin: least number of dimensions.
    """
    try:
        found = np.asarray(values)
    except (TypeError, ValueError) as problem:  # rows of unequal length, for one
        raise DataError(f"{what} must be an array of numbers ({problem})") from None
    if found.dtype.kind not in "biuf":
        noun = _NOUNS.get(found.dtype.kind, f"values of type {found.dtype}")
        raise DataError(f"{what} must be real numbers, got {noun}{_example(found)}")
    with np.errstate(over="ignore"):  # wider floats than float64: what becomes infinite is refused by `check_finite`
        return np.array(found, dtype=np.float64, order="C", ndmin=ndmin)


def _example(found: NDArray[Any]) -> str:
    """The first entry that is no real number, with its place."""
    for place, value in np.ndenumerate(found):
        if found.dtype.kind != "O" or not isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
            at = "" if not place else f" at {place[0] if len(place) == 1 else place}"
            return f" ({value!r}{at})"
    return ""


def check_finite(numbers: Array, tell: Callable[[int, str, float], str], columns: Sequence[str] = ()) -> None:
    """Refuse NaN and infinity; `tell` makes the message of the row, the column's name and the value."""
    if not np.isfinite(numbers).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        column = columns[place[1]] if columns and len(place) > 1 else ""
        raise DataError(tell(place[0] if place else 0, column, float(numbers[place])))


def refuse_overflow(
    what: str, reads: Sequence[str], rows: Array, covariates: Sequence[str], mean: Array, variance: Array
) -> None:
    """Refuse a prediction past all numbers, with the row and, of the columns that it reads, the one that is largest."""
    bad = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(variance)))
    if len(bad):
        row = rows[bad[0]]
        sizes = {name: float(row[list(covariates).index(name)]) for name in reads}
        name = max(sizes, key=lambda name: abs(sizes[name]), default=None)
        cause = "" if name is None else f": {name} is {sizes[name]:g}"
        raise NumericalError(f"{what} at row {bad[0]} is past all numbers{cause}")

"""Arrays of real numbers from whatever people hand over: what NumPy would quietly turn into numbers is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.errors import DataError
from kerneltrail.kernels import Array

LARGEST = 1e50
"""Larger values are refused: they are no measurements, and up to here the sixth power is still finite."""

_NO_NUMBERS = {"c": "complex numbers", "m": "durations", "M": "dates and times"}
"""NumPy's letters for types that it converts, losing what they mean."""


def real_numbers(values: ArrayLike, what: str, columns: Sequence[str] = ()) -> Array:
    """A new float64 array of numbers, truth values, or texts that are numbers.

    Messages call the values `what`, e.g. ``user 'ann': the target``, and name the one of `columns` that is to blame.

    Raises:
        DataError: for complex numbers, dates, durations, and what is no number at all.
    """
    try:
        array = np.asarray(values)
        kind = _NO_NUMBERS.get(array.dtype.kind)
        if kind is None and array.dtype == object:
            kind = next(filter(None, (_NO_NUMBERS.get(np.asarray(cell).dtype.kind) for cell in array.flat)), None)
        if kind is None:
            return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise DataError(f"{what} must hold numbers ({problem}){_column(values, columns)}") from None
    raise DataError(f"{what} must hold numbers, not {kind}{_column(values, columns)}")


def _column(values: ArrayLike, columns: Sequence[str]) -> str:
    """Which column of a table of values is to blame, for messages."""
    try:
        table = np.asarray(values)
    except ValueError:  # rows of different lengths
        return ""
    if table.ndim != 2 or table.shape[1] != len(columns):
        return ""
    if table.dtype.kind == "c":  # one complex number makes the whole array complex
        blamed = np.flatnonzero(np.any(table.imag != 0.0, axis=0))
        return f": covariate {columns[int(blamed[0]) if blamed.size else 0]!r}"
    for name, column in zip(columns, table.T, strict=True):
        try:
            real_numbers(column, name)
        except DataError:
            return f": covariate {name!r}"
    return ""


def check_size(column: Array, what: str, largest: float = LARGEST) -> None:
    """Refuse a column with a value that is not finite or too large to compute with, saying in which row."""
    usable = np.isfinite(column) & (np.abs(column) <= largest)
    if not np.all(usable):
        row = int(np.flatnonzero(~usable)[0])
        wanted = f"at most {largest:g} in size" if np.isfinite(column[row]) else "a finite number"
        raise DataError(f"{what} is {column[row]} in row {row + 1} of {len(column)}; it must be {wanted}")

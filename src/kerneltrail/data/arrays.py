"""Arrays of real numbers from whatever people hand over: what NumPy would quietly turn into numbers is refused by name.

Everything public that takes arrays asks here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError
from kerneltrail.kernels import Array

LARGEST = 1e50
"""Larger values are refused: they are no measurements, and up to here the sixth power is still finite."""

_NOUNS = {"c": "complex numbers", "m": "durations", "M": "dates and times", "O": "objects"}
_NOUNS |= dict.fromkeys("SUT", "text")
"""NumPy's letters for types that are not numbers, though it would convert some of them, losing what they mean."""


def real_numbers(values: Any, what: str, columns: Sequence[str] = (), *, ndmin: int = 0) -> Array:
    """A new C-contiguous float64 array of truth values, integers or floats.

    Args:
        values: an array, or what NumPy makes one of.
        what: named in the error, e.g. ``user 'ann': the target``.
        columns: names of the columns of a table; the one that is to blame is told.
        ndmin: least number of dimensions.

    Raises:
        DataError: for anything else. NumPy would take the real part of complex numbers, and count the days of dates.
    """
    array = _array(values, what)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold numbers, not {_offence(array, columns)}")
    with np.errstate(over="ignore"):  # wider floats than float64: what becomes infinite is refused as such
        return np.array(array, dtype=np.float64, order="C", ndmin=ndmin)


def finite_numbers(values: Any, what: str, columns: Sequence[str] = (), *, ndmin: int = 0) -> Array:
    """`real_numbers` without NaN and infinity."""
    numbers = real_numbers(values, what, columns, ndmin=ndmin)
    if not np.isfinite(numbers).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        name = f"{columns[at[1]]} of " if len(at) == 2 and numbers.shape[1] == len(columns) else ""
        raise DataError(f"{what}: {name}row {at[0] if at else 0} is not finite ({numbers[at]})")
    return numbers


def read_numbers(values: ArrayLike, what: str, columns: Sequence[str] = ()) -> Array:
    """`real_numbers` of what tables hold: texts and objects that are numbers are taken, too."""
    array = _array(values, what)
    kinds = {np.asarray(cell).dtype.kind for cell in array.flat} if array.dtype.kind == "O" else {array.dtype.kind}
    if kinds <= set("biufOSUT"):
        try:
            return np.array(array, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass  # the cell to blame is told below
    return real_numbers(array, what, columns)


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as problem:  # rows of unequal length, for one
        raise DataError(f"{what} must hold numbers ({problem})") from None


def _offence(array: NDArray[Any], columns: Sequence[str]) -> str:
    """What an array holds in place of numbers: the kind, the first such entry, its place and its column."""
    kind = array.dtype.kind
    at = next((at for at, cell in np.ndenumerate(array) if not _is_number(cell)), None)
    if at is None and kind != "O" and array.size:
        at = (0,) * array.ndim
    if at is None:
        return _NOUNS.get(kind, f"values of type {array.dtype}")
    cell = array[at]
    noun = _NOUNS.get(np.asarray(cell).dtype.kind, f"values of type {array.dtype}")
    position = f" at {at[0] if len(at) == 1 else tuple(map(int, at))}" if at else ""
    named = f": covariate {columns[at[1]]!r}" if len(at) == 2 and array.shape[1] == len(columns) else ""
    return f"{noun} ({cell!r}{position}){named}"


def _is_number(cell: object) -> bool:
    try:
        number = np.asarray(cell)
        if number.dtype.kind == "c":  # one complex number makes the whole array complex
            return bool(number.imag == 0.0)
        return number.dtype.kind not in "mM" and np.ndim(number.astype(np.float64)) == 0
    except (TypeError, ValueError, OverflowError):
        return False


def usable(numbers: Array, largest: float = LARGEST) -> NDArray[np.bool_]:
    """Which numbers are finite and not too large to compute with."""
    return np.abs(numbers) <= min(largest, sys.float_info.max)  # NaN is not below anything


def check_size(column: Array, what: str, largest: float = LARGEST) -> None:
    """Refuse a column with a value that is not finite or too large to compute with, saying in which row."""
    fine = usable(column, largest)
    if not fine.all():
        row = int(np.flatnonzero(~fine)[0])
        wanted = f"at most {largest:g} in size" if np.isfinite(column[row]) else "a finite number"
        raise DataError(f"{what} is {column[row]} in row {row + 1} of {len(column)}; it must be {wanted}")


def deviations(values: Array) -> Array:
    """Standard deviation of each column, (d,), or of one column, (); 0 where it is the rounding error of equal numbers.

    >>> equal = np.full(3, 0.1)
    >>> float(np.std(equal)) > 0.0, float(deviations(equal)), deviations(np.array([[1.0, 0.1], [3.0, 0.1]])).tolist()
    (True, 0.0, [1.0, 0.0])
    """
    found = np.asarray(values.std(axis=0))
    return np.where(found > 1e-12 * np.abs(values).max(axis=0, initial=0.0), found, 0.0)

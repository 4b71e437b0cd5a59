"""What may have happened to a unit between one table, or one user, and the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kerneltrail.kernels import Array

MARGIN = 0.1
"""How far outside the others' range, in parts of it, a value still counts as within."""

Conversion = tuple[str, Callable[[Array], Array]]
"""What may have happened, and how it would be undone."""

UNITS: tuple[Conversion, ...] = (
    ("these were °F and {those} were °C", lambda x: (x - 32.0) / 1.8),
    ("these were °C and {those} were °F", lambda x: 1.8 * x + 32.0),
    ("these were K and {those} were °C", lambda x: x - 273.15),
    ("these were °C and {those} were K", lambda x: x + 273.15),
    ("these were per cent and {those} were shares", lambda x: x / 100.0),
    ("these were shares and {those} were per cent", lambda x: 100.0 * x),
    ("these were ten times as large, as on a scale to 100 in place of 10", lambda x: x / 10.0),
    ("these were a tenth as large, as on a scale to 1 in place of 10", lambda x: 10.0 * x),
    ("these were in thousandths of {those} unit", lambda x: x / 1000.0),
    ("these were in thousands of {those} unit", lambda x: 1000.0 * x),
    ("these were minutes and {those} were hours", lambda x: x / 60.0),
    ("these were hours and {those} were minutes", lambda x: 60.0 * x),
    ("these were pounds and {those} were kilograms", lambda x: x / 2.20462),
    ("these were kilograms and {those} were pounds", lambda x: 2.20462 * x),
)
"""Changes of scale and origin."""

CONVERSIONS: tuple[Conversion, ...] = (
    *UNITS,
    ("these were counts and {those} were logarithms", lambda x: np.log(np.maximum(x, 0.0) + 0.5)),
    ("these were logarithms and {those} were counts", lambda x: np.exp(np.minimum(x, 100.0)) - 0.5),
)
"""All that may have happened between two tables."""


def fitting(
    values: Array, others: tuple[float, float, float, float], those: str, among: Sequence[Conversion] = CONVERSIONS
) -> list[str]:
    """Changes of unit that would bring values to where the others' are, in words that call them `those`.

    `others` are quantiles of theirs, at 1 %, 10 %, 90 % and 99 %.
    """
    low, tenth, ninetieth, high = others
    if ninetieth <= tenth:
        return []
    margin, width = MARGIN * (high - low), ninetieth - tenth
    words = []
    for said, convert in among:
        back = convert(values)
        spread = float(np.quantile(back, 0.9) - np.quantile(back, 0.1))
        inside = float(np.mean((back >= low - margin) & (back <= high + margin)))
        if inside > 0.9 and tenth <= np.median(back) <= ninetieth and width / 3.0 < spread < 3.0 * width:
            words.append(said.format(those=those))
    return words

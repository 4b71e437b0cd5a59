"""Small pieces of language that atoms use to say what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Phrase:
    """What an atom says.

    Attributes:
        clause: completes "the target …" when the atom stands first in a product.
        modifier: narrows another atom's clause when it is multiplied with this one.
    """

    clause: str
    modifier: str


def number(value: float) -> str:
    """A number as people write it: three significant digits, no exponent between 0.001 and a million.

    >>> number(3.0612), number(1465.2), number(0.21), number(-0.0)
    ('3.06', '1465', '0.21', '0')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0 or abs(value) < 1e-12:
        return "0"
    size = abs(value)
    if size < 1e-3 or size >= 1e6:
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str) -> str:
    """A number with its unit, if it has one: ``3.06 hours``."""
    return f"{number(value)} {unit}".strip()

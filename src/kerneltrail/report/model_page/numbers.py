"""Numbers as the page writes them."""

from __future__ import annotations

import math

NONE = "–"
"""Stands where there is no number."""


def fixed(value: float, digits: int = 2) -> str:
    """So many digits after the point, with a true minus sign.

    >>> fixed(-0.8312), fixed(float("nan"))
    ('−0.83', '–')
    """
    return f"{value:.{digits}f}".replace("-", "−") if math.isfinite(value) else NONE


def signed(value: float, digits: int = 2) -> str:
    """The same with a plus sign where it is positive.

    >>> signed(0.911), signed(-2.0)
    ('+0.91', '−2.00')
    """
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else NONE


def digits(value: float) -> str:
    """Three digits that count, trailing zeros kept so that columns line up.

    >>> digits(0.6), digits(12.345), digits(0.00123), digits(1234.5)
    ('0.600', '12.3', '0.00123', '1234')
    """
    if not math.isfinite(value):
        return NONE
    if value and abs(value) < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    after = 2 - math.floor(math.log10(abs(value))) if value else 2
    return fixed(value, min(max(after, 0), 6))


def duration(seconds: float, *, sign: bool = False) -> str:
    """A time with its unit, or with `sign` a difference of times.

    >>> duration(0.0167), duration(22.34), duration(5.9e-5), duration(-0.2, sign=True)
    ('16.7 ms', '22.3 s', '0.0590 ms', '−200 ms')
    """
    if not math.isfinite(seconds):
        return NONE
    text = f"{digits(seconds)} s" if abs(seconds) >= 1.0 else f"{digits(1000.0 * seconds)} ms"
    return f"+{text}" if sign and seconds > 0.0 else text


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.904)
    '90 %'
    """
    return f"{100.0 * share:.0f} %" if math.isfinite(share) else NONE

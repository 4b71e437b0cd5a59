"""Canonical JSON (RFC 8785): one text for one value, so that its SHA-256 is the same in every language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from kerneltrail.errors import DataError

EXACT = 2**53 - 1
"""The largest whole number up to which a double holds each one."""


def canonical(value: Any) -> bytes:
    """A plain value as JSON in UTF-8: keys in order, no blanks, numbers as JavaScript writes them.

    >>> canonical({"b": [1, 2.0, 1e-7], "a": "ü"}).decode()
    '{"a":"ü","b":[1,2,1e-7]}'
    >>> canonical({"a": float("nan")})
    Traceback (most recent call last):
        ...
    kerneltrail.errors.DataError: nan cannot be written as JSON
    """
    return _text(value).encode("utf-8")


def sha256_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) <= EXACT:
        return str(value)
    if isinstance(value, float) and isfinite(value):
        return _number(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in keys) + "}"
    raise DataError(f"{value!r} cannot be written as JSON")


def _number(value: float) -> str:
    """The fewest digits that read back to the same double, with an exponent where JavaScript has one."""
    if value == 0.0:
        return "0"
    exact = Decimal(repr(value)).normalize()
    magnitude = exact.adjusted()
    if -7 < magnitude < 21:  # from 0.000001 to below 1e21
        return f"{exact:f}"
    digits = "".join(map(str, exact.as_tuple().digits))
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{'-' if value < 0 else ''}{mantissa}e{magnitude:+d}"

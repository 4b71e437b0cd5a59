"""Canonical JSON: one text for one value, so that its SHA-256 says whether two people have the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kerneltrail.errors import DataError


def canonical(value: Any) -> bytes:
    """A plain value as JSON in UTF-8: keys in order, no blanks, numbers with the fewest digits that read back alike.

    >>> canonical({"b": [1, 2.5], "a": "ü"}).decode()
    '{"a":"ü","b":[1,2.5]}'
    >>> canonical({"a": float("nan")})
    Traceback (most recent call last):
        ...
    kerneltrail.errors.DataError: a value cannot be written as JSON: Out of range float values are not JSON compliant
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise DataError(f"a value cannot be written as JSON: {str(problem).partition(':')[0]}") from None
    return text.encode("utf-8")


def sha256_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()

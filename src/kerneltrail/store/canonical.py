"""JSON with one spelling for each value (RFC 8785), and SHA-256 of it: the same in every language.

Keys are sorted by their UTF-16 code units, nothing stands between tokens, strings are UTF-8 with the fewest escapes,
numbers are written as JavaScript writes them. NaN and infinities are refused, and so are whole numbers that a double
does not hold exactly. A number of which every bit matters (a probability, a draw) is a text in hexadecimal.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from kerneltrail.errors import DataError

EXACT = 2**53 - 1
"""The largest whole number up to which a double holds each one."""
DEPTH = 64
"""The most lists and objects within each other."""
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value: Any) -> bytes:
    """A value's one spelling as JSON, in UTF-8.

    >>> canonical({"b": [1.0, 1e-7, True, None], "a": "é"}).decode()
    '{"a":"é","b":[1,1e-7,true,null]}'
    """
    try:
        return _text(value, "the value", DEPTH).encode("utf-8")
    except UnicodeEncodeError as problem:
        raise DataError(f"the value has a text that is no Unicode: character {problem.start + 1}") from None


def parsed(text: bytes) -> Any:
    """The value that `canonical` wrote; digits that only a double can have meant are read as one.

    >>> parsed(canonical([1, 2.0**60]))
    [1, 1.152921504606847e+18]
    """
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int | float:
    value = int(digits)
    return value if abs(value) <= EXACT else float(digits)


def _text(value: Any, where: str, depth: int) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        if abs(value) > EXACT:
            raise DataError(f"{where} is {value}, and a whole number above 2^53 - 1 has to be written as a text")
        return str(int(value))
    if isinstance(value, float):
        return number(float(value), where)
    if depth == 0:
        raise DataError(f"{where} has more than {DEPTH} lists and objects within each other")
    if isinstance(value, Mapping):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            raise DataError(f"{where} has the key {odd!r}, and a key must be a text")
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        items = (f"{_quoted(key)}:{_text(value[key], key, depth - 1)}" for key in keys)
        return "{" + ",".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(item, f"an item of {where}", depth - 1) for item in value) + "]"
    raise DataError(f"{where} is a {type(value).__name__}, which JSON does not have")


def number(value: float, where: str = "a number") -> str:
    """A double as JavaScript writes it: the fewest digits that read back to the same one.

    >>> [number(value) for value in (-0.0, 0.1, 1e21, 123456789012345680000.0, 1.5e-7, 0.000001)]
    ['0', '0.1', '1e+21', '123456789012345680000', '1.5e-7', '0.000001']
    """
    if not math.isfinite(value):
        raise DataError(f"{where} is {value}, and JSON has finite numbers only; what is missing is null")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + (len(whole) if whole != "0" else len(digits) - len(fraction))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        text = digits.ljust(point, "0")
        return sign + text[:point] + ("." + text[point:] if len(text) > point else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    more = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{more}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def exact(value: float) -> str:
    """A number bit by bit, as C and Python write hexadecimal floats.

    >>> exact(0.1), real(exact(0.1)) == 0.1
    ('0x1.999999999999ap-4', True)
    """
    if not math.isfinite(value):
        raise DataError(f"{value} is not finite, so it cannot be recorded")
    return float(value).hex()


_HEX = re.compile(r"-?0x[01]\.[0-9a-f]+p[+-][0-9]+")


def real(value: Any) -> float:
    """A number from what was recorded: as it stands, or as `exact` wrote it."""
    if isinstance(value, str) and _HEX.fullmatch(value):
        return float.fromhex(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise DataError(f"{value!r} is no number: expected one, or a text such as 0x1.999999999999ap-4")


def digest(*parts: bytes) -> str:
    """SHA-256 of bytes one after the other, in 64 small hexadecimal letters."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


def sha256_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return digest(canonical(value))

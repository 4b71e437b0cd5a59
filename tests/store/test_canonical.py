"""Canonical JSON: the same bytes for the same value, whatever the order of its keys, as RFC 8785 has them."""

import hashlib
import json
import struct

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.store.canonical import canonical, sha256_of


def test_the_order_of_keys_does_not_matter_and_that_of_items_does():
    assert canonical({"a": 1, "b": {"d": None, "c": True}}) == canonical({"b": {"c": True, "d": None}, "a": 1})
    assert canonical([1, 2]) != canonical([2, 1])
    assert canonical(1) == canonical(1.0) != canonical(True)
    assert sha256_of({"ü": 0.1}) == hashlib.sha256('{"ü":0.1}'.encode()).hexdigest()


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
    ],
)
def test_numbers_are_those_of_the_standards_appendix(bits, text):
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value).decode() == text


def test_numbers_read_back_to_the_same_bits():
    rng = np.random.default_rng(1)
    for value in np.frombuffer(rng.bytes(8 * 2000)).tolist():
        if np.isfinite(value):
            assert float(json.loads(canonical(value))) == value


def test_keys_are_sorted_by_utf_16():
    assert canonical({"\ufb33": 1, "\U0001f600": 2, "1": 3}).decode() == '{"1":3,"\U0001f600":2,"\ufb33":1}'


@pytest.mark.parametrize("bad", [float("inf"), {"a": object()}, {1, 2}, {1: 2}, 2**53, np.float32(1.0)])
def test_what_json_does_not_have_is_refused(bad):
    with pytest.raises(DataError, match="cannot be written as JSON"):
        canonical(bad)

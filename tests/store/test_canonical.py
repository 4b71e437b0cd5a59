"""One spelling for each value, as RFC 8785 has it."""

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.errors import DataError
from kerneltrail.store.canonical import canonical, exact, number, parsed, real, sha256_of

# From RFC 8785, appendix B: the bits of a double and its spelling.
SPELT = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), SPELT.items())
def test_numbers_are_spelt_as_the_standard_lists_them(bits, text):
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_to_the_same_bits(value):
    assert float(number(value)) == value
    assert real(exact(value)) == value


def test_keys_are_sorted_by_utf_16_and_texts_have_the_fewest_escapes():
    # The example of RFC 8785, section 3.2.3: an emoji's first unit, d83d, comes before fb33.
    value = {
        "\u20ac": "Euro",
        "\r": "Return",
        "\ufb33": "Dalet",
        "1": "One",
        "\U0001f600": "Grin",
        "\x80": "C",
        "ö": "o",
    }
    keys = list(json.loads(canonical(value)))
    assert keys == ["\r", "1", "\x80", "ö", "\u20ac", "\U0001f600", "\ufb33"]
    assert canonical("\u20ac$\x0f\nA'B\"\\/\x7f") == '"€$\\u000f\\nA\'B\\"\\\\/\x7f"'.encode()


NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_what_was_read_back_is_spelt_the_same(value):
    text = canonical(value)
    assert parsed(text) == value
    assert canonical(parsed(text)) == text


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), 2**53, {1: 2}, {1, 2}, b"x", "\ud800", {"\ud800": 1}, [object()]]
)
def test_what_json_does_not_have_is_refused(value):
    with pytest.raises(DataError):
        canonical({"value": value})


def test_depth_has_a_limit():
    value = []
    for _ in range(100):
        value = [value]
    with pytest.raises(DataError, match="within each other"):
        canonical(value)


@pytest.mark.parametrize("value", ["nan", "inf", "0.1", "0x1p", None, True, "١"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(DataError, match="no number"):
        real(value)


def test_the_digest_is_that_of_the_spelling():
    assert sha256_of({"ü": 0.1, "a": 1.0}) == hashlib.sha256('{"a":1,"ü":0.1}'.encode()).hexdigest()

"""Numbers, units and places as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.kernels.phrases import (
    Unit,
    every,
    levels_of,
    likeness,
    listing,
    number,
    place,
    quantity,
    rounded,
    singular,
    with_unit,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-13, "0"),
        (1.0, "1"),
        (9.999, "10"),
        (0.9996, "1"),
        (0.0999, "0.0999"),
        (0.001, "0.001"),
        (0.00099999, "0.001"),
        (3.0612, "3.06"),
        (-2.5, "-2.5"),
        (100.4, "100"),
        (1465.2, "1465"),
        (999_499.0, "999499"),
        (999_999.9, "1×10⁶"),
        (1.234e7, "1.23×10⁷"),
        (-4e-5, "-4×10⁻⁵"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@given(st.floats(1e-11, 1e15), st.sampled_from([1, -1]))
def test_numbers_are_right_to_three_digits(size, sign):
    text = number(sign * size)
    for digit, plain in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True):
        text = text.replace(digit, plain)
    assert float(text.replace("×10", "e")) == pytest.approx(sign * size, rel=5.1e-3)


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (1.2871, 0.853, "1.29"),
        (1.2871, 8.53, "1.3"),
        (-1.2871, 85.3, "−1"),
        (-0.2, 85.3, "0"),
        (12345.0, 4600.0, "12300"),
        (0.00123, 0.00045, "0.00123"),
        (5.0, 0.0, "5"),
        (-5.123, math.inf, "−5.12"),
        (2.5e7, 1e6, "2.5×10⁷"),
        (3.0, 1e-9, "3"),
    ],
)
def test_numbers_beside_a_width(value, width, text):
    assert rounded(value, width) == text


@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e5))
def test_rounding_is_finer_than_a_twentieth_of_the_width(value, width):
    text = rounded(value, width).replace("−", "-").replace("×10", "e")
    for digit, plain in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True):
        text = text.replace(digit, plain)
    assert abs(float(text) - value) <= max(0.05 * width * 1.001, 6e-3 * abs(value))


def test_units_behind_written_numbers():
    assert [with_unit(text, "hours") for text in ("1", "−1", "2")] == ["1 hour", "−1 hour", "2 hours"]
    assert (with_unit("16", "%"), with_unit("3", "")) == ("16%", "3")


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("hours", "hour"),
        ("steps", "step"),
        ("days", "day"),
        ("hrs", "hr"),
        ("calories", "calorie"),
        ("degrees Celsius", "degree Celsius"),
        ("beats per minute", "beat per minute"),
        ("feet", "foot"),
        ("%", "percentage point"),
        ("°C", "°C"),
        ("s", "s"),
        ("ms", "ms"),
        ("mmHg", "mmHg"),
        ("Celsius", "Celsius"),
        ("radius", "radius"),
        ("", ""),
    ],
)
def test_singular(unit, one):
    assert singular(unit) == one


def test_quantities():
    assert quantity(1.0, "hours") == "1 hour"
    assert quantity(-1.0, "hours") == "-1 hour"
    assert quantity(1.004, "hours") == "1 hour"
    assert quantity(1.01, "hours") == "1.01 hours"
    assert quantity(1.0, "°C") == "1 °C"
    assert quantity(0.0, "steps") == "0 steps"
    assert quantity(16.0, "%") == "16%"
    assert quantity(16.0, "% chance of rain") == "16% chance of rain"
    assert quantity(2.0, "") == "2"


def test_every():
    assert every(24.0, "hours") == "every 24 hours"
    assert every(1.0, "hours") == "every hour"
    assert every(12.5, "hours") == "every 12.5 hours"
    assert every(1.0, "") == "with period 1"


def test_places():
    levels = Unit(levels=("still", "active", "unknown"))
    assert place("activity", 1.1, levels) == "active"
    assert place("activity", 0.5, levels) == "somewhere between still and active"
    assert place("activity", -0.1, levels) == "still"
    assert place("activity", -0.4, levels) == "code -0.4"
    assert place("activity", 7.0, levels) == "code 7"
    assert place("hour", 5.0, "hours") == "5"
    assert place("Hour", 5.0, "hours") == "5"
    assert place("temperature", 15.0, "°C") == "15 °C"


def test_likeness_of_levels():
    few, many = Unit(levels=("still", "active", "unknown")), Unit(levels=map(str, range(7)))
    assert likeness("activity", 0.21, few) == (
        "the same activity (still, active or unknown)",
        "activity stays the same (still, active or unknown)",
    )
    assert likeness("activity", 1.0, few)[0] == "a similar activity (still, active or unknown; within about 1 level)"
    assert likeness("day", 0.1, many)[0] == "the same day (one of 7 levels)"


def test_units_are_texts_that_may_carry_levels():
    assert Unit("hours") == "hours"
    assert levels_of(Unit("hours")) == levels_of("hours") == ()
    assert Unit("code", ["a"]) == "code"
    assert levels_of(Unit(levels=["a", "b"])) == ("a", "b")
    assert listing(["a", "b", "c"], "or") == "a, b or c"


def test_what_is_not_finite_is_shown_as_such():
    assert number(math.inf) == "inf"

"""The text form: it reads back to the same composition, and says where it cannot be read."""

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.errors import KernelError, KernelSyntaxError
from kerneltrail.kernels import NOTHING, Composition, parse

from .drawing import compositions


@given(compositions)
def test_text_parses_back_to_an_equal_composition(composition):
    assert parse(composition.text) == composition
    assert parse(composition.text).text == composition.text


@given(compositions, st.sampled_from(["", " ", "\t", "\n  "]))
def test_blanks_around_signs_do_not_matter(composition, blank):
    text = f"{blank}+{blank}".join(f"{blank}*{blank}".join(map(str, p.atoms)) for p in composition)
    assert parse(blank + text + blank) == composition


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("   ", ""),
        ("SE[ hour ]", "SE[hour]"),
        ("SE [hour]", "SE[hour]"),
        ("SE[time of day]", "SE[time of day]"),
        ("SE[a+b]", "SE[a+b]"),
        ("PER[x]×SE[x]·LIN[x]", "LIN[x]*PER[x]*SE[x]"),
        ("SE[x]*SE[x]", "SE[x]"),
        ("SE[x] + SE[x]", "SE[x]"),
        ("( SE[x] )", "SE[x]"),
        ("LIN[x]*(PER[x] + SE[x])", "LIN[x]*PER[x] + LIN[x]*SE[x]"),
        ("(LIN[x] + SE[x])*(LIN[x] + SE[x])", "SE[x] + LIN[x]*LIN[x] + LIN[x]*SE[x]"),
        ("((LIN[x]*(PER[z] + SE[z])) + SE[x])*PER[a]", "PER[a]*SE[x] + LIN[x]*PER[a]*PER[z] + LIN[x]*PER[a]*SE[z]"),
    ],
)
def test_reading(text, canonical):
    assert parse(text).text == canonical


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("SE", 2, "expected '[' and a covariate after SE"),
        ("SE(hour)", 2, "expected '['"),
        ("SE[hour", 2, "this '[' of SE is never closed"),
        ("SE [hour", 3, "never closed"),
        ("SE[hour + LIN[x]", 2, "never closed"),
        ("SE[]", 3, "expected a covariate's name"),
        ("SE[  ]", 5, "expected a covariate's name"),
        ("SE[a\nb]", 4, "line break"),
        ("SE[x] +", 7, "expected a kernel"),
        ("SE[x] + + SE[y]", 8, "expected a kernel"),
        ("+ SE[x]", 0, "expected a kernel"),
        ("SE[x] * ", 8, "expected a kernel"),
        ("SE[x] SE[y]", 6, "expected '+', '*' or the end"),
        ("SE[x]]", 5, "expected '+', '*' or the end"),
        ("SE[x] - SE[y]", 6, "expected '+', '*' or the end"),
        ("(SE[x]", 0, "this '(' is never closed"),
        ("LIN[x] * (  SE[x]", 9, "this '(' is never closed"),
        ("(SE[x] SE[y])", 7, "expected '+', '*' or ')'"),
        ("SE[x])", 5, "expected '+', '*' or the end"),
        ("()", 1, "expected a kernel"),
        ("LIN[x] + PERR[x]", 9, "unknown kernel 'PERR'; did you mean PER?"),
        ("se[x]", 0, "unknown kernel 'se'; did you mean SE?"),
        ("MATERN[x]", 0, "known are LIN, PER, SE"),
        ("3*SE[x]", 0, "expected a kernel"),
        ("(" * 101 + "SE[x]" + ")" * 101, 100, "more than 100 brackets"),
    ],
)
def test_errors_point_at_the_character(text, position, problem):
    with pytest.raises(KernelSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert error.position == position
    assert problem in error.problem
    head, shown, caret = str(error).split("\n")
    assert head == f"{error.problem} (character {position + 1})"
    assert caret.index("^") - 4 == position
    assert len(shown) == len(text) + 4


@given(st.text("SELINPR[]()+* xz\n", max_size=25))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse(text)
    except KernelSyntaxError as error:
        found = error
    assert isinstance(found, Composition) or 0 <= found.position <= len(text)


def test_many_brackets_side_by_side_are_fine():
    assert parse("+".join(["(SE[x])"] * 300)) == parse("SE[x]")


def seconds(text):
    begin = time.perf_counter()
    parse(text)
    return time.perf_counter() - begin


@pytest.mark.parametrize("sign", ["*", "+"])
def test_long_products_and_sums_are_read_in_linear_time(sign):
    text = sign.join(f"{kind}[x{i}]" for i in range(2000) for kind in ("LIN", "PER", "SE"))
    found = parse(text)
    assert sum(product.order for product in found) == 6000
    assert min(seconds(text) for _ in range(2)) < 2.0  # 800 factors alone took 20 s when sorted one by one


def test_what_would_double_with_every_bracket_is_refused():
    assert len(parse("*".join(f"(SE[a{i}] + LIN[b{i}])" for i in range(8)))) == 256
    begin = time.perf_counter()
    with pytest.raises(KernelError, match="more than 10000 factors"):
        parse("*".join(f"(SE[a{i}] + LIN[b{i}])" for i in range(60)))
    with pytest.raises(KernelError, match="more than 10000 factors"):
        parse("*".join(["(LIN[x] + PER[x])"] * 300))  # most products are equal: it is the work that is limited
    assert time.perf_counter() - begin < 5.0


def test_a_text_of_too_many_factors_is_refused_with_the_part_around_it():
    with pytest.raises(KernelSyntaxError, match="more than 10000 factors") as caught:
        parse("+".join(["LIN[x]"] * 100_000))
    assert caught.value.position == 7 * 10_000
    head, shown, caret = str(caught.value).split("\n")
    assert "character 70001" in head
    assert len(shown) < 300
    assert shown[caret.index("^") :].startswith("LIN[x]")


def test_syntax_errors_are_kernel_errors_and_survive_pickling():
    with pytest.raises(KernelError) as caught:
        parse("SE[")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position, again.text) == (str(caught.value), 2, "SE[")


def test_what_people_read_for_the_empty_composition_can_be_read_back():
    assert parse(NOTHING) == parse(f" {NOTHING} ") == parse("") == Composition()

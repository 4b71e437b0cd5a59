"""Sentences: the exact words of the main cases, and good manners for every composition."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.data import Batching, Scaler, Schema
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Composition, Hyperparameters, Product, layout_of, parse
from kerneltrail.report.description import Description, Sentence, describe, noun_of

UNITS = {"hour": "hours", "temperature": "°C", "steps30pre": "steps", "yday": "days", "step count": "steps"}
LEVELS = {"activity": ["still", "active", "unknown"]}
SIZE = " This part is typically ±1.3 steps."
SIMILAR_HOUR = "be similar to what was observed at a similar hour, within about 3.06 hours"


def sentences(text, values, **options):
    fitted = Hyperparameters.from_values(parse(text), values)
    options = {"target": "step count", "units": UNITS, "levels": LEVELS} | options
    return [str(sentence) for sentence in describe(fitted, **options)]


# Text, values in the layout's order without amplitude 1.69 first and noise 4 last, and the sentence.
CASES = [
    ("SE[hour]", [3.06], f"will {SIMILAR_HOUR}.{SIZE}"),
    (
        "PER[steps30pre]",
        [1.5, 1465],
        f"will follow a smooth pattern in steps30pre that repeats every 1465 steps.{SIZE}",
    ),
    ("PER[hour]", [0.5, 1.0], f"will follow a pattern in hour that repeats every hour.{SIZE}"),
    ("PER[hour]", [0.1, 24.0], f"will follow a finely detailed pattern in hour that repeats every 24 hours.{SIZE}"),
    ("PER[x]", [1.0, 2.72], f"will follow a smooth pattern in x that repeats with period 2.72.{SIZE}"),
    (
        "LIN[temperature]",
        [15.0],
        "will rise or fall in a straight line with temperature (no effect where it is 15 °C). "
        "Its slope is typically ±1.3 steps per °C.",
    ),
    (
        "LIN[temperature]",
        [-0.902],
        "will rise or fall in a straight line with temperature (no effect where it is −0.902 °C). "
        "Its slope is typically ±1.3 steps per °C.",
    ),
    (
        "LIN[hour]",
        [5.0],
        "will rise or fall in a straight line with hour (no effect where it is 5). "
        "Its slope is typically ±1.3 steps per hour.",
    ),
    (
        "LIN[activity]",
        [1.04],
        "will rise or fall in a straight line with activity (no effect where it is active). "
        "Its slope is typically ±1.3 steps per level.",
    ),
    (
        "SE[activity]",
        [0.21],
        f"will be similar to what was observed at the same activity (still, active or unknown).{SIZE}",
    ),
    (
        "LIN[temperature]*LIN[temperature]",
        [20.0, 15.0],
        "will follow a curved (quadratic) trend in temperature (no effect where it is 15 °C or 20 °C). "
        "Its coefficient is typically ±1.3 steps per °C squared.",
    ),
    (
        "LIN[hour]*LIN[temperature]",
        [5.0, 15.0],
        "will rise or fall in a straight line with hour (no effect where it is 5), in proportion to how far "
        "temperature is from 15 °C. Its coefficient is typically ±1.3 steps per hour per °C.",
    ),
    (
        "PER[hour]*PER[hour]",
        [1.0, 168.0, 1.0, 24.0],
        f"will follow a smooth pattern in hour that repeats every 24 hours within a further cycle of 168 hours.{SIZE}",
    ),
    (
        "LIN[hour]*PER[hour]",
        [5.0, 1.0, 24.0],
        "will follow a smooth pattern in hour that repeats every 24 hours, with swings that grow the farther hour is "
        "from 5. Its size is typically ±1.3 steps for each hour of distance.",
    ),
    (
        "PER[hour]*SE[hour]",
        [1.0, 24.0, 72.0],
        "will follow a smooth pattern in hour that repeats every 24 hours, with a shape that gradually changes over "
        f"about 72 hours.{SIZE}",
    ),
    (
        "LIN[hour]*SE[hour]",
        [5.0, 3.06],
        f"will {SIMILAR_HOUR}, with swings that grow the farther hour is from 5. "
        "Its size is typically ±1.3 steps for each hour of distance.",
    ),
    (
        "SE[hour]*SE[temperature]",
        [3.06, 5.0],
        f"will {SIMILAR_HOUR}, as long as temperature stays similar (within about 5 °C).{SIZE}",
    ),
    (
        "LIN[temperature]*SE[hour]",
        [15.0, 3.06],
        "will rise or fall in a straight line with temperature (no effect where it is 15 °C), as long as hour stays "
        "similar (within about 3.06 hours). Its slope is typically ±1.3 steps per °C.",
    ),
    (
        "PER[hour]*PER[yday]",
        [1.0, 24.0, 1.0, 365.0],
        "will follow a smooth pattern in hour that repeats every 24 hours, changing with yday in a cycle of 365 "
        f"days.{SIZE}",
    ),
    (
        "LIN[x]*LIN[x]*PER[x]",
        [0.0, 2.0, 1.0, 4.0],
        "will follow a smooth pattern in x that repeats with period 4, with swings that grow faster and faster as x "
        "moves away from 0 or 2. Its size is typically ±1.3 steps per unit of x squared.",
    ),
    (
        "PER[hour]*SE[activity]*SE[temperature]",
        [1.0, 24.0, 0.2, 5.0],
        "will follow a smooth pattern in hour that repeats every 24 hours, as long as activity stays the same (still, "
        f"active or unknown), and as long as temperature stays similar (within about 5 °C).{SIZE}",
    ),
]


@pytest.mark.parametrize(("text", "values", "expected"), CASES)
def test_what_each_kind_of_product_says(text, values, expected):
    found = sentences(text, [1.69, *values, 4.0])
    assert found == [
        f"Step count {expected}",
        "What remains unexplained varies by about ±2 steps from row to row.",
    ]


def test_the_empty_composition():
    assert sentences("", [4.0]) == [
        "No structure has been found yet in step count; there is only noise.",
        "It varies by about ±2 steps from row to row.",
    ]


def test_the_empty_composition_beyond_what_users_share():
    fitted = Hyperparameters.from_values(parse(""), [4.0])
    first = describe(fitted, target="y", shared=True)[0]
    assert first.text == "No pattern of a user's own has been found in y: all but what users share is noise."


def test_shares_decide_the_order_and_are_shown():
    text, values = "LIN[temperature] + SE[hour]", [100.0, 15.0, 1.69, 3.06, 1.0]
    small, large = parse(text).products
    expected = [
        f"Step count will {SIMILAR_HOUR}.{SIZE[:-1]}; in the rows seen it makes up about 62% of the variation of "
        "step count, noise included.",
        "Step count will also rise or fall in a straight line with temperature (no effect where it is 15 °C). "
        "Its slope is typically ±10 steps per °C; in the rows seen it makes up less than 1% of the "
        "variation of step count, noise included.",
        "What remains unexplained varies by about ±1 step from row to row.",
    ]
    assert sentences(text, values, shares={small: 0.004, large: 0.62}) == expected
    assert sentences(text, values, shares=np.array([0.004, 0.62])) == expected
    assert sentences(text, values)[0].startswith("Step count will rise")  # by amplitude, without shares
    found = describe(Hyperparameters.from_values(parse(text), values), target="y", shares=[0.997, 0.003])
    assert "more than 99%" in str(found[0])
    assert [(s.product, s.share) for s in found] == [(small, 0.997), (large, 0.003), (None, None)]


def test_labels_are_said_in_place_of_names():
    said = sentences(
        "LIN[x] + SE[hour]",
        [1.0, 2.0, 1.0, 3.0, 1.0],
        labels={"hour": "time of day", "x": "speed", "step count": "mood"},
    )
    assert said[0].startswith("Mood will rise or fall in a straight line with speed (no effect where it is 2).")
    assert "per unit of speed" in said[0]
    assert said[1].startswith("Mood will also be similar to what was observed at a similar time of day, within about 3")


@pytest.mark.parametrize(
    ("text", "values", "noun"),
    [
        ("", [4.0], "no pattern, only noise"),
        ("LIN[temperature]", [1.0, 15.0, 4.0], "a straight line in temperature"),
        ("LIN[temperature]*LIN[temperature]", [1.0, 15.0, 20.0, 4.0], "a bent line in temperature"),
        (
            "LIN[temperature] + SE[hour]",
            [1.0, 15.0, 2.0, 3.0, 4.0],
            "a smooth curve over time of day and a straight line in temperature",
        ),
        ("PER[hour]", [1.0, 0.5, 24.0, 4.0], "a rhythm in time of day that comes back every 24 hours"),
        ("PER[hour]", [1.0, 0.5, 1.0, 4.0], "a rhythm in time of day that comes back every hour"),
        (
            "PER[hour]*SE[hour]",
            [1.0, 0.5, 24.0, 72.0, 4.0],
            "a rhythm in time of day that comes back every 24 hours, with a shape that gradually changes over about 72 "
            "hours",
        ),
        (
            "LIN[temperature]*SE[activity]",
            [1.0, 15.0, 0.2, 4.0],
            "a straight line in temperature, different for different values of activity",
        ),
        ("SE[activity]", [1.0, 0.2, 4.0], "a difference by activity"),
        ("LIN[tod]", [1.0, 0.0, 4.0], "a difference by tod"),
        ("LIN[odd]", [1.0, 0.0, 4.0], "a straight line in odd"),
    ],
)
def test_compositions_as_nouns(text, values, noun):
    columns = ("hour", "temperature", "activity", "tod", "odd")
    schema = Schema(
        "who", "day", "y", columns, Batching(size=1), units={"hour": "hours"}, levels=LEVELS,
        labels={"hour": "time of day"},
        value_names={"tod": {0: "morning", 1: "evening"}, "odd": {3: "three"}},
    )  # fmt: skip
    assert noun_of(Hyperparameters.from_values(parse(text), values), schema, Scaler.identity(columns)) == noun


def test_without_a_pattern_of_their_own_users_still_share_one():
    schema, nothing = Schema("who", "day", "y", ("x",), Batching(size=1)), Hyperparameters.from_values(parse(""), [4.0])
    noun = noun_of(nothing, schema, Scaler.identity(("x",)), shared=True)
    assert noun == "what users share, with no pattern of their own"


def test_wrong_shares_are_refused():
    values = [1.0, 15.0, 1.0, 3.0, 1.0]
    for shares, problem in [
        ([0.5], "2 products, got 1"),
        ([0.5, 1.5], "between 0 and 1"),
        ([0.5, float("nan")], "between 0 and 1"),
        ({}, r"no share given for LIN\[temperature\], SE\[hour\]"),
    ]:
        with pytest.raises(KernelError, match=problem):
            sentences("LIN[temperature] + SE[hour]", values, shares=shares)


class Scaled:
    """Hours from [0, 1] over 6 to 22 o'clock, steps in thousands."""

    def length(self, covariate, value):
        return 16.0 * value

    def location(self, covariate, value):
        return 6.0 + 16.0 * value

    def target_size(self, value):
        return 1000.0 * value


def test_scaled_hyperparameters_are_said_in_data_units():
    assert sentences("SE[hour]", [0.25, 0.125, 0.01], scale=Scaled()) == [
        "Step count will be similar to what was observed at a similar hour, within about 2 hours. "
        "This part is typically ±500 steps.",
        "What remains unexplained varies by about ±100 steps from row to row.",
    ]
    # 500 steps per range of 16 hours; and PER's lengthscale has no unit, so only its period is scaled.
    assert (
        "(no effect where it is 14). Its slope is typically ±31.2 steps per hour."
        in (sentences("LIN[hour]", [0.25, 0.5, 0.01], scale=Scaled())[0])
    )
    assert "±1.95 steps per hour squared" in sentences("LIN[hour]*LIN[hour]", [0.25, 0.5, 0.5, 0.01], scale=Scaled())[0]
    assert (
        "a smooth pattern in hour that repeats every 24 hours"
        in (sentences("PER[hour]", [0.25, 1.2, 1.5, 0.01], scale=Scaled())[0])
    )


@pytest.mark.parametrize(
    ("target", "start"),
    [("step count", "Step count"), ("log_steps", "log_steps"), ("y", "y"), ("V1", "V1"), ("the mood", "The mood")],
)
def test_names_of_columns_keep_their_case(target, start):
    assert sentences("SE[hour]", [1.0, 1.0, 1.0], target=target)[0].startswith(f"{start} will be")


def test_a_description_is_a_sequence_that_prints_line_by_line():
    found = describe(Hyperparameters.from_values(parse("SE[hour]"), [1.0, 1.0, 1.0]), target="y")
    assert isinstance(found, Description)
    assert len(found) == 2
    assert found[0].product == parse("SE[hour]").products[0]
    assert found[:1] == (found[0],)
    assert str(found) == f"{found[0]}\n{found[1]}"
    assert isinstance(found[1], Sentence)


names = st.sampled_from(["hour", "temperature", "steps30pre", "activity", "precip.chance", "x"])
atoms = st.builds(Atom, st.sampled_from(["LIN", "PER", "SE"]), names)
products = st.lists(atoms, min_size=1, max_size=5).map(lambda found: Product(tuple(found)))
compositions = st.lists(products, max_size=4).map(lambda found: Composition(tuple(found)))


@settings(max_examples=300, deadline=None)
@given(compositions, st.data(), st.booleans(), st.booleans())
def test_every_composition_has_well_mannered_sentences(composition, data, with_units, with_shares):
    size = layout_of(composition).size
    vector = data.draw(st.lists(st.floats(-40.0, 40.0), min_size=size, max_size=size))
    share = st.lists(st.floats(0.0, 1.0), min_size=len(composition), max_size=len(composition))
    found = describe(
        Hyperparameters(composition, tuple(vector)),
        target="step count",
        units=UNITS | {"precip.chance": "%"} if with_units else None,
        levels=LEVELS if with_units else None,
        shares=data.draw(share) if with_shares else None,
    )
    assert len(found) == max(len(composition), 1) + 1
    assert {s.product for s in found if s.product} == set(composition)
    for sentence in found:
        text = sentence.text
        assert re.fullmatch(r"[A-Z][^\n]+\.", text)
        assert not re.search(r"\bnan\b|\binf\b|None|  | [,.;)]|\( |,,|\.\.|e[+-]\d", text)
        assert not re.search(r"(?<![\d.])1 (hours|steps|days|levels)\b", text)
        assert text.count("(") == text.count(")")
        if sentence.product is not None:
            assert all(name in text for name in sentence.product.covariates)
            assert text.startswith("Step count will ")
    shown = [s.share for s in found if s.share is not None]
    assert shown == sorted(shown, reverse=True)
    assert not math.isnan(sum(shown))

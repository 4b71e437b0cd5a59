"""What was found of the pilot users, in words, from the rows that a model keeps."""

import re
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.gp.student import Drawing
from kerneltrail.report.group_words import group_description
from trajectory.small import mean_model, small_model

MODEL = small_model()


def row(user, covariate, shape, start, end, change, half=0.3, *, levels=None, period=None, clear=None):
    return {
        "user": user, "rows": 12, "covariate": covariate, "shape": shape, "from": start, "to": end, "change": change,
        "lower": change - half, "upper": change + half, "probability_of_sign": 0.99,
        "clear": abs(change) > half if clear is None else clear, "per_unit": None, "period": period, "levels": levels,
        "read": 1.0,
    }  # fmt: skip


def words(rows, **schema):
    model = replace(MODEL, pilot_effects=tuple(rows), schema=replace(MODEL.schema, **schema))
    return [sentence.text for sentence in group_description(model)]


def test_directions_are_counted_with_the_range_of_their_sizes():
    changes = [1.0, 0.9, 1.4, 1.1, 1.2, 0.1, -0.2, 0.0]
    rows = [row(f"p{i}", "hour", "line", 8.0, 20.0, change) for i, change in enumerate(changes)]
    assert words(rows, units={"mood": "points"}) == [
        "As hour goes from 8 to 20, mood rises for 5 of 8 pilot users (by 0.9 to 1.4 points), falls for none, and is "
        "not clear for 3."
    ]
    down = [{**each, "change": -each["change"]} for each in rows]
    assert words(down[:5], labels={"mood": "the mood", "hour": "the hour"}) == [
        "As the hour goes from 8 to 20 hours, the mood falls for 5 of 5 pilot users (by 0.9 to 1.4)."
    ]
    assert words([*rows[:3], *down[:2]]) == [
        "As hour goes from 8 to 20, mood rises for 3 of 5 pilot users (by 0.9 to 1.4) and falls for 2 (by 0.9 to 1)."
    ]


def test_two_levels_are_compared():
    rows = [row(f"p{i}", "steps", "levels", 0.0, 1.0, change, levels=2) for i, change in enumerate((1.0, 2.0, 0.1))]
    assert words(rows, value_names={"steps": {0: "still", 1: "active"}}) == [
        "Where steps is active rather than still, mood is higher for 2 of 3 pilot users (by 1 to 2), is lower for "
        "none, and is not clear for 1."
    ]


def test_curves_say_where_most_turn():
    peaks = [17.0, 17.4, 16.9, 9.0]
    rows = [row(f"p{i}", "hour", "curve", 12.0, peak, 1.5) for i, peak in enumerate(peaks)]
    rows.append(row("p4", "hour", "trend", 8.0, 20.0, 0.9))
    assert words(rows) == [
        "As hour goes from 8 to 20, mood rises for 1 of 5 pilot users (by 0.9), falls for none, and goes up and down "
        "for 4. Of these 4 users, 3 are highest where hour is about 17 and all are lowest where hour is about 12; "
        "highest and lowest differ by 1.5, within the middle 80 % of all pilot users' rows."
    ]
    apart = [row(f"p{i}", "hour", "curve", 20.0 - 3 * i, 5.0 * i, 1.0 + i) for i in range(3)]
    assert words(apart) == [
        "Depending on hour, mood goes up and down for 3 of 3 pilot users. Of these 3 users, no more than half are "
        "highest, or lowest, at the same place; highest and lowest differ by 1 to 3, within the middle 80 % of all "
        "pilot users' rows."
    ]
    assert words(apart[:1]) == [
        "Depending on hour, mood goes up and down for 1 of 1 pilot users. For this one it is highest where hour is "
        "about 0 and lowest where hour is about 20; highest and lowest differ by 1, within the middle 80 % of all "
        "pilot users' rows."
    ]
    rhythms = [row(f"p{i}", "hour", "rhythm", 5.0, 17.0, 1.0, period=24.0) for i in range(2)]
    assert words(rhythms)[0].startswith(
        "Depending on hour, mood goes up and down, every 24 hours or so, for 2 of 2 pilot users. Of these 2 users, all"
    )


def test_more_than_two_levels():
    rows = [row(f"p{i}", "steps", "levels", 0.0, 2.0, 1.0, levels=3) for i in range(3)]
    assert words(rows, value_names={"steps": {0: "none", 1: "some", 2: "many"}}) == [
        "Depending on steps, mood differs for 3 of 3 pilot users. Of these 3 users, all are highest where steps is "
        "many and all are lowest where steps is none; highest and lowest differ by 1."
    ]


def test_what_is_unclear_or_not_read():
    unclear = [row(f"p{i}", "hour", "line", 8.0, 20.0, 0.1) for i in range(2)]
    unread = [row(f"p{i}", "hour", "line", 8.0, 20.0, 0.0, 0.0) for i in range(2, 4)]
    assert words(unclear) == ["Hour has no clear effect for any of the 2 pilot users."]
    assert words(unread) == ["Hour plays no part for any of the 2 pilot users."]
    both = "Hour has no clear effect for any of the 4 pilot users; for 2 of them it plays no part."
    assert words([*unclear, *unread]) == [both]
    one = row("p9", "hour", "line", 8.0, 20.0, 1.0)
    assert words([one, *unread])[0].endswith("falls for none, and hour plays no part for 2.")


def test_the_largest_effects_come_first():
    rows = [row("p", "hour", "line", 0.0, 1.0, 1.0), row("p", "steps", "line", 0.0, 1.0, -2.0)]
    assert [text.split(" ")[1] for text in words(rows)] == ["steps", "hour"]
    assert [s.covariates for s in group_description(replace(MODEL, pilot_effects=tuple(rows)))] == [
        ("steps",),
        ("hour",),
    ]
    assert words([]) == []


@pytest.mark.parametrize("sizes", [(1.0, 2.0), (0.004, 1e4)])
def test_numbers_are_plain(sizes):
    said = words([row(f"p{i}", "hour", "line", 0.0, 1.0, size, 0.1 * size) for i, size in enumerate(sizes)])[0]
    assert "nan" not in said
    assert "e-" not in said


def test_what_acting_is_expected_to_change_for_somebody_new():
    model = mean_model()
    columns = {"hour": [0.0, 1.0, 2.0, 9.0, 20.0, 22.0, 24.0], "steps": [0.0, 5.0, 40.0, 250.0, 400.0, 490.0, 500.0]}
    found = [row("p0", "hour", "line", 8.0, 20.0, 1.0)]
    model = replace(model, provenance={**model.provenance, "columns": columns}, pilot_effects=tuple(found))
    shared, spread = model.mean.weights[3:], model.reward.weight_variances[1:]
    hour = model.scaler.scaled_location("hour", 9.0)
    mean = model.scaler.scale * (shared[0] + shared[1] * hour)
    half = 1.6448536 * model.scaler.scale * np.sqrt(spread[0] + spread[1] * hour**2)
    text, along = (sentence.text for sentence in group_description(model) if "somebody new" in sentence.text)
    said = re.search(
        r"^For somebody new, action is expected to raise mood by ([\d.]+) in a usual context. The change for "
        r"one person lies between ([−+\d.]+) and ([−+\d.]+) \(90 % interval; probability 0\.\d+ that action raises "
        r"it\): people may differ, and \d+ pilot users tell the average only so well\.$",
        text,
    )
    numbers = [float(each.replace("−", "-")) for each in said.groups()]
    assert numbers == pytest.approx([mean, mean - half, mean + half], abs=0.06)
    by_hour = re.search(
        r"^By hour: for somebody new, action is expected to change mood by ([−+\d.]+) where it is 2 \(between "
        r"([−+\d.]+) and ([−+\d.]+)\), and by ([−+\d.]+) where it is 20 \(between ([−+\d.]+) and ([−+\d.]+)\); "
        r"90 % intervals for one person\.$",
        along,
    )
    expected = []
    for value in (2.0, 20.0):  # the pilot users' 10 % and 90 %
        at = model.scaler.scaled_location("hour", value)
        middle = model.scaler.scale * (shared[0] + shared[1] * at)
        reach = 1.6448536 * model.scaler.scale * np.sqrt(spread[0] + spread[1] * at**2)
        expected += [middle, middle - reach, middle + reach]
    assert [float(each.replace("−", "-")) for each in by_hour.groups()] == pytest.approx(expected, abs=0.06)
    assert "somebody new" not in str(group_description(replace(model, mean=None)))
    assert not [s for s in group_description(replace(MODEL, pilot_effects=tuple(found))) if "somebody new" in s.text]


def test_outcomes_far_out_are_spoken_of():
    rows = [row("p0", "hour", "line", 8.0, 20.0, 1.0)]
    heavy = replace(MODEL, pilot_effects=tuple(rows), tails=0.3)
    *_, last = (sentence.text for sentence in group_description(heavy))
    assert last == (
        "Now and then a pilot user's mood lies much further from its prediction than usual; intervals allow for that."
    )
    sized = replace(heavy, tails_interval=(0.2, 0.5))
    assert "(a Student-t distribution with 7.6 degrees of freedom, 90 % interval 4.9 to 11)" in str(
        list(group_description(sized))[-1]
    )
    heaviest = replace(heavy, tails=0.95, tails_interval=(0.95, 0.95))
    assert "(a Student-t distribution with 3 degrees of freedom or fewer)" in str(list(group_description(heaviest))[-1])
    unsure = replace(heavy, tails_interval=(0.0, 0.5))
    assert "90 % interval 4.9 upwards" in str(list(group_description(unsure))[-1])
    anew = replace(heavy, drawing=Drawing(4.0))
    assert "far from what a user's other rows say counts as if it lay nearer" in str(list(group_description(anew))[-1])
    assert len(group_description(replace(heavy, tails=0.05))) == 1
    assert not group_description(replace(heavy, pilot_effects=()))

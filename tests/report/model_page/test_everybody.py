"""All users side by side: every line and every word is what was found of a user."""

import re
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.report.model_page import follow_users
from kerneltrail.report.model_page.effect_data import is_drawn
from kerneltrail.report.model_page.everybody import _kept, effects_section, pilot_picture, treatment_section
from kerneltrail.report.model_page.followed_user import Findings
from kerneltrail.trajectory.effects import Effect, Effects
from kerneltrail.trajectory.treatment import TreatmentEffect
from trajectory.small import rewarded_model, rows, small_model


@pytest.fixture(scope="module")
def followed():
    return follow_users(rewarded_model(), [rows("pilot 0", seed=0), *(rows(f"u{i}", seed=20 + i) for i in range(3))])


def effect(name, mean, sd, shape="line", x=(0.0, 1.0)):
    change = NormalMixture([1.0], [[mean]], [[sd**2]])
    curve = NormalMixture([1.0], [mean * np.array(x)], [[sd**2, sd**2]])
    return Effect(name, shape, np.array(x), curve, x[0], x[1], change, 1.0)


def found(one, hour, steps=(0.0, 0.0), gain=(0.0, 1.0)):
    effects = Effects((effect("hour", *hour), effect("steps", *steps)), (), 12, 0.1)
    treatment = TreatmentEffect(NormalMixture([1.0], [[gain[0]]], [[gain[1] ** 2]]), (), 12)
    return replace(one, findings=Findings(effects, treatment))


def test_the_forest_has_a_line_for_every_user_and_the_table_their_numbers(followed):
    section = effects_section(rewarded_model(), followed)
    tally, picture, numbers = section.blocks
    assert len(tally.items) == 2
    assert picture.broad
    assert "so their numbers differ" in picture.caption
    assert "so their numbers differ" not in effects_section(rewarded_model(), followed[1:]).blocks[1].caption
    (table,) = numbers.blocks
    assert [row[0] for row in table.rows[::2]] == ["pilot 0 (pilot)", "u0", "u1", "u2"]
    first = followed[1].findings.effects[0]
    row = table.rows[2]
    assert row[1] == first.covariate
    low, high = first.interval()
    told = re.fullmatch(r"(\S+) \((\S+)\u00a0to\u00a0(\S+)\)", row[3]).groups()  # a line may break before the interval
    numbers = [float(number.replace("−", "-")) for number in told]
    assert numbers == pytest.approx([first.size, low, high], abs=0.06 * (high - low))


def test_the_tally_counts_which_way_clear_effects_go(followed):
    sizes = [(2.0, 0.1), (1.0, 0.1), (-1.0, 0.1), (0.1, 1.0)]
    users = [found(one, size) for one, size in zip(followed, sizes, strict=True)]
    hour, steps = effects_section(rewarded_model(), users).blocks[0].items
    assert hour == "hour: clear for 3 of 4 users: mood rises with it for 2 and falls with it for 1."
    assert steps == "steps: for none of 4 users is an effect clear."


def test_a_covariate_that_no_kernel_reads_has_no_line_of_length_zero(followed):
    """Without a population to differ from, the kernel says 0 ± 0; that is no finding."""
    one = found(followed[0], (1.0, 0.1))
    assert not is_drawn(one.findings.effects["steps"], rewarded_model().schema)
    (table,) = effects_section(rewarded_model(), [one]).blocks[2].blocks
    assert table.rows[1][3:5] == ["–", "–"]


def test_what_acting_adds_is_counted_and_availability_stated(followed):
    gains = [(1.0, 0.1), (0.5, 0.1), (-1.0, 0.1), (0.1, 1.0)]
    users = [found(one, (0.0, 1.0), gain=gain) for one, gain in zip(followed, gains, strict=True)]
    section = treatment_section(rewarded_model(), users)
    said, availability = section.blocks[0].items
    assert "clearly raises mood for 2 of 4 users, clearly lowers it for 1, and is not clear either way for 1" in said
    assert "does not say when users were not available" in availability
    some = replace(users[0], user=replace(users[0].user, availability=[1, 0, 0] * 4))
    availability = treatment_section(rewarded_model(), [some]).blocks[0].items[1]
    assert availability.startswith("At 8 of 12 rows the user was not available")
    assert "say nothing about what action adds" in availability
    always = replace(users[0], user=replace(users[0].user, availability=[1] * 12))
    assert treatment_section(rewarded_model(), [always]).blocks[0].items[1].startswith("Users were available at all 12")
    model = rewarded_model()
    only = replace(model, schema=replace(model.schema, availability="free", available_only=True))
    assert "were left out" in treatment_section(only, users).blocks[0].items[1]


def test_how_it_was_estimated_depends_on_what_was_logged(followed):
    model = rewarded_model()
    assert "was not logged" in treatment_section(model, followed).blocks[2].blocks[0].text
    centred = replace(model, reward=replace(model.reward, typical=0.5))
    text = treatment_section(centred, followed).blocks[2].blocks[0].text
    assert "difference from the probability" in text
    assert "a straight line in hour" in text


def test_without_an_action_or_rows_there_is_nothing_to_say():
    model = small_model()
    users = follow_users(model, [rows("new", seed=4)])
    assert treatment_section(model, users) is None
    assert effects_section(model, ()) is None


def test_pilot_users_are_drawn_from_what_a_model_keeps():
    row = {
        "user": "pilot 0", "covariate": "hour", "shape": "levels", "from": 20.0, "to": 8.0, "change": 1.0,
        "lower": 0.5, "upper": 1.5, "clear": True,
    }  # fmt: skip
    nothing = {**row, "covariate": "steps", "change": 0.0, "lower": 0.0, "upper": 0.0, "clear": False}
    model = replace(small_model(), pilot_effects=(row, nothing))
    one, two = pilot_picture(model), pilot_picture(replace(model, pilot_effects=(row,)))
    assert "first 1 of 3 users" in one.caption
    assert one.wide == two.wide  # what a kernel does not read is drawn like what is not known
    assert pilot_picture(replace(model, pilot_effects=())) is None


@pytest.mark.parametrize(
    ("shape", "start", "end", "expected"),
    [
        ("levels", 20.0, 8.0, (-1.0, -1.5, -0.5)),
        ("levels", 8.0, 20.0, (1.0, 0.5, 1.5)),
        ("curve", 20.0, 8.0, (1.0, 0.5, 1.5)),
        ("rhythm", 20.0, 8.0, (1.0, 0.5, 1.5)),
    ],
)
def test_levels_are_drawn_from_the_lower_value_to_the_higher(shape, start, end, expected):
    """Who falls over several days lies to the left of 0; what turns is stated from its lowest place to its highest."""
    row = {"shape": shape, "from": start, "to": end, "change": 1.0, "lower": 0.5, "upper": 1.5, "clear": True}
    drawn = _kept(row)
    assert (drawn.mean, drawn.low, drawn.high) == expected

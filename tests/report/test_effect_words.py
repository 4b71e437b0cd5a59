"""What was found of one user, in words: every shape and sign, what is unclear, labels, names of values."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kerneltrail.data import Schema
from kerneltrail.data.batching import Batching
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels.phrases import without_zero
from kerneltrail.report.effect_words import (
    effect_sentence,
    effects_description,
    interaction_sentence,
)
from kerneltrail.report.effect_words import treatment_sentences as said_of
from kerneltrail.trajectory.effects import Effect, Interaction
from kerneltrail.trajectory.treatment import FeatureAdvantage, TreatmentEffect
from trajectory.small import COVARIATES, follow, mean_model, rewarded_model, rows, small_model

SCHEMA = Schema(
    user="who",
    order="day",
    target="log_steps",
    covariates=("before", "hour", "tod", "weather"),
    batching=Batching(size=5),
    action="send",
    units={"before": "log steps", "log_steps": "log steps", "hour": "hours"},
    levels={"weather": ("dry", "rain", "snow")},
    labels={"before": "steps before", "tod": "time of day", "send": "a prompt"},
    value_names={"tod": {0: "morning", 1: "evening"}},
)
BRUSHING = Schema(
    user="who",
    order="day",
    target="brushing",
    covariates=("tod",),
    batching=Batching(size=5),
    units={"brushing": "s"},
    labels={"brushing": "brushing time", "tod": "time of day"},
    value_names={"tod": {0: "morning", 1: "evening"}},
)


def normal(mean, sd, places=1):
    return NormalMixture([1.0], [[mean] * places], [[sd**2] * places])


def effect(covariate, shape, start, end, change, *, x=None, read=1.0, period=None):
    """An effect with that change; values from a little below its ends to a little above unless given."""
    if x is None:
        low, high = min(start, end), max(start, end)
        x = np.array([low - 0.5, low, high, high + 0.5])
    return Effect(covariate, shape, np.asarray(x, float), normal(0.0, 1.0, len(x)), start, end, change, read, period)


CASES = [
    (
        effect("before", "line", 2.0, 4.7, normal(2.106, 0.386)),
        "log_steps rises with steps before: by 0.78 log steps per log step (90 % interval 0.54 to 1.02), so by 2.1 log "
        "steps from 2 to 4.7 log steps (the middle 80 % of the rows). That it rises is almost certain (probability "
        "above 0.99).",
    ),
    (
        effect("before", "line", 2.0, 4.7, normal(-2.106, 0.386)),
        "log_steps falls with steps before: by 0.78 log steps per log step (90 % interval 0.54 to 1.02), so by 2.1 log "
        "steps from 2 to 4.7 log steps (the middle 80 % of the rows). That it falls is almost certain (probability "
        "above 0.99).",
    ),
    (
        effect("hour", "trend", 8.0, 20.0, normal(1.2, 0.6), x=[8.0, 14.0, 20.0]),
        "log_steps rises with hour, in a curve without a turn: by 1.2 log steps (90 % interval 0.2 to 2.2) from 8 to "
        "20 (nearly all rows). That it rises is very likely (probability 0.98).",
    ),
    (
        effect("hour", "curve", 9.0, 17.0, normal(1.9, 0.43), x=np.linspace(8.0, 21.0, 31)),
        "log_steps is highest where hour is about 17 and lowest where it is about 9, within the middle 80 % of the "
        "rows: a difference of 1.9 log steps (90 % interval 1.2 to 2.6). That there is such a difference is almost "
        "certain (probability above 0.99).",
    ),
    (
        effect("hour", "rhythm", 5.0, 17.0, normal(1.9, 0.43), x=np.linspace(0.0, 48.0, 31), period=24.04),
        "log_steps goes up and down with hour in a rhythm that comes back every 24 hours. Within the middle 80 % "
        "of the rows it is highest where hour is about 17 and lowest where it is about 5: a difference of 1.9 log "
        "steps (90 % interval "
        "1.2 to 2.6). That there is such a difference is almost certain (probability above 0.99).",
    ),
    (
        effect("tod", "levels", 0.0, 1.0, normal(-0.6, 0.2), x=[0.0, 1.0]),
        "log_steps is 0.6 log steps lower where time of day is evening than where it is morning (90 % interval 0.27 to "
        "0.93; probability above 0.99 that it is lower).",
    ),
    (
        effect("weather", "levels", 2.0, 0.0, normal(0.8, 0.3), x=[0.0, 1.0, 2.0]),
        "log_steps is highest where weather is dry and lowest where it is snow: a difference of 0.8 log steps (90 % "
        "interval 0.31 to 1.29). That there is such a difference is almost certain (probability above 0.99).",
    ),
    (
        effect("before", "line", 2.0, 4.7, normal(0.15, 0.2)),
        "No clear effect of steps before: from 2 to 4.7 log steps the change in log_steps lies between −0.18 and +0.48 "
        "log steps (90 % interval).",
    ),
    (
        effect("hour", "trend", 8.0, 20.0, normal(-0.3, 0.2)),
        "No clear effect of hour: from 8 to 20 the change in log_steps lies between −0.63 and +0.03 log steps (90 % "
        "interval). A fall is likelier (probability 0.93).",
    ),
    (
        effect("hour", "line", 8.0, 20.0, normal(0.36, 0.2)),
        "log_steps probably rises with hour, but that is not clear yet: from 8 to 20 the change in log_steps lies "
        "between +0.03 and +0.69 log steps (90 % interval; probability 0.96 that it rises).",
    ),
    (
        effect("hour", "curve", 9.0, 17.0, normal(0.1, 0.2), x=np.linspace(8.0, 21.0, 31)),
        "No clear effect of hour: the difference in log_steps between 17, where it seems highest, and 9, where it "
        "seems lowest within the middle 80 % of the rows, lies between −0.23 and +0.43 log steps (90 % interval). The "
        "two were picked because they differ "
        "most, and by chance alone some two always do.",
    ),
    (
        effect("tod", "levels", 0.0, 1.0, normal(0.3, 0.2), x=[0.0, 1.0]),
        "No clear difference by time of day: log_steps where it is evening less that where it is morning lies between "
        "−0.03 and +0.63 log steps (90 % interval). That it is higher where time of day is evening is likelier "
        "(probability 0.93).",
    ),
    (
        effect("tod", "levels", 0.0, 1.0, normal(-0.36, 0.2), x=[0.0, 1.0]),
        "log_steps is probably lower where time of day is evening than where it is morning, but that is not clear yet: "
        "the difference lies between −0.69 and −0.03 log steps (90 % interval; probability 0.96 that it is lower).",
    ),
]


@pytest.mark.parametrize(("found", "sentence"), CASES)
def test_what_each_shape_says(found, sentence):
    assert effect_sentence(found, SCHEMA) == sentence


def test_a_label_begins_a_sentence_with_a_capital():
    found = effect("tod", "levels", 0.0, 1.0, normal(64.0, 14.0), x=[0.0, 1.0])
    assert effect_sentence(found, BRUSHING) == (
        "Brushing time is 64 s higher where time of day is evening than where it is morning (90 % interval 41 to 87; "
        "probability above 0.99 that it is higher)."
    )


def test_a_slope_too_small_to_be_read_is_said_over_the_span():
    schema = Schema("who", "day", "y", ("steps",), Batching(size=5))
    said = effect_sentence(effect("steps", "line", 1000.0, 9000.0, normal(2.0, 0.4)), schema)
    assert said.startswith("y rises with steps: by 2 (90 % interval 1.3 to 2.7) from 1000 to 9000 (the middle")


def test_covariates_that_did_not_vary():
    still = effect("hour", "curve", 12.0, 12.0, normal(0.0, 0.0), x=[11.0, 12.0, 13.0])
    assert (
        effect_sentence(still, SCHEMA) == "The effect of hour cannot be told yet: it is about 12 in most rows so far."
    )
    curve = NormalMixture([1.0], [[0.0, 0.3]], [[0.0, 0.2]])  # stated around the only level that was met
    one = Effect("tod", "levels", np.array([0.0, 1.0]), curve, 0.0, 1.0, normal(0.3, 0.4), 1.0)
    assert (
        effect_sentence(one, SCHEMA)
        == "The effect of time of day cannot be told yet: in all rows so far it is morning."
    )


mixtures = st.integers(1, 3).flatmap(
    lambda count: st.tuples(
        *(
            st.lists(st.floats(low, high), min_size=count, max_size=count)
            for low, high in ((0.1, 1.0), (-3.0, 3.0), (0.01, 1.0))
        )
    ).map(lambda parts: NormalMixture(parts[0], np.array(parts[1])[:, None], np.array(parts[2])[:, None] ** 2))
)


@settings(max_examples=300, deadline=None)
@given(mixtures, st.sampled_from(["line", "trend", "curve", "rhythm", "levels"]), st.booleans())
def test_the_direction_in_words_is_the_sign_of_the_effect(change, shape, backwards):
    start, end = (20.0, 8.0) if backwards else (8.0, 20.0)
    found = effect("hour", shape, start, end, change, x=[8.0, 20.0], period=24.0 if shape == "rhythm" else None)
    assume(found.size != 0.0)
    said = effect_sentence(found, SCHEMA)
    upwards = (end - start) * found.size > 0  # the target is higher at 20 than at 8
    if not found.clear:
        low, high = found.interval()
        probable = without_zero(low, high)
        assert (" probably " in said, said.startswith("No clear ")) == (probable, not probable)
        rising = (end - start) * ((low + high) if probable else found.size) > 0
        top, bottom = ("20", "8") if rising else ("8", "20")
        if shape in ("curve", "rhythm"):
            pattern = r"probably highest where hour is (\d+) and lowest where it is (\d+)"
            if not probable:
                pattern = r"between (\d+), where it seems highest, and (\d+), where it seems lowest"
            assert re.search(pattern, said).groups() == (top, bottom)
        elif probable and shape == "levels":
            higher = re.search(r"probably (higher|lower) where hour is (\d+) than where it is (\d+)", said)
            assert {"higher": higher[2], "lower": higher[3]}[higher[1]] == top
        elif probable:
            assert f" probably {'rises' if rising else 'falls'} with " in said
    elif shape in ("line", "trend"):
        assert (" rises with " in said, " falls with " in said) == (upwards, not upwards)
        assert f"That it {'rises' if upwards else 'falls'} is" in said
    elif shape == "levels":
        higher = re.search(r"(higher|lower) where hour is (\d+) than where it is (\d+)", said)
        assert {"higher": higher[2], "lower": higher[3]}[higher[1]] == ("20" if upwards else "8")
    else:
        top, bottom = re.search(r"highest where hour is about (\d+) and lowest where it is about (\d+)", said).groups()
        assert (top, bottom) == (("20", "8") if upwards else ("8", "20"))
    assert not re.search(r"nan|None|  |\b-\d|\( ", said)
    assert said[-1] == "."
    sizes = [float(text.replace("−", "-")) for text in re.findall(r"interval (−?[\d.]+) to", said)]
    assert all(size >= 0 for size in sizes)  # a size has no sign: the verb has it


def test_interactions():
    clear = Interaction(
        ("hour", "weather"), np.array([8.0, 20.0]), np.array([0.0, 2.0]), np.zeros((2, 2)), (8.0, 20.0), (0.0, 2.0),
        normal(-1.2, 0.4),
    )  # fmt: skip
    assert interaction_sentence(clear, SCHEMA) == (
        "The effect of hour depends on weather: from 8 to 20, log_steps gains 1.2 log steps less (90 % interval 0.5 to "
        "1.9) where weather is snow than where it is dry. That it gains less is almost certain (probability above "
        "0.99)."
    )
    open_ = Interaction(
        ("hour", "weather"), np.array([8.0, 20.0]), np.array([0.0, 2.0]), np.zeros((2, 2)), (8.0, 20.0), (0.0, 2.0),
        normal(-0.2, 0.4),
    )  # fmt: skip
    assert interaction_sentence(open_, SCHEMA) == (
        "Whether the effect of hour depends on weather is not clear: from 8 to 20, the change in log_steps where "
        "weather is snow less that where it is dry lies between −0.9 and +0.5 log steps (90 % interval)."
    )


def test_what_acting_adds():
    levels = FeatureAdvantage(
        "tod", np.array([0.0, 1.0]), NormalMixture([1.0], [[0.1, 0.9]], [[0.04, 0.04]]), normal(0.8, 0.2)
    )
    x = np.linspace(0.0, 7.0, 9)
    along = FeatureAdvantage("before", x, NormalMixture([1.0], [1.0 - 0.1 * x], [0.04 + 0.0 * x]), normal(-0.7, 0.5))
    found = said_of(TreatmentEffect(normal(0.5, 0.1), (levels, along), 40), SCHEMA)
    assert found == (
        "On average over the recent rows, a prompt raises log_steps by 0.5 log steps (90 % interval 0.34 to 0.66). "
        "That it raises it is almost certain (probability above 0.99).",
        "Where time of day is morning, a prompt changes log_steps by +0.1 log steps (90 % interval −0.23 to 0.43; "
        "probability 0.69 that it raises it); where it is evening, by +0.9 log steps (0.57 to 1.23; probability above "
        "0.99 that it raises it). That the change is higher where time of day is evening is almost certain "
        "(probability above 0.99).",
        "Where steps before is 0 log steps, a prompt changes log_steps by +1 log step (90 % interval 0.67 to 1.33; "
        "probability above 0.99 that it raises it); where it is 7 log steps, by +0.3 log steps (−0.03 to 0.63; "
        "probability 0.93 that it raises it). Whether it depends on steps before is not clear.",
    )
    lowers = said_of(TreatmentEffect(normal(-0.5, 0.1), (), 40), SCHEMA)[0]
    assert "a prompt lowers log_steps by 0.5 log steps (90 % interval 0.34 to 0.66)" in lowers
    probable = said_of(TreatmentEffect(normal(-0.18, 0.1), (), 40), SCHEMA)[0]
    assert probable == (
        "On average over the recent rows, a prompt probably lowers log_steps, but that is not clear yet: the change "
        "lies between −0.34 and −0.02 log steps (90 % interval; probability 0.96 that it lowers it)."
    )
    unsure = said_of(TreatmentEffect(normal(-0.1, 0.1), (), 40), SCHEMA)[0]
    assert unsure.endswith(
        "lies between −0.26 and +0.06 log steps (90 % interval; probability 0.16 that it raises it)."
    )


def test_a_user_s_description_has_effects_by_size_then_the_rest():
    user = rewarded_model().new_user("ann")
    follow(user, rows("ann", seed=9, n=24))
    found = effects_description(user)
    effects = user.effects()
    assert [s.covariates for s in found[:2]] == [(e.covariate,) for e in effects]
    assert [abs(e.size) for e in effects] == sorted((abs(e.size) for e in effects), reverse=True)
    text = str(found)
    assert text.index("All this is for rows without action.") < text.index("Where hour is")
    assert found[-1].text.startswith("What remains unexplained varies by about ±")


def test_the_order_of_covariates_does_not_matter():
    told = []
    for covariates in (COVARIATES, COVARIATES[::-1]):
        user = small_model(covariates=covariates).new_user("ann")
        follow(user, rows("ann", seed=9, n=24, covariates=covariates))
        told.append([s.text for s in effects_description(user)])
    assert told[0] == told[1]


def test_before_any_row_a_population_is_described():
    found = effects_description(mean_model().new_user("ann"))
    assert len(found) == 3


def test_a_curve_that_is_not_clear_probably_has_its_peak_there_if_its_interval_leaves_0_out():
    curve = effect("hour", "curve", 9.0, 17.0, normal(0.36, 0.1), x=np.linspace(8, 21, 31))
    assert effect_sentence(curve, SCHEMA).startswith("log_steps is highest where hour is about 17 and lowest")
    picked = replace(curve, picked=0.3)
    assert not picked.clear
    assert effect_sentence(picked, SCHEMA) == (
        "log_steps is probably highest where hour is 17 and lowest where it is 9 within the middle 80 % of the "
        "rows, but that is not clear yet: the difference lies between +0.2 and +0.52 log steps (90 % interval). The "
        "two were picked because they differ "
        "most, and by chance alone some two always do."
    )


def test_what_takes_off_is_not_said_to_add():
    gains = NormalMixture([1.0], [[-0.5, 0.02]], [[0.01, 0.01]])
    levels = FeatureAdvantage("tod", np.array([0.0, 1.0]), gains, normal(0.52, 0.1))
    text = said_of(TreatmentEffect(normal(-0.2, 0.1), (levels,), 40), SCHEMA)[1]
    assert "a prompt changes log_steps by −0.5 log steps" in text
    assert "where it is evening, by +0.02 log steps" in text


def test_nothing_is_probable_where_most_kernels_have_no_effect_at_all():
    """Nearly all of the probability is at 0, on which side of it is rounding."""
    change = NormalMixture([0.94, 0.06], [[0.0], [-0.29]], [[0.0], [0.1**2]])
    found = effect("hour", "line", 8.0, 20.0, change)
    low, high = found.interval()
    assert low < -0.15 < high < 0.0
    assert effect_sentence(found, SCHEMA).startswith(
        "No clear effect of hour: from 8 to 20 the change in log_steps lies"
    )
    treated = TreatmentEffect(change, (), 20)
    assert said_of(treated, SCHEMA)[0].startswith("Whether a prompt raises or lowers log_steps is not certain")

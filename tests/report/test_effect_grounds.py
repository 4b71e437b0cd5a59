"""What sentences on effects rest on, and of which rows they are."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.report.effect_words import effect_sentence, effects_description, noise_sentence, rest_sentence
from kerneltrail.trajectory.effects import Effects

from .test_effect_words import SCHEMA, effect, normal


def test_covariates_that_are_not_read():
    """Without a population nothing is known of them; with one it is what users share."""
    nobody = NormalMixture([0.7, 0.3], [[0.0], [0.0]], [[0.0], [0.0]])
    assert effect_sentence(effect("hour", "line", 8.0, 20.0, nobody, read=0.0), SCHEMA) == (
        "No effect of hour was found: the probability that it plays a part for this user is below 0.01."
    )
    hardly = NormalMixture([0.97, 0.03], [[0.0], [1.0]], [[0.0], [0.1]])
    assert effect_sentence(effect("hour", "curve", 8.0, 20.0, hardly, read=0.03), SCHEMA).endswith("user is 0.03.")
    sometimes = NormalMixture([0.72, 0.28], [[0.0], [0.2]], [[0.0], [0.1]])
    said = effect_sentence(effect("hour", "line", 8.0, 20.0, sometimes, read=0.28), SCHEMA)
    assert said.startswith("No clear effect of hour")
    assert said.endswith(" The probability that hour plays a part of its own for this user is 0.28.")
    shared = NormalMixture([0.72, 0.28], [[0.1], [0.2]], [[0.05], [0.1]])
    said = effect_sentence(effect("hour", "line", 8.0, 20.0, shared, read=0.28), SCHEMA)
    assert "This rests mostly on what users share and on what is left unexplained; the probability that hour" in said
    assert "rests" not in effect_sentence(effect("hour", "line", 8.0, 20.0, shared, read=0.6), SCHEMA)


def test_what_no_kernel_could_read_has_no_probability():
    """It would be 0 by construction, and say nothing of this user."""
    nobody = normal(0.0, 0.0)
    still = replace(effect("hour", "line", 8.0, 20.0, nobody, read=0.0), readable=False)
    assert effect_sentence(still, SCHEMA) == (
        "No effect of hour was found: none of the kernels learnt from the pilot users reads hour."
    )
    shared = [replace(effect(name, "line", 8.0, 20.0, normal(0.1, 0.05), read=0.0), readable=False) for name in "ab"]
    said = effect_sentence(shared[0], SCHEMA)
    assert said.endswith(
        " This rests mostly on what users share and on what is left unexplained; none of the kernels learnt from the "
        "pilot users reads a."
    )
    both = rest_sentence({each.covariate: each for each in shared}, SCHEMA)
    assert both.endswith("left unexplained: none of the kernels learnt from the pilot users reads a or b.")
    one = replace(shared[1], readable=True, newest=200)
    mixed = rest_sentence({"a": replace(shared[0], newest=200), "b": one}, SCHEMA)
    assert mixed.endswith(
        "left unexplained of the newest 200 rows: none of the kernels learnt from the pilot users reads a; for each of "
        "the others (b), the probability that it plays a part of its own for this user is below 0.01."
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (effect("before", "line", 2.0, 4.7, normal(2.1, 0.4)), "(the middle 80 % of the newest 200 rows)"),
        (effect("hour", "trend", 8.0, 20.0, normal(1.2, 0.5), x=[8, 14, 20]), "(nearly all of the newest 200 rows)"),
        (effect("hour", "curve", 9.0, 17.0, normal(1.9, 0.4)), ", within the middle 80 % of the newest 200 rows:"),
        (effect("hour", "curve", 9.0, 17.0, normal(0.1, 0.4)), "lowest within the middle 80 % of the newest 200 rows,"),
    ],
)  # fmt: skip
def test_of_whom_there_are_more_rows_than_are_compared_it_is_said(found, said):
    assert said in effect_sentence(replace(found, newest=200), SCHEMA)
    assert "newest" not in effect_sentence(found, SCHEMA)


def test_what_several_covariates_rest_on_is_said_once():
    shared = NormalMixture([0.8, 0.2], [[0.1], [0.2]], [[0.05], [0.1]])
    found = [
        effect("before", "line", 2.0, 4.7, normal(2.1, 0.4)),
        effect("hour", "line", 8.0, 20.0, shared, read=0.2),
        effect("weather", "levels", 2.0, 0.0, shared, x=[0.0, 1.0, 2.0], read=0.001),
    ]

    def told(*effects):
        user = SimpleNamespace(
            rows=40,
            model=SimpleNamespace(schema=SCHEMA, takes_action=False),
            effects=lambda: Effects(effects, (), 40, 1.0),
        )
        return [sentence.text for sentence in effects_description(user)]

    together = told(*found)
    assert together[3] == (
        "What is said of hour and weather rests mostly on what users share and on what is left unexplained: for each "
        "of them, the probability that it plays a part of its own for this user is 0.20 at most."
    )
    assert sum("rests mostly" in text for text in together) == 1
    alone = told(found[0], found[2])
    assert len(alone) == 3
    assert alone[1].endswith("weather plays a part of its own for this user is below 0.01.")


def test_an_echo_in_what_is_left_is_said_with_what_it_means():
    heard = noise_sentence(Effects((), (), 400, 2.0, None, 0.58), SCHEMA).text
    assert heard == (
        "What remains unexplained varies by about ±2 log steps from row to row. It is alike in neighbouring rows "
        "(correlation 0.6), so each row says less; the intervals allow for that."
    )
    assert noise_sentence(Effects((), (), 400, 2.0), SCHEMA).text.endswith("row to row.")

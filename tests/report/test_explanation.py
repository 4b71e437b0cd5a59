"""What is said of a followed user: how sure the selection is, and effects that are true."""

import re
from dataclasses import replace

import pytest

import kerneltrail as kt
from kerneltrail.report.group_words import group_description
from trajectory.lines import after, lines, person
from trajectory.small import follow, mean_model, rewarded_model, rows, small_model


@pytest.mark.parametrize("slope", [0.8, -0.8])
@pytest.mark.parametrize("mean", ["none", "population"])
def test_a_known_slope_is_found_with_its_sign_and_within_its_interval(slope, mean):
    # The 90 % interval misses the truth once in ten seeds; this one is fixed.
    told = str(kt.explain(after(lines(mean), person("ann", slope, seed=7))))
    assert f"y {'rises' if slope > 0 else 'falls'} with x: by " in told
    assert "typically" not in told
    low, high = map(float, re.search(r"for each unit of x \(90 % interval ([\d.]+) to ([\d.]+)\)", told).groups())
    assert low <= abs(slope) <= high


def test_the_lead_says_how_sure_the_selection_is_without_kernel_code():
    user = after(lines(), person("ann", 0.8, seed=7))
    first = kt.explain(user)[0].text
    assert first.startswith("After 60 rows, user ann is described best by a straight line in x")
    assert not re.search(r"LIN|SE|PER|\[", str(kt.explain(user)))


@pytest.mark.parametrize(("mean", "beside"), [("none", False), ("population", True)])
def test_the_lead_says_what_the_kernel_stands_beside(mean, beside):
    lead = kt.explain(after(lines(mean), person("ann", 0.8, seed=7)))[0].text
    assert (", besides what users share." in lead) == beside


def test_what_the_lead_says_of_several_descriptions():
    model = small_model()
    user = model.new_user("ann")
    follow(user, rows("ann", seed=5))
    probabilities = list(user.probabilities.values())
    lead = kt.explain(user)[0].text
    assert "Of the 3 descriptions that the pilot users had, this one is " in lead
    if probabilities[0] < 0.9:
        assert f"({probabilities[1]:.2f}). More rows may change that." in lead
    greedy = model.new_user("ann", selection="greedy")
    follow(greedy, rows("ann", seed=5))
    assert "no probability to say how sure" in kt.explain(greedy)[0].text


def test_labels_are_used_everywhere():
    model = lines()
    labelled = replace(model, schema=replace(model.schema, labels={"x": "steps before", "y": "mood"}))
    told = str(kt.explain(after(labelled, person("ann", 0.8, seed=7))))
    assert "described best by a straight line in steps before" in told
    assert "Mood rises with steps before: by " in told
    assert not re.search(r"\b[xy]\b", told)


def test_before_any_row_it_is_what_is_typical_of_the_pilot_users():
    model = lines()
    found = kt.explain(model.new_user("ann"))
    assert found[0].text == "No rows of user ann have been seen yet. Typical of the pilot users is this:"
    assert [s.text for s in found[1:-1]] == [s.text for s in group_description(model)]
    assert "rises for 3 of 4 pilot users" in found[1].text
    assert "falls for 1 (by" in found[1].text


def test_before_any_row_of_models_without_pilot_effects():
    assert [s.text for s in kt.explain(small_model().new_user("ann"))] == ["No rows of user ann have been seen yet."]
    assert len(kt.explain(mean_model().new_user("ann"))) == 4  # the population's own effects


def test_with_an_action_what_it_adds_is_said():
    user = rewarded_model().new_user("ann")
    follow(user, rows("ann", seed=9, n=24))
    told = str(kt.explain(user))
    assert "on average over the recent rows" in told.lower()
    assert re.search(r"Where hour is [\d.]+, action changes mood by [+−]", told)

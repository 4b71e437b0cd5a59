"""One trial driven in three ways: without a ledger, with one, and over HTTP. Decisions are the same to the last bit."""

from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from kerneltrail.trial.ledger.folds import Update
from kerneltrail.trial.results import UpdateState
from kerneltrail.trial.rhythm import counts
from kerneltrail.trial.simulator.drives.served import ServedDrive
from kerneltrail.trial.simulator.study import Study

from ..made import design, stress, study

SAME = ("probability", "action", "delivered", "available", "effect", "outcome", "reported", "rung", "bound")
RHYTHMS = {"daily": {"daily": "03:00"}, "counted": {"every": 10}}


@cache
def record(drive, rhythm="daily"):
    burden = {"delta": 0.02, "per_dose": 0.05}  # so that what was delivered matters
    known: Study = study(drive=drive, deadline_ms=60000, updates=RHYTHMS[rhythm], burden=burden)
    return known.run(design(2, 4), "ours", 5)


@pytest.mark.parametrize("drive", ["conduct", "service"])
def test_a_drive_with_a_ledger_decides_as_the_quick_one(drive):
    quick, other = record("quick"), record(drive)
    for name in SAME:
        first, second = getattr(quick, name), getattr(other, name)
        equal = first == second if first.dtype.kind == "U" else (first == second) | (np.isnan(first) & np.isnan(second))
        assert equal.all(), name
    assert quick.counts == other.counts


def test_updates_after_so_many_outcomes_are_the_same_too():
    quick, other = record("quick", "counted"), record("conduct", "counted")
    assert np.array_equal(quick.probability, other.probability, equal_nan=True)
    assert quick.counts["updates"] == other.counts["updates"] > 1


def test_where_a_lower_outcome_is_better_drives_decide_alike_and_the_record_replays():
    plan = design(2, 4)
    mood = study(drive="quick", effect=1.0, deadline_ms=60000).run(plan, "ours", 5)
    quick, real = (
        stress(drive=each, effect=1.0, deadline_ms=60000).run(plan, "ours", 5) for each in ("quick", "conduct")
    )
    assert np.array_equal(quick.probability, real.probability, equal_nan=True)
    assert real.facts["replays"]
    decided = quick.rung == "policy"
    assert quick.probability[decided].mean() < mood.probability[decided].mean() - 0.1


def test_what_was_simulated_is_not_nothing():
    quick = record("quick")
    policy = quick.probability[quick.rung == "policy"]
    assert len(np.unique(policy)) > 10
    assert {"outages", "outcomes late", "outcomes corrected", "outcomes missing"} <= set(quick.counts)
    assert (
        quick.counts["decisions that the app drew in an outage"] == quick.counts["decisions reported after an outage"]
    )


@pytest.mark.parametrize("drive", ["conduct", "service"])
def test_the_record_replays_and_its_export_is_what_happened(drive):
    made = record(drive)
    assert made.facts["replays"]
    assert made.facts["chain"]
    rows = made.rows()
    exported = made.facts["mrt"]
    assert len(exported) == len(rows["id"])
    for i, row in enumerate(exported):
        assert (row["treatment"], row["availability"]) == (rows["treatment"][i], rows["availability"][i])
        assert row["rand_prob"] == rows["rand_prob"][i]
        assert row["outcome"] == (None if np.isnan(rows["outcome"][i]) else rows["outcome"][i])


def test_an_update_that_did_not_do_what_was_due_does_not_count_as_one():
    """Whatever became of it: only done, empty and refused ones did."""
    states = get_args(UpdateState)
    results = [None if state == "running" else {"state": state} for state in states]
    updates = {state: Update(state, 1, "", {}, result=each) for state, each in zip(states, results, strict=True)}
    drive = object.__new__(ServedDrive)
    drive.trial = SimpleNamespace(reading=lambda: nullcontext(SimpleNamespace(updates=updates)))
    assert {state for state, each in updates.items() if counts(each)} == {"running", "done", "empty", "refused"}
    assert drive._updates() == 3


def test_lost_answers_are_repeated_alike():
    for drive in ("conduct", "service"):
        numbers = record(drive).counts
        assert numbers["answers lost and asked for again"] == numbers["repeats answered alike"] > 0


def test_decisions_during_an_outage_are_the_apps():
    made = record("conduct")
    drawn = made.rung == "fixed"
    assert drawn.any()
    assert (made.probability[drawn] == 0.5).all()
    assert np.isnan(made.milliseconds[drawn]).all()

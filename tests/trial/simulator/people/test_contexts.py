"""Contexts of simulated people: the hour follows the clock, and hours of sleep do not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.data import Cohort, PilotSummary, User
from kerneltrail.data.checks import quantiles_of_columns
from kerneltrail.trial.simulator.people.contexts import drawn_contexts, follows_clock

CLOCK = np.tile([9.0, 12.0, 15.0, 18.0, 21.0], 40)


def learnt(**units):
    """What contexts are drawn from: pilot users of whom some hours and some nights are known."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(8.0, 21.0, 60), rng.uniform(4.5, 9.0, 60)])
    people = [User("ann", ("hour", "sleep"), X, rng.standard_normal(60), (60,))]
    cohort = Cohort.from_users(people, target="mood", units=units)
    pilot = PilotSummary.of(cohort.schema, ("ann",), {"columns": quantiles_of_columns(cohort.schema, cohort.raw)})
    return SimpleNamespace(
        covariates=("hour", "sleep"), schema=cohort.schema, scaler=cohort.schema.scaler, pilot=pilot, X=X
    )


@pytest.mark.parametrize("unit", ["hours", "h", ""])
def test_the_hour_follows_the_clock_and_hours_of_sleep_do_not(unit):
    model = learnt(hour=unit, sleep=unit)
    hour, sleep = drawn_contexts(model, CLOCK, np.random.default_rng(0)).T
    assert np.abs(hour - CLOCK).max() <= 0.25
    assert model.X[:, 1].min() <= sleep.min() < sleep.max() <= model.X[:, 1].max()
    assert abs(np.corrcoef(sleep, CLOCK)[0, 1]) < 0.3


def test_a_categorical_hour_and_one_of_many_days_are_no_clock():
    schema = learnt().schema
    assert follows_clock(schema, "hour")
    assert not follows_clock(replace(schema, levels={"hour": ("early", "late")}), "hour")
    assert not follows_clock(replace(schema, scaler=replace(schema.scaler, high=(700.0, 9.0))), "hour")
    assert not follows_clock(replace(schema, scaler=None), "hour")

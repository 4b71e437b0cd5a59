"""Calendar, trouble, designs and measures."""

from datetime import date
from itertools import pairwise

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.allocation import Limits
from kerneltrail.trial.sections import OutcomeSection
from kerneltrail.trial.simulator.calendar import Calendar
from kerneltrail.trial.simulator.design import designs_of
from kerneltrail.trial.simulator.measures import measured
from kerneltrail.trial.simulator.run import Record
from kerneltrail.trial.simulator.study import simulate
from kerneltrail.trial.simulator.summary import summarised
from kerneltrail.trial.simulator.trouble import TROUBLES, Trouble

from .made import design, protocol_and_model, study

MOOD = OutcomeSection(action="prompt", outcome="mood")
STRESS = OutcomeSection(action="prompt", outcome="stress", better="lower")
TIMES = {"walk": ("09:00", "18:00"), "rest": ("02:30",)}


def test_decision_points_are_on_the_participants_clock_across_a_change_of_clocks():
    calendar = Calendar(TIMES, 10)
    slots = calendar.slots()
    assert len(slots) == 30
    assert calendar.change_of_clocks() == date(2026, 3, 29)
    nights = [slot.at for slot in slots if slot.kind == "rest"]
    assert [at.hour for at in nights] == [2] * 6 + [3] + [2] * 3  # half past two does not exist on that day
    walks = [slot for slot in slots if slot.kind == "walk"]
    assert [slot.index for slot in walks] == list(range(20))
    assert {slot.at.hour for slot in walks} == {9, 18}
    gaps = np.diff([slot.at.timestamp() for slot in walks[::2]]) / 3600
    assert sorted(set(gaps)) == [23.0, 24.0]
    assert all(first.at <= second.at for first, second in pairwise(slots))


def test_a_trial_without_a_change_of_clocks_has_none():
    assert Calendar(TIMES, 5).change_of_clocks() is None
    assert Calendar(TIMES, 10, zone="UTC").change_of_clocks() is None


@pytest.mark.parametrize(("updates", "expected"), [({"daily": "03:00"}, 4), ({"weekly": "Monday 03:00"}, 4)])
def test_the_clock_is_looked_at_after_each_planned_time(updates, expected):
    protocol = study(updates=updates).protocol
    assert len(list(Calendar(TIMES, 4).ticks(protocol))) == expected


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def test_updates_after_the_last_day_are_neither_made_nor_counted(zone):
    """A trial of four days has four nights, whatever clock updates go by, though outcomes still come on the sixth."""
    known = study(updates={"daily": "03:00", "timezone": zone}, trouble=Trouble(0.0, 0.5, 0.0, 0.0, 0.0, ()))
    calendar = known.setting(design(), 1)[0].calendar
    ticks = list(calendar.ticks(known.protocol))
    assert len(ticks) == 4
    assert all(calendar.start < tick < calendar.end for tick in ticks)
    assert known.run(design(), "ours", 1).counts["updates"] == 4


def test_fates_come_as_often_as_they_should():
    """Shares of 20 000 points within 5 standard errors: one false alarm in more than a million."""
    trouble = TROUBLES["usual"]
    fates = trouble.fates(20_000, 1, 2)
    counts = dict.fromkeys(("missing", "late", "corrected", "usual"), 0)
    for point in range(20_000):
        counts[fates.of_outcome(point)] += 1
    for name in ("missing", "late", "corrected"):
        share = getattr(trouble, name)
        assert abs(counts[name] / 20_000 - share) < 5 * np.sqrt(share / 20_000)
    lost = sum(not fates.delivered(point) for point in range(20_000)) / 20_000
    assert abs(lost - trouble.undelivered) < 5 * np.sqrt(trouble.undelivered / 20_000)


def test_shares_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="late is a share"):
        Trouble(late=1.5)
    with pytest.raises(DataError, match="more than 1"):
        Trouble(missing=0.6, late=0.6)


def test_a_grid_is_all_combinations():
    designs = designs_of(10, 5, ["clip=0.2:0.8,0.1:0.9", "updates=daily,weekly,30", "participants=5,20"])
    assert len(designs) == 12
    assert len({each.label for each in designs}) == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slpe=5", "did you mean 'slope'"),
        ("slope", "KEY=VALUE"),
        ("clip=0.2", "two numbers"),
        ("days=0", "whole number"),
    ],
)
def test_a_grid_that_cannot_be_read_is_refused(text, words):
    with pytest.raises(DataError, match=words):
        designs_of(10, 5, [text])


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (["slope=5", "slope=10"], "the grid has slope twice"),
        (["slope=5,10,5.0"], r"slope in the grid has the value 5\.0 twice"),
        (["updates=30,030"], "updates in the grid has the value 030 twice"),
        (["clip=0.2:0.8,.2:.8"], r"clip in the grid has the value \.2:\.8 twice"),
    ],
)
def test_a_grid_that_has_a_key_or_a_value_twice_is_refused(grid, words):
    with pytest.raises(DataError, match=words):
        designs_of(10, 5, grid)


def test_designs_that_differ_in_the_seventh_digit_are_told_apart_and_a_run_counts_once():
    near = designs_of(3, 3, ["slope=5,5.0000001"])
    assert [each.label for each in near] == ["3 people, 3 days, slope 5", "3 people, 3 days, slope 5.0000001"]
    runs = simulate(study(trouble=TROUBLES["none"]), [*near, near[0]], [0, 1], ["fixed"])
    lines = summarised(runs).lines
    assert [(line.design, line.seeds) for line in lines] == [(each.label, 2) for each in near]


def test_a_design_changes_the_protocol_and_nothing_else():
    base = protocol_and_model()[0]
    plan = designs_of(10, 5, ["clip=0.6:0.9", "slope=4", "updates=weekly", "delta=0.1", "per_dose=0.02"])[0]
    made = plan.protocol(base, "0" * 64)
    assert (made.limits.lower, made.limits.upper, made.fallback.fixed) == (0.6, 0.9, 0.6)
    assert made.allocation.parameters["slope"] == 4.0
    assert made.updates.weekly == "Monday 03:00"
    assert (made.burden.delta, made.burden.per_dose) == (0.1, 0.02)
    assert design().protocol(base, base.draw.commitment).hash == base.hash
    ruled = designs_of(10, 5, ["rule=clipped-thompson"])[0].protocol(base, "0" * 64)
    assert ruled.rule.name == "clipped-thompson"
    with pytest.raises(DataError, match="has no slope"):
        designs_of(10, 5, ["rule=fixed", "slope=4"])[0].protocol(base, "0" * 64)
    with pytest.raises(DataError, match="daily, weekly, never"):
        designs_of(10, 5, ["updates=hourly"])[0].protocol(base, "0" * 64)


def test_measures_are_those_of_plain_loops():
    rng = np.random.default_rng(3)
    record = Record.empty(4, 12)
    record.available[:] = rng.random((4, 12)) < 0.8
    record.probability[:] = rng.uniform(0.2, 0.8, (4, 12)) * record.available
    record.action[:] = rng.random((4, 12)) < record.probability
    record.delivered[:] = record.action * (rng.random((4, 12)) < 0.9)
    record.effect[:] = rng.normal(size=(4, 12))
    record.outcome[:] = record.reported[:] = rng.normal(size=(4, 12)) + record.action
    record.rung[:] = np.where(record.available > 0, "policy", "unavailable")
    record.rung[0, 0], record.available[0, 0] = "fixed", 1.0
    record.probability[0, 0] = 0.5
    record.bound[:] = "none"
    record.bound[1, :] = "upper"
    values = measured(record, Limits(), MOOD, a_day=3, undelivered=0.1, sums=False, randomised=True)
    means = sorted(np.mean(row) for row in record.outcome)
    assert values["mean"] == pytest.approx(np.mean(means))
    assert values["p25"] == pytest.approx(means[0] + 0.75 * (means[1] - means[0]))
    regrets, effects, classes = [], [], [[0, 0.0, 0] for _ in range(10)]
    for i in range(4):
        for j in range(12):
            if record.available[i, j]:
                effect, p = record.effect[i, j], record.probability[i, j]
                regrets.append(((0.8 if effect > 0 else 0.2) - p) * effect * 0.9)
                effects.append(0.9 * effect)
                classes[int(10 * p)][0] += 1
                classes[int(10 * p)][1] += p
                classes[int(10 * p)][2] += record.action[i, j]
    assert values["regret"] == pytest.approx(np.mean(regrets))
    assert values["truth"] == pytest.approx(np.mean(effects))
    assert np.allclose(values["deciles"], classes)
    assert values["doses"] == pytest.approx(record.delivered.sum() / (4 * 12 / 3))
    assert values["fallback"] == pytest.approx(1 / len(regrets))
    assert values["wcls"]["low"] < values["wcls"]["estimate"] < values["wcls"]["high"]
    assert measured(record, Limits(), MOOD, a_day=3, undelivered=0.0, sums=True, randomised=False)["wcls"] is None
    # The same with outcomes and effects turned round, where a lower outcome is better: as much regret, as much left.
    for turned in (record.effect, record.outcome, record.reported):
        turned *= -1.0
    stress = measured(record, Limits(), STRESS, a_day=3, undelivered=0.1, sums=False, randomised=True)
    assert "p25" not in stress
    assert (stress["mean"], stress["p75"]) == pytest.approx((-values["mean"], -values["p25"]))
    assert (stress["regret"], stress["truth"]) == pytest.approx((values["regret"], -values["truth"]))


def test_the_oracle_has_the_least_regret_and_the_largest_outcome_is_not_beaten_by_much():
    known = study(trouble=TROUBLES["none"])
    regrets = {name: known.measure(design(6, 6), name, 2)["regret"] for name in ("oracle", "fixed", "ours")}
    assert regrets["oracle"] == pytest.approx(0.0, abs=1e-12)
    assert regrets["oracle"] < min(regrets["fixed"], regrets["ours"])

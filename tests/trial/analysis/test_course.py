"""Flow, missing outcomes, kernels and outcomes of participants: each number by plain loops over exported tables."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import scipy.stats

from kerneltrail.trial.analysis.course import (
    NONE_YET,
    OTHERS,
    by_period,
    fared,
    flow_of,
    gaps_of,
    kernels_of,
    waited_for,
)
from kerneltrail.trial.analysis.fidelity import fidelity_of
from kerneltrail.trial.analysis.record import read_record
from kerneltrail.trial.decided import Point
from kerneltrail.trial.export import table
from kerneltrail.trial.standing import mean_outcomes

from ..running import BEGIN, Time, asked, begun, enrol, walked


def test_the_flow_of_participants(record):
    """Of nine, p04 never started, p02 withdrew, p05's data were removed, p03 paused."""
    flow = flow_of(record)
    assert vars(flow) == {
        "enrolled": 9,
        "started": 8,
        "never_started": 1,
        "paused": 1,
        "withdrawn": 1,
        "removed": 1,
        "completed": 6,
        "ongoing": 0,
        "nothing_usable": 0,
        "analysed": 7,
    }
    assert "9 enrolled, 8 started, 6 completed, 1 withdrew, the data of 1 were removed; 7 are in" in flow.words()


def test_before_their_last_day_people_still_take_part(record):
    early = replace(record, now=min(point.at for point in record.points))
    flow = flow_of(early)
    assert (flow.completed, flow.ongoing) == (0, 7)


def test_people_complete_when_their_last_day_is_over_and_not_in_its_morning(record):
    """The last day is 6 March, in Zurich: it is over at 23:00 UTC."""
    evening = datetime(2026, 3, 6, 22, 59, tzinfo=UTC)
    flows = [flow_of(replace(record, now=now)) for now in (evening, evening + timedelta(minutes=1))]
    assert [(flow.completed, flow.ongoing) for flow in flows] == [(0, 7), (6, 0)]
    assert "the last day of 7 was not over" in flows[0].words()


def test_nobody_completes_a_trial_that_was_broken_off(record):
    """Months later the last day is over by the calendar, but nothing was recorded since weeks before it."""
    broken_off = replace(record, until=datetime(2026, 2, 20, tzinfo=UTC), now=datetime(2026, 8, 1, tzinfo=UTC))
    assert (flow_of(broken_off).completed, flow_of(broken_off).ongoing) == (0, 7)


def test_who_is_not_in_the_analysis_is_counted_once(tmp_path):
    """Of five, one never started and is removed, one never started, one is removed, one has no outcome."""
    time = Time(BEGIN)
    trial = begun(tmp_path / "ledger.db", time, warm=False)
    enrol(trial, "p01", "p02", "p03", "p04", "p05")
    walked(trial, "p01", range(3), time)
    walked(trial, "p02", range(3), time)
    trial.decide(asked("p05", 0, at=time.now))
    for name in ("p02", "p03"):
        trial.remove(name, reason="asked for by letter")
    flow = flow_of(read_record(trial.snapshot(), trial.protocol))
    trial.close()
    assert (flow.enrolled, flow.never_started, flow.started, flow.removed) == (5, 2, 3, 2)
    assert (flow.nothing_usable, flow.analysed) == (1, 1)


def test_who_has_decisions_ahead_alone_has_not_started(tmp_path):
    time = Time(BEGIN)
    trial = begun(tmp_path / "ledger.db", time, warm=False)
    enrol(trial, "p01", "p02")
    walked(trial, "p01", range(3), time)
    trial.schedule([asked("p02", index, at=time.now + timedelta(days=index)) for index in range(1, 4)])
    state = trial.snapshot()
    trial.close()
    before, after = (
        read_record(state, trial.protocol, now=time.now + timedelta(days=days)) for days in (0, 2)
    )  # fmt: skip
    assert [len(each.points) for each in (before, after)] == [3, 5]
    assert [flow_of(each).started for each in (before, after)] == [1, 2]
    assert sum(fidelity_of(before).rungs.values()) == 3
    assert fidelity_of(after).ratios["all"].decisions == 5


def test_missing_outcomes(state, record):
    gaps = {gap.group: gap for gap in gaps_of(record)}
    every = [row for row in table(state, "decisions")[1] if row["available"]]
    rows = [row for row in every if datetime.fromisoformat(row["decided_at"]) <= record.until - timedelta(days=1)]
    assert 0 < len(rows) < len(every)
    for name, several in {
        "all": rows,
        "assigned to act": [row for row in rows if row["action"]],
        "assigned not to act": [row for row in rows if not row["action"]],
        "day 3": [row for row in rows if row["decided_at"][8:10] == "03"],
    }.items():
        assert gaps[name].decisions == len(several)
        assert gaps[name].observed == sum(row["outcome"] is not None for row in several)
        assert gaps[name].share.mean == pytest.approx(1 - gaps[name].observed / len(several))
        assert gaps[name].share.low <= gaps[name].share.mean <= gaps[name].share.high
    assert gaps["all"].looked_for == sum(
        row["value"] is None and row["counts"] for row in table(state, "outcomes")[1]
        if any(row["decision_id"] == each["decision_id"] for each in rows)
    )  # fmt: skip
    assert sum(f"day {number}" in gaps for number in range(1, 7)) == 5
    late = [row for row in every if row not in rows and row["outcome"] is None]
    assert waited_for(record) == len(late) - sum(
        row["value"] is None and row["counts"] for row in table(state, "outcomes")[1]
        if any(row["decision_id"] == each["decision_id"] for each in late)
    )  # fmt: skip


def test_an_outcome_of_a_minute_ago_is_not_missing_but_waited_for(record):
    young = replace(point("a", 1, None), outcome=None, looked_for=False)
    old = replace(point("a", 0, None), outcome=None, looked_for=False)
    brief = replace(record, points=(old, young), until=young.at + timedelta(minutes=5))
    assert [(gap.group, gap.decisions, gap.observed) for gap in gaps_of(brief)[:1]] == [("all", 1, 0)]
    assert waited_for(brief) == 1
    assert waited_for(replace(brief, until=young.at + timedelta(days=2))) == 0


def point(participant, day, composition, at=0):
    begin = datetime(2026, 3, 1, 8, tzinfo=UTC) + timedelta(days=day, hours=at)
    made = (0, 0.5, None, "policy", "1", composition)
    return Point(participant, 1, "walk", begin, day, True, *made, None, False, 1.0, True, {})


def test_kernels_over_time(record):
    kernels = kernels_of(record)
    for place, period in enumerate(kernels.periods):
        day = int(period.split()[1]) - 1
        last = {}
        for each in sorted(record.points, key=lambda each: each.at):
            if each.day == day and each.rung == "policy":
                last[each.participant] = each.composition or NONE_YET
        assert dict(zip(kernels.names, kernels.counts[place].tolist(), strict=True)) == {
            name: Counter(last.values())[name] for name in kernels.names
        }
    np.testing.assert_allclose(kernels.shares.sum(axis=1), 1.0)
    assert kernels.counts[0, kernels.names.index(NONE_YET)] > 0


def test_the_last_kernel_of_a_period_counts_and_rare_ones_are_together(record):
    points = [point("a", 0, "SE[x]", 5), point("a", 0, "LIN[x]", 1)]
    points += [point(name, 1, f"SE[{name}]") for name in "abcd"]
    few = kernels_of(replace(record, points=tuple(points)), most=2)
    assert few.names == ("SE[a]", "SE[b]", OTHERS)
    assert few.counts.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert kernels_of(replace(record, points=())) is None


def test_a_long_study_is_shown_by_weeks():
    points = [point("a", day, None) for day in (0, 6, 7, 20)]
    assert [(name, len(several)) for name, several in by_period(points)] == [
        ("week 1", 2),
        ("week 2", 1),
        ("week 3", 1),
    ]
    assert [name for name, _ in by_period(points[:3])] == ["day 1", "day 7", "day 8"]
    assert by_period([]) == []


def test_how_participants_fared(state, record):
    means = list(mean_outcomes(state).values())
    found = fared(record)
    assert found.mean.mean == pytest.approx(np.mean(means))
    assert found.quarter.mean == pytest.approx(np.quantile(means, 0.25))
    for each in (found.mean, found.quarter):
        assert each.low < each.mean < each.high
        assert each.users == 7
    t = scipy.stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (found.mean.low, found.mean.high) == pytest.approx((t.low, t.high))
    assert found.notes()[1].startswith("With fewer than 20 participants (here 7) the interval of the 25th percentile")
    assert fared(replace(record, points=())) is None


def test_where_a_lower_outcome_is_better_the_other_quarter_fared_worst(analysis, state):
    protocol = analysis.record.protocol
    reward = {**protocol.to_json()["reward"], "better": "lower"}
    record = replace(analysis.record, protocol=protocol.model_copy(update={"reward": reward}))
    found = fared(record)
    means = list(mean_outcomes(state).values())
    assert found.quarter.mean == pytest.approx(np.quantile(means, 0.75))
    turned = replace(analysis, record=record, fared=found)
    assert "a quarter of them lay above" in turned.fared_words()[0]
    assert "a quarter of them lay below" in analysis.fared_words()[0]
    assert all("75th percentile" in note for note in found.notes())
    names = [
        [row["of"] for table in each.tables() if table.name == "outcome" for row in table.rows]
        for each in (analysis, turned)
    ]
    assert names == [["mean", "25th percentile"], ["mean", "75th percentile"]]


def test_one_participant_has_no_interval(analysis):
    one = fared(replace(analysis.record, points=(point("a", 0, None), point("a", 1, None))))
    alone = replace(analysis, fared=one)
    assert alone.fared_words()[0] == "The mean mood of the one participant was 1."
    outcome = next(table for table in alone.tables() if table.name == "outcome")
    assert [row["lower"] for row in outcome.rows] == [None, None]
    assert "inf" not in outcome.markdown()

"""Whether the trial did what its protocol says: counts by plain loops, and mistakes that must be seen."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import scipy.stats

from kerneltrail.evaluation.intervals import exact_share
from kerneltrail.trial.analysis.fidelity import fidelity_of
from kerneltrail.trial.analysis.record import read_record
from kerneltrail.trial.export import table
from kerneltrail.trial.folder import Folder
from kerneltrail.trial.ratio import tenths

from ..running import Time, agreed, asked, begun, enrol, outcome, walked
from .study import BEGIN, agreement, begun_in, read


def test_shares_by_tenth_of_the_probability(state, record):
    rows = [row for row in table(state, "decisions")[1] if row["available"]]
    tenths = fidelity_of(record).tenths
    assert sum(each.decisions for each in tenths) == len(rows)
    for each in tenths:
        inside = [row for row in rows if each.low <= row["probability"] <= each.high]
        assert each.decisions == len(inside)
        assert each.share.mean == pytest.approx(np.mean([row["action"] for row in inside]))
        assert each.mean == pytest.approx(np.mean([row["probability"] for row in inside]))
        test = scipy.stats.binomtest(sum(row["action"] for row in inside), len(inside)).proportion_ci()
        assert (each.share.low, each.share.high) == pytest.approx((test.low, test.high))


def test_all_draws_together_and_by_version(state, record):
    ratios = fidelity_of(record).ratios
    every = ratios["all"]
    rows = [row for row in table(state, "decisions")[1] if row["available"]]
    expected = sum(row["probability"] for row in rows)
    spread = sum(row["probability"] * (1 - row["probability"]) for row in rows) ** 0.5
    assert (every.sent, every.expected) == (sum(row["action"] for row in rows), pytest.approx(expected))
    assert every.p == pytest.approx(2 * scipy.stats.norm.sf(abs(every.sent - expected) / spread), abs=0.1)
    assert sum(each.decisions for each in ratios.values()) == 2 * every.decisions
    policies = {row["policy_version"] for row in rows if row["rung"] == "policy"}
    assert {name for name in ratios if name.startswith("policy")} == {f"policy {version}" for version in policies}


def test_draws_that_do_not_follow_their_probabilities_are_seen(record):
    always = tuple(replace(point, action=1) if point.available else point for point in record.points)
    fidelity = fidelity_of(replace(record, points=always))
    assert fidelity.ratios["all"].p < 1e-6
    assert "more than chance explains: the draws need a look" in fidelity.words()[0]
    assert "need a look" not in fidelity_of(record).words()[0]
    fidelity = fidelity_of(replace(record, points=4 * always))  # tenths of few decisions alone do not tell
    assert any("is off for probabilities of" in line for line in fidelity.words())


def test_sound_draws_are_not_called_off_because_many_shares_are_looked_at(record):
    """At 0.001 for all tenths together, 200 sound trials have more than one false alarm with probability below 0.02."""
    rng = np.random.default_rng(4)
    point, whole, alarms = record.points[0], fidelity_of(record), 0
    for _ in range(200):
        chances = rng.uniform(0.2, 0.8, 300)
        acted = rng.random(300) < chances
        drawn = [
            replace(point, available=True, probability=float(p), action=int(a))
            for p, a in zip(chances, acted, strict=True)
        ]
        sound = replace(whole, tenths=tuple(tenths(drawn)))
        alarms += any("is off for" in line for line in sound.words())
    assert alarms <= 1


def test_deliveries_rungs_and_updates(state, record):
    fidelity = fidelity_of(record)
    acted = [row for row in table(state, "decisions")[1] if row["action"]]
    assert fidelity.acted == len(acted)
    assert fidelity.undelivered == sum(row["delivered_action"] == 0 for row in acted) > 0
    assert fidelity.unreported == 0
    assert fidelity.rungs["policy"] + fidelity.rungs["unavailable"] == len(record.points)
    assert fidelity.updates.states == {"done": 6}
    assert (fidelity.updates.planned, fidelity.updates.late) == (5, 0)
    assert fidelity.updates.rows_late > 0
    assert fidelity.incidents == {}
    assert fidelity.words()[-1] == f"Of {len(acted)} decisions to act, {fidelity.undelivered} did not arrive."


@pytest.mark.parametrize(
    ("acted", "undelivered", "unreported", "said"),
    [
        (0, 0, 0, "No decision was to act."),
        (7, 0, 0, "Of 7 decisions to act, all arrived."),
        (7, 0, 2, "Of 7 decisions to act, of 2 nobody said whether they arrived."),
        (7, 3, 1, "Of 7 decisions to act, 3 did not arrive, and of 1 nobody said whether it arrived."),
    ],
)
def test_what_arrived_is_said_plainly(record, acted, undelivered, unreported, said):
    fidelity = replace(fidelity_of(record), acted=acted, undelivered=undelivered, unreported=unreported)
    assert fidelity.words()[-1] == said


def test_an_update_that_came_late_or_never_is_counted(tmp_path):
    time = Time(BEGIN)
    trial = begun_in(tmp_path / "walks", agreement(), time)
    enrol(trial, "p01")
    for day in range(5):
        time.now = BEGIN + timedelta(days=day)
        answer = trial.decide(asked(index=day, at=time.now, hour=9.0))
        trial.outcomes([outcome(answer, 1.0, name=f"o{day}")])
        if day in (0, 2):  # in time after the first day, hours late after the third
            time.now = BEGIN + timedelta(days=day, hours=19 if day == 0 else 23)
            trial.update(reason="daily")
    trial.incident("odd", "something is odd", severity="error")
    time.now = BEGIN + timedelta(days=5)
    trial.decide(asked(index=9, at=time.now, hour=9.0))
    time.go(days=1)
    trial.incident("later", "after the last word of a participant")
    trial.close()
    fidelity = fidelity_of(read_record(*read(Folder(tmp_path / "walks"))))
    assert (fidelity.updates.planned, fidelity.updates.late) == (6, 5)
    assert fidelity.updates.states == {"done": 2}
    assert fidelity.incidents == {("odd", "error"): 1, ("later", "warning"): 1}
    assert "Incidents: 2, of which 1 were errors." in fidelity.words()


def test_no_update_was_due_before_the_first_decision_was_recorded(tmp_path):
    """Decisions of a week, all recorded on its last day."""
    time = Time(BEGIN + timedelta(days=7))
    trial = begun_in(tmp_path / "walks", agreement(), time)
    enrol(trial, "p01")
    for day in range(7):
        trial.decide(asked(index=day, at=BEGIN + timedelta(days=day), hour=9.0))
    time.go(hours=3)
    trial.incident("odd", "something is odd")
    trial.close()
    updates = fidelity_of(read_record(*read(Folder(tmp_path / "walks")))).updates
    assert (updates.planned, updates.late) == (0, 0)


def test_updates_are_judged_by_the_protocol_that_was_in_force(tmp_path):
    """Four weeks of updates on Mondays, all in time; then it says daily, and two days without one."""
    time = Time(BEGIN)
    weekly = agreed(updates={"weekly": "Monday 03:00", "timezone": "UTC"})
    trial = begun_in(tmp_path / "walks", weekly, time)
    enrol(trial, "p01")
    for day in range(29):
        time.now = (BEGIN + timedelta(days=day)).replace(hour=3, minute=5)
        if time.now.weekday() == 0:
            trial.update(reason="weekly")
        if day < 28:
            time.now = BEGIN + timedelta(days=day)
            answer = trial.decide(asked(index=day, at=time.now, hour=9.0))
            trial.outcomes([outcome(answer, 1.0, name=f"o{day}")])
    time.go(hours=5)
    daily = agreed(updates={"daily": "03:00", "timezone": "UTC"})
    trial.freeze(daily, reason="more often", by="the principal investigator")
    time.go(days=2)
    trial.decide(asked(index=99, at=time.now, hour=9.0))
    trial.close()
    updates = fidelity_of(read_record(*read(Folder(tmp_path / "walks")))).updates
    assert (updates.planned, updates.late) == (4 + 2, 2)


def test_a_message_that_is_reported_as_failed_did_not_arrive(tmp_path):
    """The app says that it failed, and not which action was delivered; of the second nobody says anything."""
    time = Time(BEGIN)
    trial = begun(tmp_path / "ledger.db", time, warm=False)
    enrol(trial, "p01")
    acted = [each.value for each in walked(trial, "p01", range(12), time) if each.value["action"]]
    for each in acted[1:]:
        trial.deliver(each["decision_id"], status="failed", at=time.now, delivered_action=None)
    fidelity = fidelity_of(read_record(trial.snapshot(), trial.protocol))
    trial.close()
    assert (fidelity.acted, fidelity.undelivered, fidelity.unreported) == (len(acted), len(acted) - 1, 1)
    assert fidelity.undelivered > 1


def test_after_everybodys_last_day_no_update_is_due(copied):
    trial = copied.open()  # on the machine's clock: long after
    trial.incident("odd", "something is odd")
    trial.close()
    updates = fidelity_of(read_record(*read(copied))).updates
    assert (updates.planned, updates.late) == (5, 0)


def test_an_exact_share_at_its_ends():
    assert (exact_share(0, 10).low, exact_share(10, 10).high) == (0.0, 1.0)
    assert exact_share(0, 10).high == pytest.approx(1 - 0.025**0.1)

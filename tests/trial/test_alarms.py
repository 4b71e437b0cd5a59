"""Alerts: each is silent on a trial that goes well, and speaks where one thing goes wrong."""

from datetime import UTC, date, datetime, timedelta

import pytest

from kerneltrail.errors import UnknownName
from kerneltrail.trial import states
from kerneltrail.trial.rhythm import at, last_planned
from kerneltrail.trial.standing import lines

from .running import BEGIN, Time, agreed, asked, begun, enrol, outcome

TIMES = ("09:00", "17:30")  # in Zurich, of the decisions called walk


@pytest.fixture
def time():
    return Time(datetime(2026, 3, 1, 0, 0, tzinfo=UTC))


@pytest.fixture
def trial(tmp_path, time):
    opened = begun(tmp_path / "ledger.db", time)
    enrol(opened, "p01")
    yield opened
    opened.close()


def goes(trial, time, days, *, calls=TIMES, answers=True, person="p01", first=0, steps=None):
    """Days on which somebody calls at some times, and an outcome comes an hour later."""
    index = first
    for _ in range(days):
        day = time.now.replace(hour=0, minute=0)
        for clock in calls:
            time.now = day + timedelta(hours=int(clock[:2]) - 1, minutes=int(clock[3:]))
            answer = trial.decide(asked(person, index, at=time.now))
            index += 1
            time.go(hours=1)
            if answers:
                trial.outcomes([outcome(answer, 0.5)])
        time.now = day + timedelta(days=1)
    return index


def kinds(trial, now=None):
    return [each.kind for each in trial.alerts(now)]


def test_a_trial_that_goes_well_is_green_and_silent(trial, time):
    goes(trial, time, 6)
    assert kinds(trial) == []
    stands = trial.status()
    assert (stands.light, stands.expected, stands.received) == ("green", 2, 2)
    assert (stands.decisions, stands.outcomes) == ({"policy": 2}, 2)
    assert 0 <= stands.latency_ms[0] <= stands.latency_ms[1]
    assert trial.watch() == []


def test_missed_calls(trial, time):
    index = goes(trial, time, 2)
    goes(trial, time, 1, calls=TIMES[:1], first=index)
    time.go(hours=3)
    alert = trial.alerts()[0]
    assert (alert.kind, alert.severity) == ("missed-calls", "warning")
    assert alert.words == "of 2 decision points in a day, 1 were not asked for"
    assert trial.status().light == "yellow"


def test_silence_of_a_participant_and_not_of_one_who_pauses(trial, time):
    goes(trial, time, 1)
    time.go(days=3)
    assert sorted(kinds(trial)) == ["missed-calls", "silence"]
    assert trial.status().light == "red"  # nobody called at all
    trial.event("p01", "pause", at=BEGIN + timedelta(days=1))
    assert kinds(trial) == []


def test_who_has_ended_is_not_silent(trial, time):
    goes(trial, time, 1)
    enrol(trial, "p01", ends_on=date(2026, 3, 4), revision=trial.participant("p01").revision)
    assert "silence" in kinds(trial, datetime(2026, 3, 4, 20, tzinfo=UTC))
    for day in (5, 6, 20):
        assert "silence" not in kinds(trial, datetime(2026, 3, day, 6, tzinfo=UTC))


def test_silence_where_the_protocol_has_no_times(tmp_path, time):
    trial = begun(tmp_path / "free.db", time, protocol=agreed(decisions={"walk": {}}))
    enrol(trial, "p01")
    enrol(trial, "p02", starts_on=date(2026, 4, 1))
    goes(trial, time, 1)
    time.go(days=1)
    assert kinds(trial) == []
    time.go(days=1)
    assert [(each.kind, each.participant) for each in trial.alerts()] == [("silence", "p01")]
    trial.close()


def test_missed_update(tmp_path, time):
    time.go(hours=2, minutes=30)
    trial = begun(tmp_path / "daily.db", time, protocol=agreed(updates={"daily": "03:00", "timezone": "Europe/Zurich"}))
    enrol(trial, "p01")
    goes(trial, time, 1)
    time.now = datetime(2026, 3, 2, 2, 30, tzinfo=UTC)  # half past three in Zurich
    assert trial.due() == "the protocol says an update at Mon 2 Mar 2026, 03:00 (Europe/Zurich)"
    assert "missed-update" not in kinds(trial)
    time.go(hours=2)
    assert "missed-update" in kinds(trial)
    trial.update(reason=trial.due())
    assert trial.due() == ""
    assert "missed-update" not in kinds(trial)
    trial.close()


def test_an_update_with_nothing_to_learn_from_is_not_missed(tmp_path, time):
    trial = begun(tmp_path / "daily.db", time, protocol=agreed(updates={"daily": "03:00"}))
    enrol(trial, "p01")
    time.go(hours=6)
    assert trial.due() == "the protocol says an update at Sun 1 Mar 2026, 03:00 (UTC)"
    assert "missed-update" not in kinds(trial)
    time.go(hours=2)
    answer = trial.decide(asked(at=time.now))
    trial.outcomes([outcome(answer, 0.5)])
    assert "missed-update" not in kinds(trial)  # it came after the time of the update
    time.now = datetime(2026, 3, 2, 5, 1, tzinfo=UTC)
    assert "missed-update" in kinds(trial)
    trial.update(reason=trial.due())
    time.now = datetime(2026, 3, 4, 5, 1, tzinfo=UTC)
    assert trial.due() == "the protocol says an update at Wed 4 Mar 2026, 03:00 (UTC)"
    assert "missed-update" not in kinds(trial)  # nothing came since
    trial.close()


def test_times_before_an_amendment_are_those_of_the_protocol_before_it(tmp_path, time):
    trial = begun(tmp_path / "amended.db", time, protocol=agreed(updates={"daily": "03:00"}))
    enrol(trial, "p01")
    goes(trial, time, 1)
    time.now = datetime(2026, 3, 2, 3, 10, tzinfo=UTC)
    trial.update(reason=trial.due())
    time.go(hours=3)
    trial.freeze(agreed(updates={"daily": "05:00"}), reason="quieter then", by="ann")
    assert trial.due() == ""  # five o'clock was over before it was agreed on
    time.now = datetime(2026, 3, 3, 3, 30, tzinfo=UTC)
    assert trial.due() == ""
    time.go(hours=2)
    assert trial.due() == "the protocol says an update at Tue 3 Mar 2026, 05:00 (UTC)"
    trial.freeze(agreed(updates={"daily": "12:00"}), reason="later still", by="ann")
    assert trial.due() == "the protocol says an update at Tue 3 Mar 2026, 05:00 (UTC)"  # it has not been made
    trial.close()


def test_an_update_is_due_after_so_many_outcomes(tmp_path, time):
    trial = begun(tmp_path / "counted.db", time, protocol=agreed(updates={"every": 4}))
    enrol(trial, "p01")
    index = goes(trial, time, 1)
    assert trial.due() == ""
    index = goes(trial, time, 1, first=index)
    assert trial.due() == "4 outcomes came since the last update, and the protocol says 4"
    assert trial.update(reason=trial.due()).state == "done"
    assert trial.due() == ""
    index = goes(trial, time, 1, first=index)
    assert trial.due() == ""
    index = goes(trial, time, 2, first=index)
    assert kinds(trial) == []
    goes(trial, time, 1, first=index)
    assert kinds(trial) == ["missed-update"]
    trial.close()


def test_fallbacks(trial, time, monkeypatch):
    goes(trial, time, 1)
    trial.update(reason="test")

    def broken(*_):
        raise ArithmeticError("no")

    monkeypatch.setattr(states.States, "within", broken)
    for index in range(10, 22):
        trial.decide(asked(index=index, at=time.go(minutes=1)))
    alert = next(each for each in trial.alerts() if each.kind == "fallback-rate")
    assert (alert.severity, alert.words) == ("error", "12 of 14 decisions in a day were made by a fallback")


def test_missing_outcomes(trial, time):
    index = goes(trial, time, 3)
    goes(trial, time, 3, answers=False, first=index)
    assert kinds(trial) == ["missing-outcomes"]
    due = "one should be there a day after each decision at which somebody could act"
    words = f"of the decisions of the last 7 days alone, 4 of 10 outcomes that should be there are missing ({due})"
    assert trial.alerts()[0].words == words


def test_the_status_counts_missing_outcomes_of_the_whole_trial_and_says_which(trial, time):
    index = goes(trial, time, 3, answers=False)
    goes(trial, time, 7, first=index)
    standing = trial.status()
    assert standing.missing == (6, 18)  # of ten days with two decisions each, those of the last day are not due yet
    assert "missing-outcomes" not in kinds(trial)
    due = "one should be there a day after each decision at which somebody could act"
    assert f"Missing outcomes: 6 of 18 in the whole trial ({due})" in lines(standing)


def test_probabilities_that_stand_at_a_limit(tmp_path, time):
    trial = begun(tmp_path / "stuck.db", time, protocol=agreed(burden={"delta": 1000.0}))
    enrol(trial, "p01")
    goes(trial, time, 9)
    assert "stuck-at-limit" not in kinds(trial)
    goes(trial, time, 1, first=18)
    alert = next(each for each in trial.alerts() if each.kind == "stuck-at-limit")
    assert alert.words == "the last 20 probabilities of p01 stand at their lower limit"
    trial.close()


def test_calibration(trial, time):
    index = 0
    for day in range(16):
        for clock in TIMES:
            time.now = datetime(2026, 3, 1 + day, int(clock[:2]) - 1, int(clock[3:]), tzinfo=UTC)
            answer = trial.decide(asked(index=index, at=time.now))
            # Outcomes that lie far from what is predicted, on one side and on the other.
            trial.outcomes([outcome(answer, 40.0 * (-1) ** index)])
            index += 1
    trial.update(reason="test")
    alert = next(each for each in trial.alerts() if each.kind == "calibration")
    assert alert.words == "0 of 32 outcomes lay in their 90% predictive interval"


def test_clocks_that_go_wrong_and_conflicts_are_incidents_until_somebody_acknowledges_them(trial, time):
    time.now = BEGIN
    trial.decide(asked(at=BEGIN + timedelta(hours=2)))
    assert kinds(trial) == ["clock-skew"]
    incident = trial.incidents(open_only=True)[0]
    assert "120 minutes ahead of the trial's clock" in incident.payload["words"]
    trial.decide(asked(index=1, at=BEGIN + timedelta(hours=3)))
    assert len(trial.incidents()) == 1  # once a day for each participant
    assert trial.acknowledge(incident.id, by="ann", note="phone was reset").new
    assert kinds(trial) == []
    assert trial.incidents(open_only=True) == []
    with pytest.raises(UnknownName):
        trial.acknowledge("nothing", by="ann")


def test_every_open_incident_is_an_alert_of_its_severity_until_it_is_acknowledged(trial, time):
    goes(trial, time, 2)
    assert trial.status().light == "green"
    trial.incident("update-failed", "the update 7 failed.", severity="error", key="u")
    trial.incident("delivered-otherwise", "p01 was sent what was not assigned", participant="p01", key="d1")
    trial.incident("delivered-otherwise", "p01 was sent it again", participant="p01", key="d2")
    alerts = trial.alerts()
    assert [(each.kind, each.severity, each.words) for each in alerts] == [
        ("update-failed", "error", "an incident (update-failed) is open: the update 7 failed"),
        (
            "delivered-otherwise",
            "warning",
            "2 incidents (delivered-otherwise) are open, the last one: p01 was sent it again",
        ),
    ]
    assert trial.status().light == "red"
    assert trial.watch() == []  # they are recorded already
    trial.acknowledge("u", by="ann")
    assert trial.status().light == "yellow"
    trial.acknowledge("d1", by="ann")
    trial.acknowledge("d2", by="ann")
    assert trial.status().light == "green"
    time.go(days=3)
    trial.watch()
    assert sorted(kinds(trial)) == ["missed-calls", "silence"]  # once each, found and recorded as they are
    trial.remove("p01", reason="asked")
    assert kinds(trial) == ["missed-calls"]


def test_alerts_are_recorded_once_a_day(trial, time):
    goes(trial, time, 1)
    time.go(days=3)
    assert sorted(each.payload["kind"] for each in trial.watch()) == ["missed-calls", "silence"]
    assert trial.watch() == []
    time.go(days=1)
    assert [each.payload["kind"] for each in trial.watch()] == ["missed-calls"]
    assert trial.verify().sound
    trial.remove("p01", reason="asked")
    assert [each.payload for each in trial.incidents() if each.participant] == [None]


def silences(trial):
    trial.watch()
    return [each for each in trial.incidents() if each.payload["kind"] == "silence"]


def test_a_silence_is_one_incident_until_the_participant_comes_back(trial, time):
    index = goes(trial, time, 1)
    for _ in range(6):
        time.go(days=1)
        silences(trial)
    (first,) = silences(trial)
    assert first.payload["words"].endswith("for more than 2 days, since Sun 1 Mar 2026, 16:30 (UTC)")
    trial.acknowledge(first.id, by="ann", note="rang them up")
    time.go(days=1)
    assert [each.is_open for each in silences(trial)] == [False]  # it goes on, and somebody knows
    goes(trial, time, 1, first=index)
    time.go(days=1)
    assert len(silences(trial)) == 1
    time.go(days=3)
    assert [each.is_open for each in silences(trial)] == [False, True]
    assert trial.verify().sound


def test_a_silence_after_a_pause_is_another_one(trial, time):
    goes(trial, time, 1)
    time.go(days=3)
    assert len(silences(trial)) == 1
    trial.event("p01", "pause", at=time.now)
    time.go(days=5)
    trial.event("p01", "resume", at=time.now)
    time.go(days=1)
    assert len(silences(trial)) == 1  # a day after a pause nobody is silent yet
    time.go(days=2)
    assert len(silences(trial)) == 2


def test_nobody_is_silent_before_an_app_may_be_late_on_the_first_day_or_after_a_pause(trial, time):
    enrol(trial, "later", starts_on=date(2026, 3, 8))
    goes(trial, time, 1)
    trial.event("p01", "pause", at=time.now)
    trial.event("p01", "resume", at=datetime(2026, 3, 8, 5, tzinfo=UTC))
    for now in (datetime(2026, 3, 8, 9, tzinfo=UTC), datetime(2026, 3, 8, 11, tzinfo=UTC)):  # 9:00 there was at 8:00
        assert "silence" not in kinds(trial, now)
    later = [each.participant for each in trial.alerts(datetime(2026, 3, 10, 6, tzinfo=UTC)) if each.kind == "silence"]
    assert later == ["p01", "later"]


def test_times_over_changes_of_clocks():
    zurich = agreed(updates={"daily": "02:30", "timezone": "Europe/Zurich"})
    # There is no 02:30 on 29 March 2026: it is 03:30, which is 01:30 UTC; on 25 October there are two.
    spring = last_planned(zurich, datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert spring.astimezone(UTC) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    autumn = last_planned(zurich, datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert autumn.astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    weekly = agreed(updates={"weekly": "Monday 03:00"})
    assert last_planned(weekly, datetime(2026, 3, 8, 12, tzinfo=UTC)) == datetime(2026, 3, 2, 3, tzinfo=UTC)
    assert last_planned(agreed(updates={"every": 5}), BEGIN) is None
    assert at(date(2026, 3, 29), "02:30", spring.tzinfo).hour == 3

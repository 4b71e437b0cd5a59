"""Who needs a call, and why."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from kerneltrail.trial.dashboard.contact import contacts

from ..running import BEGIN, Time, agreed, asked, begun, enrol, outcome


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def trial(tmp_path, time):
    opened = begun(tmp_path / "contact.db", time, protocol=agreed(), warm=False)
    yield opened
    opened.close()


def found(trial, time):
    return {
        each.participant: [(reason.urgency, reason.title) for reason in each.reasons]
        for each in contacts(trial.snapshot(), trial.protocol, time.now)
    }


def live(trial, time, person, indices, *, answers=True, arrives=True):
    """Two decisions a day, with what came of them."""
    for index in indices:
        time.now = BEGIN + timedelta(hours=12 * index)
        answer = trial.decide(asked(person, index, at=time.now))
        if answer.value["action"]:
            status, action = ("delivered", 1) if arrives else ("failed", 0)
            trial.deliver(answer.value["decision_id"], status=status, at=time.now, delivered_action=action)
        if answers:
            item = outcome(answer, 1.0, name=f"{person}{index}", observed_at=time.now.isoformat())
            assert trial.outcomes([item])[0].status == "stored"


def test_nobody_needs_a_call_where_all_goes_well(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(8))
    assert found(trial, time) == {}
    time.go(hours=12)
    assert found(trial, time) == {}


def test_silence_is_called_after_two_days_and_mentioned_after_one(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(2))
    last = time.now
    time.now = last + timedelta(hours=23)
    assert found(trial, time) == {}
    time.now = last + timedelta(hours=26)
    assert found(trial, time) == {"p01": [("soon", "silent for a day")]}
    time.now = last + timedelta(days=2, hours=4)
    assert found(trial, time)["p01"][0] == ("today", "silent")
    each = contacts(trial.snapshot(), trial.protocol, time.now)[0]
    assert "2 days 4 hours ago, on Sun 1 Mar 2026, 21:00 (Europe/Zurich)." in each.reasons[0].words  # on their clock
    # Due at 09:00 and 17:30 on their clock: on the 2nd and the 3rd twice each; 17:30 on the 3rd is 16:30 UTC.
    assert "should have asked 4 times" in each.reasons[0].words
    assert each.local_time == "01:00"


def test_who_never_started_is_called_two_days_after_the_first_day(trial, time):
    enrol(trial, "p01")
    enrol(trial, "later", starts_on=(BEGIN + timedelta(days=4)).date())
    time.now = BEGIN + timedelta(days=3)
    assert found(trial, time) == {"p01": [("today", "never started")]}
    time.now = BEGIN + timedelta(days=4, hours=8)
    assert "later" not in found(trial, time)
    time.now = BEGIN + timedelta(days=5)
    assert found(trial, time)["later"] == [("soon", "not started yet")]
    time.now = BEGIN + timedelta(days=7)
    assert found(trial, time)["later"] == [("today", "never started")]


def test_outcomes_that_do_not_come_are_asked_about(trial, time):
    enrol(trial, "p01", "p02")
    live(trial, time, "p01", range(3))
    live(trial, time, "p01", range(3, 10), answers=False)
    assert found(trial, time).get("p01") == [("soon", "no outcomes")]
    words = contacts(trial.snapshot(), trial.protocol, time.now)[-1].reasons[0].words
    # Of seven without one, the last two are not older than a day.
    assert "The last 5 decisions have no outcome" in words
    assert "The last one is of Mon 2 Mar 2026, 09:00 (Europe/Zurich)." in words


def test_messages_that_do_not_arrive_are_asked_about(trial, time):
    enrol(trial, "p01", "p02")
    live(trial, time, "p01", range(12), arrives=False)
    live(trial, time, "p02", range(12))
    assert found(trial, time) == {"p01": [("soon", "not delivered")]}


def test_a_pause_is_mentioned_and_asked_about_after_a_week(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(2))
    trial.event("p01", "pause", at=time.now, reason="holiday")
    time.go(days=3)
    assert found(trial, time) == {"p01": [("when there is time", "paused")]}
    time.go(days=5)
    assert found(trial, time) == {"p01": [("soon", "paused")]}
    assert "The reason given: holiday." in contacts(trial.snapshot(), trial.protocol, time.now)[0].reasons[0].words
    trial.event("p01", "withdraw", at=time.now)
    assert found(trial, time) == {}


def test_the_most_urgent_comes_first_and_of_those_who_has_waited_longest(trial, time):
    enrol(trial, "a", "b", "c")
    live(trial, time, "c", range(2))
    live(trial, time, "a", range(4))
    trial.event("b", "pause", at=time.now)
    time.go(days=3)
    assert [each.participant for each in contacts(trial.snapshot(), trial.protocol, time.now)] == ["c", "a", "b"]


def test_removed_participants_are_not_listed(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(2))
    trial.remove("p01", reason="asked")
    time.go(days=5)
    assert found(trial, time) == {}


def test_messages_drawn_ahead_do_not_hide_that_the_last_ones_did_not_arrive(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(12), arrives=False)
    trial.schedule([asked("p01", index, at=time.now + timedelta(hours=12 * index)) for index in range(13, 25)])
    assert found(trial, time) == {"p01": [("soon", "not delivered")]}


def test_who_has_just_come_back_from_a_pause_is_not_silent(trial, time):
    enrol(trial, "p01")
    live(trial, time, "p01", range(4))
    trial.event("p01", "pause", at=time.now, reason="holiday")
    back = datetime(2026, 3, 17, 5, tzinfo=UTC)
    time.now = back
    trial.event("p01", "resume", at=back)
    for hours in (1, 6, 23):  # decisions were due at 9:00 and 17:30 on their clock
        time.now = back + timedelta(hours=hours)
        assert found(trial, time) == {}
    time.now = back + timedelta(hours=25)
    assert found(trial, time) == {"p01": [("soon", "silent for a day")]}
    time.now = back + timedelta(days=2, hours=1)
    assert found(trial, time) == {"p01": [("today", "silent")]}
    words = contacts(trial.snapshot(), trial.protocol, time.now)[0].reasons[0].words
    assert "since they came back on Tue 17 Mar 2026, 06:00 (Europe/Zurich) (2 days 1 hour)" in words


def silent_since(trial, time, *calls):
    """What is said three days after calls at times on the participant's clock, in March."""
    enrol(trial, "p01")
    for index, call in enumerate(calls):
        time.now = datetime(2026, 3, *call, tzinfo=ZoneInfo("Europe/Zurich")).astimezone(UTC)
        trial.decide(asked("p01", index, at=time.now))
    time.go(days=3)
    return contacts(trial.snapshot(), trial.protocol, time.now)[0].reasons[0].words


@pytest.mark.parametrize(
    ("hour", "minute", "times"),
    [
        (8, 41, 5),  # early for 9:00: missed are 17:30, and twice two more days
        (9, 20, 5),  # late for 9:00
        (17, 2, 5),  # early for 17:30: missed are twice two days, and 9:00 of the last one
        (20, 15, 6),  # late for 17:30
        (0, 30, 6),  # very late for 17:30 of the day before
    ],
)
def test_a_call_some_minutes_early_or_late_is_not_counted_as_missed(trial, time, hour, minute, times):
    assert f"It should have asked {times} times since." in silent_since(trial, time, (2, hour, minute))


@pytest.mark.parametrize(("hour", "minute", "times"), [(20, 32, 2), (21, 5, 2), (23, 50, 3), (21, 0, 2)])
def test_the_same_of_an_app_that_asks_once_a_day(tmp_path, time, hour, minute, times):
    protocol = agreed(decisions={"walk": {"times": ["21:00"]}})
    with closing(begun(tmp_path / "once.db", time, protocol=protocol, warm=False)) as trial:
        words = silent_since(trial, time, (2, hour, minute))
    assert f"It should have asked {times} times since." in words


def test_an_app_that_has_decisions_drawn_ahead_is_not_silent(trial, time):
    enrol(trial, "p01")
    time.now = BEGIN + timedelta(hours=1)
    slots = [datetime(2026, 3, day, *clock, tzinfo=ZoneInfo("Europe/Zurich"))
             for day in (2, 3, 4) for clock in ((9, 0), (17, 30))]  # fmt: skip
    trial.schedule([asked("p01", index, at=at.astimezone(UTC)) for index, at in enumerate(slots)])
    trial.decide(asked("p01", 9, at=time.go(hours=9)))  # of 17:30 on the first day
    time.now = datetime(2026, 3, 4, 22, tzinfo=UTC)
    assert "silent" not in str(found(trial, time))
    assert "silence" not in {each.kind for each in trial.alerts()}
    time.now = datetime(2026, 3, 5, 22, tzinfo=UTC)
    assert found(trial, time)["p01"][0] == ("today", "silent")
    words = contacts(trial.snapshot(), trial.protocol, time.now)[0].reasons[0].words
    assert "It should have asked 2 times since." in words

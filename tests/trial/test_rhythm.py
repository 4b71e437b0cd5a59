"""When decisions are due, and which time of the protocol a call is for."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from kerneltrail.trial.rhythm import missed_points, own_point

from .running import Time, agreed, asked, begun, enrol

ZURICH = ZoneInfo("Europe/Zurich")


def local(day, clock):
    return datetime(2026, 3, day, int(clock[:2]), int(clock[3:]), tzinfo=ZURICH)


@pytest.mark.parametrize(
    ("times", "called", "own"),
    [
        (["09:00", "17:30"], (2, "08:40"), (2, "09:00")),
        (["09:00", "17:30"], (2, "09:40"), (2, "09:00")),
        (["09:00", "17:30"], (2, "13:20"), (2, "17:30")),
        (["09:00", "17:30"], (2, "00:10"), (1, "17:30")),
        (["21:00"], (2, "20:32"), (2, "21:00")),
        (["21:00"], (3, "07:00"), (2, "21:00")),
        (["00:10"], (2, "23:50"), (3, "00:10")),
        (["23:50"], (3, "00:10"), (2, "23:50")),
        (["02:30"], (29, "03:10"), (29, "03:30")),  # clocks are put forward that night
    ],
)
def test_a_call_belongs_to_the_nearest_time_of_the_protocol(times, called, own):
    protocol = agreed(decisions={"walk": {"times": times}})
    assert own_point(protocol, "walk", local(*called).astimezone(UTC), ZURICH) == local(*own)


def test_a_kind_without_times_or_of_another_protocol_has_none():
    protocol = agreed(decisions={"walk": {"times": ["09:00"]}, "rest": {}})
    assert own_point(protocol, "rest", local(2, "09:00"), ZURICH) is None
    assert own_point(protocol, "swim", local(2, "09:00"), ZURICH) is None


def missed(trial, start, end):
    with trial.reading() as state:
        return missed_points(trial.protocol, state.participants["p01"], start, end)


def test_points_that_were_asked_for_early_are_not_missed(tmp_path):
    time = Time()
    trial = begun(tmp_path / "rhythm.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01")
    time.now = local(2, "17:10").astimezone(UTC)
    trial.decide(asked("p01", 0, at=time.now))
    assert missed(trial, time.now, local(4, "12:00")) == [local(3, "09:00"), local(3, "17:30"), local(4, "09:00")]
    trial.decide(asked("p01", 1, kind="rest", at=time.go(minutes=1)))  # a kind that is asked for at any time
    assert missed(trial, time.now, local(3, "12:00")) == [local(3, "09:00")]
    trial.schedule([asked("p01", 2, at=local(3, "09:00")), asked("p01", 3, at=local(3, "17:30"))])
    assert missed(trial, time.now, local(4, "12:00")) == [local(4, "09:00")]
    assert missed(trial, time.now, time.now + timedelta(hours=1)) == []
    trial.close()

"""The hour of the day is told by a column's name, and by values that can be one."""

import pytest

from kerneltrail.data.hours import is_hour

CLOCKS = [
    "hour", "Hour", "HOUR", "hours", "hour_of_day", "hourofday", "hourOfDay", "hour of the day", "time_of_day",
    "timeofday", "hour_local", "local_hour", "hour.utc", "decision_hour", "clock", "clock_time",
]  # fmt: skip
OTHERS = [
    "sleep", "sleep_hours", "hours_slept", "Hours of sleep", "hours_since_meal", "log_steps_prev_hour",
    "steps_same_hour_yesterday", "half_hour_steps", "time", "day", "time_since_day", "hourly_rate", "ours", "tempo",
    "screen_time", "clockwise", "wake_hour", "",
]  # fmt: skip


@pytest.mark.parametrize("name", CLOCKS)
def test_a_name_says_that_it_is_the_hour(name: str) -> None:
    assert is_hour(name, 0.0, 24.0)
    assert is_hour(name, 8.8, 21.0)
    assert not is_hour(name, -0.1, 20.0)
    assert not is_hour(name, 0.0, 24.1)
    assert not is_hour(name, float("nan"), 20.0)


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_do_not_whatever_the_values(name: str) -> None:
    assert not is_hour(name, 8.8, 21.0)

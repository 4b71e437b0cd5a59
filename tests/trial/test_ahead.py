"""Days ahead: the times of the protocol on the participant's clock."""

from datetime import UTC, date, datetime

from kerneltrail.trial.ahead import days_ahead

from .running import agreed


def test_a_time_that_a_change_of_clocks_leaves_out_is_named_as_the_clock_shows_it():
    night = agreed(decisions={"walk": {"times": ["02:30", "09:00"]}})
    wanted = days_ahead(
        night, "p01", "Europe/Zurich", kind="walk", begins_on=date(2026, 3, 28), days=2, first_index=7
    )  # fmt: skip
    assert [each.index for each in wanted] == [7, 8, 9, 10]
    assert [each.decided_at.isoformat() for each in wanted] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-28T09:00:00+01:00",
        "2026-03-29T03:30:00+02:00",  # there is no 02:30 on that day
        "2026-03-29T09:00:00+02:00",
    ]
    assert wanted[2].decided_at.astimezone(UTC) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

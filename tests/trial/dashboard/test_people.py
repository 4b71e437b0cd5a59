"""The table of participants: what stands in it, and in which order."""

from datetime import UTC, date, datetime

import pytest

from kerneltrail.trial.dashboard.people import listed, row_of
from kerneltrail.trial.service import create_app
from kerneltrail.trial.standing import lines

from ..running import Time, agreed, begun, enrol, walked
from .conftest import LIMITS, TestClient
from .living import Visitor
from .test_pages import read


@pytest.fixture
def own(tmp_path):
    """Somebody at the desk of a trial in which one takes part, one begins in April, and one left before."""
    time = Time()
    trial = begun(tmp_path / "people.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01")
    enrol(trial, "later", "gone", starts_on=date(2026, 4, 1))
    walked(trial, "p01", range(4), time)
    trial.event("gone", "withdraw", at=time.now, reason="changed their mind")
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor")
        yield one, trial, time
    trial.close()


def test_who_has_not_begun_is_shown_and_counted_so(own):
    one, trial, time = own
    assert "Participants 3 1 active, 1 not begun, 1 withdrawn" in read(one)
    assert "later not begun" in read(one, "/participants")
    assert "1 of 3 participants match “not begun”" in read(one, "/participants?q=not+begun")
    assert "Status not begun Takes part from 2026-04-01" in read(one, "/participants/later")
    assert "Status withdrawn (changed their mind)" in read(one, "/participants/gone")
    assert trial.status().participants == {"active": 1, "not begun": 1, "withdrawn": 1}
    assert "Participants: 1 active, 1 not begun and 1 withdrawn" in lines(trial.status())
    assert [each.id for each in listed(trial.snapshot(), trial.protocol, time.now, search="active")] == ["p01"]


@pytest.mark.parametrize(("hour", "status"), [(21, "not begun"), (22, "active")])
def test_they_begin_when_the_day_does_on_their_clock(own, hour, status):
    _, trial, _ = own
    now = datetime(2026, 3, 31, hour, tzinfo=UTC)  # two hours ahead in Zurich by then
    assert row_of(trial.snapshot().participants["later"], trial.protocol, now).status == status

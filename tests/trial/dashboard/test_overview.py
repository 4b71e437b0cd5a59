"""What the page on policies says of the numbers of an update."""

from datetime import timedelta

from kerneltrail.trial.dashboard.overview import policy_values
from kerneltrail.trial.service import create_app

from ..running import BEGIN, Time, agreed, asked, begun, enrol, walked
from .conftest import LIMITS, TestClient
from .living import Visitor
from .test_pages import read


def test_the_page_says_which_decisions_an_update_counts_as_without_an_outcome(tmp_path):
    time = Time()
    trial = begun(tmp_path / "overview.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01")
    assert not policy_values(trial.snapshot(), "UTC")["counts_all"]
    walked(trial, "p01", range(3), time)
    time.now = BEGIN + timedelta(hours=36)
    trial.decide(asked("p01", 3, at=time.now, available=False, reasons=("driving",)))
    time.go(days=2)
    trial.decide(asked("p01", 7, at=time.now))  # a moment ago
    trial.schedule([asked("p01", 9, at=time.now + timedelta(days=1))])  # later
    updated = trial.update(reason="as planned", by="test")
    assert updated.words.endswith("In all so far, 3 decisions have no outcome.")
    assert trial.status().missing == (0, 3)
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor")
        text = read(one, "/policies")
        assert "3 decisions have no outcome" in text
        assert (
            "also those less than a day old, those drawn ahead for later, and those at which nobody could act" in text
        )
        assert "one should be there a day after each decision at which somebody could act" in text
    trial.close()

"""What is done on the clock, and readiness."""

import threading
from types import SimpleNamespace

import pytest

from kerneltrail.errors import LedgerError
from kerneltrail.trial.service.limits import CallLimits
from kerneltrail.trial.service.served import Served

from ..running import agreed, begun, enrol, walked
from .calls import problem
from .conftest import served


class Fake:
    """Of a trial only what the clock asks for."""

    def __init__(self):
        self.calls = []
        self.reason = "ten outcomes came"
        self.fails = ()
        self._core = SimpleNamespace(ledger=SimpleNamespace(trial="walks"))

    def _called(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise LedgerError("down")

    def warm(self):
        self._called("warm")
        return 3

    def due(self):
        self._called("due")
        return self.reason

    def start_update(self, *, reason, by):
        self._called(f"update: {reason}, by {by}")

    def watch(self):
        self._called("watch")


def test_a_tick_starts_what_is_due_and_watches_whatever_fails():
    trial = Fake()
    running = Served(trial, "walks", interval=0)
    running.tick()
    assert trial.calls == ["due", "update: ten outcomes came, by schedule", "watch"]
    trial.calls.clear()
    trial.reason, trial.fails = "", ("due", "watch")
    running.tick()
    assert trial.calls == ["due", "watch"]
    text = running.metrics.text()
    assert 'kerneltrail_background_failures_total{what="update"} 1' in text
    assert 'kerneltrail_background_failures_total{what="watch"} 1' in text
    running.stop()


def test_the_clock_ticks_until_it_is_stopped():
    trial, ticked = Fake(), threading.Event()
    trial.watch = ticked.set
    running = Served(trial, "walks", CallLimits(), interval=0.01)
    assert not running.ready
    running.start()
    assert ticked.wait(60)
    assert running.ready
    running.stop()
    assert not running.ready
    assert not running._background.is_alive()


def test_readiness_waits_for_warm_states_and_ends_with_the_ledger(trial, time, monkeypatch):
    go = threading.Event()
    inner = trial.warm
    monkeypatch.setattr(trial, "warm", lambda: (go.wait(60), inner())[1])
    for call in served(trial, time):
        assert problem(call("GET", "readyz", scope=None)) == (503, "not-ready")
        assert call("GET", "healthz", scope=None).status_code == 200
        go.set()
        call.until(lambda call=call: call("GET", "readyz", scope=None).status_code == 200)

        def down():
            raise LedgerError("the database is down")

        monkeypatch.setattr(trial, "reading", down)
        assert problem(call("GET", "/readyz", scope=None)) == (503, "not-recorded")


@pytest.mark.parametrize("late", [False, True])
def test_an_update_that_is_due_is_made_by_the_server_itself(tmp_path, time, late):
    trial = begun(tmp_path / "due.db", time, protocol=agreed(updates={"every": 3}), warm=False)
    enrol(trial, "p01")
    walked(trial, indices=range(2 if late else 3))
    for call in served(trial, time):
        call.client.app.state.served.tick()
        if late:
            assert len(trial.policies()) == 1
        else:
            call.until(lambda: len(trial.policies()) == 2)
    trial.close()

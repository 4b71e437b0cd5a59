"""What is done on the clock, and readiness."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kerneltrail.errors import LedgerError
from kerneltrail.trial.service import looking
from kerneltrail.trial.service import served as module
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


@pytest.mark.parametrize("alone", [False, True])
def test_only_a_process_that_does_nothing_but_serve_leaves_what_is_settled(monkeypatch, alone):
    trial = Fake()
    monkeypatch.setattr(module, "leave_settled", lambda: trial.calls.append("settled"))
    running = Served(trial, "walks", interval=0, alone=alone)
    running._live()
    assert trial.calls == ["warm", *(["settled"] if alone else [])]
    assert running.ready
    running.stop()


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


def test_an_answer_that_does_not_come_in_time_is_recorded_all_the_same(call, monkeypatch):
    go, inner = threading.Event(), call.trial.decide

    def slow(request, began):
        assert go.wait(60)
        return inner(request, began=began)

    call.token("app")
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    monkeypatch.setattr(call.trial, "decide", slow)
    late = call.decide()
    assert problem(late) == (503, "not-recorded")
    assert late.headers["Retry-After"] == "1"
    monkeypatch.setattr(module, "PATIENCE", 30.0)
    go.set()
    again = call.decide()
    assert again.status_code in (200, 201)
    assert len(call.trial.participant("p01").decisions) == 1


def test_many_long_exports_keep_nobody_waiting(call, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(looking, "export_table", lambda *_: go.wait(60) and b"done")
    call.token("analyst unblinded")
    with ThreadPoolExecutor(6) as pool:
        exported = [pool.submit(call, "GET", "export/decisions.csv", scope="analyst unblinded") for _ in range(6)]
        assert call.decide().status_code == 201
        assert call("GET", "participants/p01").status_code == 200
        go.set()
        assert [each.result(60).content for each in exported] == [b"done"] * 6

"""What happens at the desk when somebody's data are removed: nobody waits forever, and nothing of them stays."""

import multiprocessing
import threading
from datetime import timedelta

import pytest

from kerneltrail.trial.dashboard import cohort, pages
from kerneltrail.trial.dashboard.kept import KeptPage
from kerneltrail.trial.service import create_app

from ..running import BEGIN, Time, agreed, begun, enrol, walked
from .conftest import LIMITS, TestClient
from .living import Visitor

LIMIT = 90.0
"""Seconds after which a process or a thread that waits is taken for stuck."""
PATHS = ("", "/participants", "/participants/p01", "/cohort", "/policies", "/incidents", "/data")


def opened(folder):
    """A small trial, and its clock."""
    time = Time()
    trial = begun(folder / "removal.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01", "p02", "p03")
    for name in ("p01", "p02", "p03"):
        walked(trial, name, range(6), time)
    time.go(days=4)
    return trial, time


def look_remove_look(folder):
    """Open Today, remove somebody by the call of the service, open all pages."""
    trial, time = opened(folder)
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("operator", "analyst", "monitor")
        for name in ("p01", "p02"):
            assert f"/participants/{name}" in one.get("/desk").text
            event = {"kind": "remove_data", "at": BEGIN.isoformat(), "reason": "asked for"}
            headers = {"Authorization": f"Bearer {one.key('operator').token}"}
            path = f"/v1/trials/walks/participants/{name}/events"
            assert client.post(path, json=event, headers=headers).status_code in (200, 201)
            assert f"/participants/{name}" not in one.get("/desk").text
            answers = [one.get(f"/desk{path}") for path in PATHS]
            assert {each.status_code for each in answers} == {200}
            assert "were removed" in one.get(f"/desk/participants/{name}").text
    trial.close()


def test_today_opens_again_after_somebody_was_removed(tmp_path):
    """In a process of its own, which can be ended if it waits for itself."""
    process = multiprocessing.get_context("spawn").Process(target=look_remove_look, args=(tmp_path,))
    process.start()
    process.join(LIMIT)
    if process.exitcode is None:
        process.kill()
        pytest.fail("the desk waits for itself")
    assert process.exitcode == 0


@pytest.fixture
def desk(tmp_path):
    """A trial whose desk somebody has open."""
    trial, time = opened(tmp_path)
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("operator", "analyst", "monitor")
        yield one, trial, app.state.desk
    trial.close()


@pytest.mark.parametrize(("path", "module", "name"), [("", pages, "today"), ("/cohort", cohort, "all_points")])
def test_a_page_that_was_being_made_when_somebody_was_removed_is_made_anew(desk, monkeypatch, path, module, name):
    one, trial, within = desk
    made, inner = [], getattr(module, name)

    def slow(*args):
        values = inner(*args)
        made.append("p01" in within.points._known)
        if len(made) == 1:
            trial.remove("p01", reason="asked")
            monkeypatch.setattr(module, name, slow)
        return values

    monkeypatch.setattr(module, name, slow)
    answer = one.get(f"/desk{path}")
    assert answer.status_code == 200
    assert "/participants/p01" not in answer.text
    assert made == [True, False]
    assert "p01" not in within.points._known
    assert "p01" not in str(within.today._newest)


def test_what_failed_while_somebody_was_removed_leaves_nothing_of_them(desk, monkeypatch):
    one, trial, within = desk

    def fails(*args):
        trial.remove("p01", reason="asked")
        raise ArithmeticError("broken")

    monkeypatch.setattr(cohort, "sections", fails)
    assert one.get("/desk/cohort").status_code == 500
    assert set(within.points._known) == {"p02", "p03"}


def in_time(*works):
    """Run each in a thread of its own; whether all came to an end."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    return not any(thread.is_alive() for thread in threads)


def test_what_forgets_itself_while_it_is_made_is_not_kept():
    page, made = KeptPage(), []

    def make():
        made.append(len(made))
        if len(made) == 1:
            page.forget()
        return {"number": len(made)}

    def look():
        looks.append(page.of(1, BEGIN, True, make)["number"])

    looks = []
    assert in_time(look)
    look()
    look()
    assert looks == [1, 2, 2]


def test_a_thread_that_forgets_does_not_wait_for_one_that_makes():
    page, begun_, goes_on, looks = KeptPage(), threading.Event(), threading.Event(), []

    def make():
        begun_.set()
        goes_on.wait(10.0)
        return {"number": len(looks)}

    def look():
        looks.append(page.of(1, BEGIN, True, make))

    def forget():
        begun_.wait(10.0)
        page.forget()
        goes_on.set()

    assert in_time(look, forget)
    assert page.of(1, BEGIN, True, lambda: {"number": "anew"}) == {"number": "anew"}
    assert page.of(1, BEGIN + timedelta(seconds=1), True, dict) == {"number": "anew"}


def test_two_threads_that_ask_at_once_compute_it_once():
    page, made, looks = KeptPage(), [], []

    def make():
        made.append(1)
        return {"number": len(made)}

    def look():
        looks.append(page.of(1, BEGIN, True, make)["number"])

    assert in_time(look, look, look)
    assert (looks, len(made)) == ([1, 1, 1], 1)

"""What pages keep: the same as computed anew, and no more work than what is new."""

from datetime import timedelta

import pytest

from kerneltrail.trial.dashboard import kept, pages
from kerneltrail.trial.decided import points_of

from ..running import BEGIN, Time, asked, begun, enrol, outcome, walked


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def trial(tmp_path, time):
    opened = begun(tmp_path / "kept.db", time, warm=False)
    enrol(opened, "p01", "p02")
    walked(opened, "p01", range(4), time)
    walked(opened, "p02", range(4), time)
    yield opened
    opened.close()


def test_kept_points_are_those_computed_anew_after_every_kind_of_entry(trial, time):
    points = kept.KeptPoints()

    def check():
        for now in (BEGIN, BEGIN + timedelta(days=1), time.now, BEGIN + timedelta(days=400)):
            for person in trial.snapshot().participants.values():
                assert points.of(person, now) == points_of(person, now)

    check()
    answer = trial.decide(asked("p01", 9, at=time.go(hours=1)))
    check()
    trial.outcomes([outcome(answer, 3.0, name="first")])
    check()
    trial.outcomes([outcome(answer, 4.0, name="second", supersedes="first")])
    check()
    trial.deliver(answer.value["decision_id"], status="sent", at=time.now, delivered_action=None)
    check()
    trial.deliver(answer.value["decision_id"], status="failed", at=time.now, delivered_action=0)
    check()
    enrol(trial, "p01", starts_on=(BEGIN - timedelta(days=3)).date(), revision=trial.participant("p01").revision)
    check()
    trial.schedule([asked("p02", 20, at=time.now + timedelta(days=2))])
    check()
    trial.remove("p02", reason="asked")
    check()
    assert points.of(trial.snapshot().participants["p02"], time.now) == []


def test_a_look_computes_only_those_of_whom_something_is_new(trial, time, monkeypatch):
    computed = []
    monkeypatch.setattr(kept, "points_of", lambda person: computed.append(person.id) or points_of(person))
    points = kept.KeptPoints()
    for _ in range(3):
        for person in trial.snapshot().participants.values():
            points.of(person, time.now)
    assert computed == ["p01", "p02"]
    trial.decide(asked("p02", 9, at=time.go(hours=1)))
    for person in trial.snapshot().participants.values():
        points.of(person, time.now)
    assert computed == ["p01", "p02", "p02"]


def test_today_is_computed_once_a_minute_however_many_browsers_are_open(team, app, life, monkeypatch):
    trial, time = life
    made, inner = [], pages.today
    monkeypatch.setattr(pages, "today", lambda *a: made.append(a[2]) or inner(*a))
    monkeypatch.setattr(time, "now", time.now)
    texts = {team.get("/desk").text for _ in range(3)}
    assert len(made) == len(texts) == 1
    time.go(minutes=1)
    team.get("/desk")
    assert len(made) == 2
    trial.incident("odd", "something is odd", severity="info", key="kept")
    assert "something is odd" in team.get("/desk").text
    assert len(made) == 3
    trial.acknowledge("kept", by="test", note="")

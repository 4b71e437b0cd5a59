"""A served trial while its database is full or stopped: not recorded, said so, and back to work without anybody."""

import pytest
from sqlalchemy import event
from sqlalchemy.engine import make_url

from kerneltrail.trial.ledger import Ledger

from .. import postgres
from ..running import begun, enrol
from .calls import outcome, problem
from .conftest import served


@pytest.fixture
def stopped_and_started():
    with postgres.own_server() as server:
        yield server


def acknowledged_until_it_fails(call, most=140):
    """Decisions with outcomes until something is not recorded: what was acknowledged, and the refusal."""
    answers = {}
    for index in range(most):
        answer = call.decide(index=index)
        if answer.status_code != 201:
            return answers, answer
        answers[index] = answer.content
        stored = call("POST", "outcomes", {"items": [outcome(answer.json(), 1.0)]})
        if stored.status_code != 200:
            return answers, stored
    raise AssertionError("it never failed")


def assert_all_is_there(call, trial, answers):
    for index, content in answers.items():
        again = call.decide(index=index)
        assert (again.status_code, again.content) == (200, content)
    after = call.decide(index=160)
    assert (after.status_code, after.json()["rung"]) == (201, "policy")
    assert call("GET", "readyz", scope=None).status_code == 200
    started = call("POST", "updates", {"reason": "after it"}, scope="operator").json()["id"]
    call.until(lambda: trial.updated(started).state != "running")
    assert trial.updated(started).state in ("done", "empty")
    replayed = trial.replay()
    assert replayed.exact == len(trial.participant("p01").decisions)
    assert trial.verify().sound


def test_a_full_disk_is_not_recorded_and_all_goes_on_when_there_is_room(tmp_path, time):
    trial = begun(tmp_path / "full.db", time, warm=False)
    enrol(trial, "p01")
    engine = trial._core.ledger.database.engine
    with engine.connect() as connection:
        pages = 40 + connection.exec_driver_sql("PRAGMA page_count").scalar()

    def limited(connection, *_):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    trial._core.ledger.close()
    event.listen(engine, "connect", limited)
    for call in served(trial, time):
        for scope in ("app", "operator"):
            call.token(scope)
        answers, refused = acknowledged_until_it_fails(call)
        assert len(answers) > 2
        assert problem(refused) == (503, "not-recorded")
        assert refused.headers["Retry-After"]
        assert "full.db" not in refused.text
        tried = {index: call.decide(index=index) for index in range(150, 155)}
        answers |= {index: each.content for index, each in tried.items() if each.status_code == 201}  # the last page
        refusals = [problem(each) for each in tried.values() if each.status_code != 201]
        assert set(refusals) == {(503, "not-recorded")}
        event.remove(engine, "connect", limited)
        event.listen(engine, "checkout", _roomy)  # somebody has tidied up; the service is not touched
        assert_all_is_there(call, trial, answers)
    trial.close()


def _roomy(connection, *_):
    connection.execute("PRAGMA max_page_count = 1000000")


def test_a_database_that_is_stopped_is_not_recorded_and_all_goes_on_when_it_is_started(time, stopped_and_started):
    address = make_url(stopped_and_started.get_uri()).render_as_string(hide_password=False)
    trial = begun(address, time, warm=False, backups=None)
    enrol(trial, "p01")
    for call in served(trial, time):
        for scope in ("app", "operator"):
            call.token(scope)
        answers = {index: call.decide(index=index).content for index in range(3)}
        stopped_and_started.stop()
        for _ in range(2):
            refused = call.decide(index=3)
            assert problem(refused) == (503, "not-recorded")
            assert refused.headers["Retry-After"]
            assert "kt-pg" not in refused.text
        assert problem(call("POST", "outcomes", {"items": []}))[0] == 503
        assert problem(call("GET", "readyz", scope=None)) == (503, "not-recorded")
        assert call("GET", "healthz", scope=None).status_code == 200
        stopped_and_started.start()
        assert_all_is_there(call, trial, answers)
        late = call.decide(index=3, drawn_by="app", action=1, probability=0.5, reason="not recorded at the time")
        assert (late.status_code, late.json()["drawn_by"]) == (201, "app")
        assert trial.update(reason="with what the app drew").state in ("done", "empty")
    trial.close()


def test_a_server_that_starts_before_its_database_waits_for_it(time, stopped_and_started):
    address = make_url(stopped_and_started.get_uri()).render_as_string(hide_password=False)
    trial = begun(address, time, warm=False)
    enrol(trial, "p01")
    token = trial.create_key(["app"]).token
    stopped_and_started.stop()
    for call in served(trial, time):
        call._tokens["app"] = token
        assert problem(call("GET", "readyz", scope=None))[0] == 503
        assert problem(call.decide()) == (503, "not-recorded")
        stopped_and_started.start()
        call.until(lambda call=call: call("GET", "readyz", scope=None).status_code == 200)
        assert call.decide().status_code == 201
    trial.close()
    with Ledger(address, "walks") as ledger:
        assert ledger.get("decision", "p01/walk/0") is not None
        ledger.close()

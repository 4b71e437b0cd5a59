"""The calls of a JustIn server go to the same ledger."""

import pytest

from ..running import agreed, begun
from .calls import problem
from .conftest import served


@pytest.fixture
def call(tmp_path, time):
    """One kind of decision, as JustIn has it."""
    trial = begun(tmp_path / "justin.db", time, protocol=agreed(decisions={"walk": {}}), warm=False)
    yield from served(trial, time)
    trial.close()


ACTION = {
    "user_id": "u1",
    "timestamp": "2026-03-01T09:00:00",
    "decision_idx": 0,
    "context": {"hour": 9.0, "steps": 120.0},
}


def uploaded(outcome, **changes):
    data = {"context": ACTION["context"], "action": 1, "action_prob": 0.5, "state": [1], "outcome": outcome}
    return {"user_id": "u1", "timestamp": "2026-03-01T10:00:00", "decision_idx": 0, "data": data, **changes}


def test_a_user_an_action_an_outcome_and_an_update(call):
    assert call("POST", "/api/v1/add_user", {"user_id": "u1"}).status_code == 201
    first = call("POST", "/api/v1/action", ACTION)
    assert first.status_code == 201
    body = first.json()
    record = call.trial.decision(body["rid"])[1]
    assert record["decided_at"] == "2026-03-01T09:00:00+00:00"
    chance = float.fromhex(record["probability"])
    chosen = chance if body["action"] else 1.0 - chance
    assert (body["action"], body["action_prob"]) == (record["action"], chosen)
    assert call("POST", "/api/v1/action", ACTION).json() == body
    assert problem(call("POST", "/api/v1/action", {**ACTION, "context": {"hour": 1.0, "steps": 1.0}}))[0] == 422
    assert call("POST", "/api/v1/upload_data", uploaded({"clicks": 4})).status_code == 201
    assert call.trial.participant("u1").current()["u1/justin walk 0"].value == 4.0
    assert problem(call("POST", "/api/v1/upload_data", uploaded({"clicks": 5}))) == (422, "refused")
    update = {"callback_url": "http://127.0.0.1:9/callback", "timestamp": "2026-03-01T12:00:00"}
    started = call("POST", "/api/v1/update", update, scope="operator")
    assert (started.status_code, started.json()["status"]) == (202, "processing")
    where = started.headers["Location"]
    call.until(lambda: call("GET", where, scope="operator").json()["state"] == "done")


def test_what_cannot_be_is_refused_as_everywhere(call):
    assert problem(call("POST", "/api/v1/action", ACTION)) == (404, "unknown")
    call("POST", "/api/v1/add_user", {"user_id": "u1"})
    zoned = {"user_id": "u1", "timezone": "Europe/Rome"}
    assert problem(call("POST", "/api/v1/add_user", zoned)) == (409, "known")
    assert problem(call("POST", "/api/v1/add_user", {"user_id": "u2", "timezone": "Moon"})) == (422, "refused")
    assert problem(call("POST", "/api/v1/action", {**ACTION, "timestamp": "some time"})) == (422, "refused")
    assert problem(call("POST", "/api/v1/action", {**ACTION, "kind": "swim"})) == (422, "refused")
    call("POST", "/api/v1/action", ACTION)
    assert problem(call("POST", "/api/v1/upload_data", uploaded({"a": 1, "b": 2}))) == (422, "refused")
    assert problem(call("POST", "/api/v1/upload_data", uploaded({"a": "4"}))) == (422, "refused")
    assert problem(call("POST", "/api/v1/update", {}, scope="app")) == (403, "wrong-scope")
    assert problem(call("POST", "/api/v1/add_user", {"user_id": "u3"}, scope=None)) == (401, "no-key")


def test_several_kinds_must_be_named(tmp_path, time):
    trial = begun(tmp_path / "kinds.db", time, warm=False)
    for call in served(trial, time):
        call("POST", "/api/v1/add_user", {"user_id": "u1"})
        assert problem(call("POST", "/api/v1/action", ACTION)) == (422, "refused")
        assert call("POST", "/api/v1/action", {**ACTION, "kind": "rest"}).status_code == 201
    trial.close()

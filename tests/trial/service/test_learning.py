"""Calls about updates, policies and which one serves."""

import threading

from kerneltrail.trial import updating

from .calls import outcome, problem


def learn(call, indices=range(4), person="p01"):
    items = []
    for index in indices:
        decision = call.decide(person, index, hour=8.0 + index, steps=50.0 * index).json()
        items.append(outcome(decision, 1.0 + 0.2 * index))
    assert call("POST", "outcomes", {"items": items}).json()["stored"] == len(items)


def updated(call, **body):
    started = call("POST", "updates", {"reason": "test", **body}, scope="operator")
    assert started.status_code == 202
    where = started.headers["Location"]

    def finished():
        answer = call("GET", where, scope="monitor").json()
        return None if answer["state"] == "running" else answer

    return call.until(finished)


def test_an_update_runs_beside_decisions_and_makes_a_policy(both):
    learn(both)
    done = updated(both)
    assert (done["state"], done["version"], done["rows"]) == ("done", "2", 4)
    assert all(check["passed"] for check in done["checks"])
    policies = both("GET", "policies", scope="analyst")
    assert policies.headers["ETag"] == '"2"'
    assert [each["version"] for each in policies.json()["policies"]] == ["1", "2"]
    assert both.decide(index=9).json()["policy_version"] == "2"
    assert updated(both)["state"] == "empty"
    assert problem(both("GET", "updates/nothing", scope="operator")) == (404, "unknown")


def test_a_dry_run_records_nothing(call):
    learn(call)
    call.token("operator")
    before = call.trial._core.ledger.head()
    done = call("POST", "updates", {"reason": "look", "dry_run": True}, scope="operator")
    assert (done.status_code, done.json()["state"]) == (200, "done")
    assert call.trial._core.ledger.head() == before


def test_one_update_at_a_time_and_decisions_meanwhile(call, monkeypatch):
    learn(call)
    go, inner = threading.Event(), updating.run

    def slow(core, begun):
        assert go.wait(60)
        return inner(core, begun)

    monkeypatch.setattr(updating, "run", slow)
    started = call("POST", "updates", {"reason": "test"}, scope="operator")
    assert call("GET", started.headers["Location"], scope="operator").json()["state"] == "running"
    assert problem(call("POST", "updates", {"reason": "again"}, scope="operator")) == (409, "update-running")
    assert call.decide(index=5).json()["policy_version"] == "1"
    go.set()
    call.until(lambda: call("GET", started.headers["Location"], scope="operator").json()["state"] == "done")
    assert call.decide(index=6).json()["policy_version"] == "2"


def test_an_update_needs_a_reason(call):
    assert problem(call("POST", "updates", {}, scope="operator")) == (422, "refused")
    assert problem(call("POST", "updates", {"reason": ""}, scope="operator")) == (422, "refused")
    assert problem(call("POST", "updates", {"reason": "x", "as_of": "now"}, scope="operator")) == (422, "refused")


def test_a_rollback_names_what_serves(both):
    learn(both)
    updated(both)
    back = {"version": "1", "reason": "too many prompts"}
    assert problem(both("PUT", "active-policy", back, scope="operator")) == (428, "revision-needed")
    stale = both("PUT", "active-policy", back, scope="operator", headers={"If-Match": '"1"'})
    assert problem(stale) == (412, "stale-revision")
    done = both("PUT", "active-policy", back, scope="operator", headers={"If-Match": '"2"'})
    assert (done.status_code, done.headers["ETag"]) == (200, '"1"')
    assert both.decide(index=9).json()["policy_version"] == "1"
    unknown = {"version": "7", "reason": "?"}
    assert problem(both("PUT", "active-policy", unknown, scope="operator", headers={"If-Match": "*"}))[0] == 404

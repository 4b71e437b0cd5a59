"""Calls of the service as an app makes them, with a key of every scope."""

from datetime import timedelta
from time import monotonic, sleep

from ..running import BEGIN

SCOPES = ("app", "operator", "analyst", "monitor")
PERSON = {"timezone": "Europe/Zurich", "starts_on": "2026-03-01", "ends_on": "2026-06-01", "attributes": {}}


class Caller:
    """Calls /v1/trials/walks/… with the key of a scope, made when it is first needed."""

    def __init__(self, client, trial):
        self.client, self.trial = client, trial
        self._tokens = {}

    def token(self, scope):
        """The token of a key with a scope, or with several between spaces."""
        if scope not in self._tokens:
            self._tokens[scope] = self.trial.create_key(scope.split(), note="test").token
        return self._tokens[scope]

    def __call__(self, method, path, body=None, *, scope="app", headers=None, **more):
        where = path if path.startswith("/") else f"/v1/trials/walks/{path}"
        sent = dict(headers or {})
        if scope is not None:
            sent["Authorization"] = f"Bearer {self.token(scope)}"
        if body is not None:
            more["json"] = body
        return self.client.request(method, where, headers=sent, **more)

    def decide(self, person="p01", index=0, kind="walk", **changes):
        return self("PUT", f"participants/{person}/decisions/{kind}/{index}", asked(index, **changes))

    def until(self, answered, seconds=60.0):
        """Wait until a function answers with something true."""
        end = monotonic() + seconds
        while not (answer := answered()):
            assert monotonic() < end, "it took too long"
            sleep(0.02)
        return answer


def asked(index=0, hour=9.0, steps=120.0, **changes):
    """The body of a request for a decision: two a day."""
    at = BEGIN + timedelta(hours=12 * index)
    return {"decided_at": at.isoformat(), "available": True, "context": {"hour": hour, "steps": steps}, **changes}


def outcome(decision, value, **changes):
    return {
        "client_id": f"o{decision['index']}",
        "participant": decision["participant"],
        "decision": decision["decision_id"],
        "value": value,
        "observed_at": "2026-03-01T12:00:00+00:00",
        **changes,
    }


def problem(response):
    """Status and kind of a problem, which must be one."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert body["status"] == response.status_code
    assert body["title"]
    return response.status_code, body["type"].rpartition(":")[2]


def local_time(call, index, at):
    """When a decision that is made at a time is made on the participant's clock."""
    answer = call.decide(index=index, decided_at=at.isoformat())
    return call.trial.decision(answer.json()["decision_id"])[1]["decided_at"]

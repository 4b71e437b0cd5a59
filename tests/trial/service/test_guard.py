"""Keys, scopes, limits, and what the log must not have."""

import json
import logging
import socket
from datetime import timedelta

import pytest

from kerneltrail.store.canonical import digest
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.service import CallLimits, address_of, create_app, in_thread, listening
from kerneltrail.trial.service.app import openapi

from ..running import BEGIN, begun, enrol
from .calls import PERSON, SCOPES, asked, outcome, problem
from .conftest import served

BODIES = {
    "participants/{participant}": PERSON,
    "participants/{participant}/events": {"kind": "pause", "at": BEGIN.isoformat()},
    "participants/{participant}/decisions/{kind}/{index}": asked(),
    "decisions/{decision}/delivery": {"status": "sent"},
}


def guarded():
    """Every call that needs a key, with the scopes that its description names."""
    for path, operations in openapi()["paths"].items():
        for method, operation in operations.items():
            if "x-scopes" in operation:
                yield pytest.param(method.upper(), path, operation["x-scopes"], id=f"{method} {path}")


def filled(path):
    named = {"{trial}": "walks", "{index}": "0", "{table}": "participants", "{format}": "csv", "{kind}": "walk"}
    for name, value in named.items():
        path = path.replace(name, value)
    return path.replace("{participant}", "p01").replace("{", "").replace("}", "")


@pytest.mark.parametrize(("method", "path", "scopes"), list(guarded()))
def test_every_call_asks_for_its_scope_before_it_reads_anything(call, method, path, scopes):
    where, body = filled(path), "{not json"
    for header in ({}, {"Authorization": "Bearer kt_00000000_secret"}, {"Authorization": "Basic abc"}):
        response = call(method, where, scope=None, headers=header, content=body)
        assert problem(response) == (401, "no-key")
        if "kt_" in str(header):
            assert "it may be of another trial (each has keys of its own)" in response.json()["detail"]
        assert response.headers["WWW-Authenticate"].startswith("Bearer ")
        for scope in scopes:
            assert scope in response.headers["WWW-Authenticate"]
            assert scope in response.json()["detail"]
    for scope in set(SCOPES) - set(scopes):
        response = call(method, where, scope=scope, content=body)
        assert problem(response) == (403, "wrong-scope")
        assert all(each in response.json()["detail"] for each in scopes)
    for scope in scopes:
        assert call(method, where, scope=scope, content=body).status_code not in (401, 403)


def test_a_call_without_a_scope_is_health_only():
    paths = openapi()["paths"]
    open_to_all = {path for path, each in paths.items() if not all("x-scopes" in one for one in each.values())}
    assert open_to_all == {"/v1/trials/{trial}/healthz", "/v1/trials/{trial}/readyz"}


def test_keys_that_open_nothing(call, trial, time, tmp_path):
    key = trial.create_key(["app"])
    sent = {"Authorization": f"Bearer {key.token}"}
    path, body = "participants/p01/decisions/walk/0", asked()
    for token in (key.token[:-1], key.token + "x", key.token.upper(), f"kt_{key.id}_", f"kt_{key.id}", "kt__", "é" * 9):
        refused = call("PUT", path, body, scope=None, headers={"Authorization": f"Bearer {token}".encode()})
        assert problem(refused) == (401, "no-key")
    doubled = [("Authorization", sent["Authorization"]), ("Authorization", "Bearer other")]
    assert problem(call.client.put(f"/v1/trials/walks/{path}", json=body, headers=doubled)) == (401, "no-key")
    long = {"Authorization": "Bearer " + "x" * 5000}
    assert problem(call("PUT", path, body, scope=None, headers=long)) == (401, "no-key")
    assert call("PUT", path, body, scope=None, headers=sent).status_code == 201
    trial.revoke_key(key.id, reason="lost")
    assert problem(call("PUT", path, body, scope=None, headers=sent)) == (401, "no-key")


def test_a_key_ends_when_it_says_so(call, trial, time):
    end = (time.now + timedelta(hours=1)).isoformat()
    payload = {"scopes": ["app"], "sha256": digest(b"secret"), "expires_at": end}
    trial._core.ledger.append("key-created", "abcd", payload, response=b"{}")
    sent = {"Authorization": "Bearer kt_abcd_secret"}
    assert call("GET", "participants/p01", scope=None, headers=sent).status_code == 200
    time.go(hours=1)
    refused = call("GET", "participants/p01", scope=None, headers=sent)
    assert problem(refused) == (401, "no-key")
    assert "expired" in refused.json()["detail"]


def test_a_key_of_another_trial_opens_nothing_here(call, trial, tmp_path, time):
    with Ledger(tmp_path / "service.db", "runs", clock=time) as other:
        payload = {"scopes": list(SCOPES), "sha256": digest(b"secret")}
        other.append("key-created", "abcd", payload, response=b"{}")
        sent = {"Authorization": "Bearer kt_abcd_secret"}
        assert problem(call("GET", "participants/p01", scope=None, headers=sent)) == (401, "no-key")
    assert problem(call("GET", "/v1/trials/runs/participants/p01")) == (404, "unknown-trial")
    assert "walks" not in call("GET", "/v1/trials/runs/participants/p01").text
    assert problem(call("GET", "/v1/trials/walk%73/participants/p01")) == (404, "unknown-trial")


def test_bodies_are_limited_and_must_be_json(call):
    path, kind = "participants/p01/decisions/walk/0", {"Content-Type": "application/json"}
    long = json.dumps({**asked(), "reason": "x" * 1_000_000})
    assert problem(call("PUT", path, content=long, headers=kind)) == (413, "too-long")

    def endless():
        for _ in range(200):
            yield b"x" * 10_000

    assert problem(call("PUT", path, content=endless(), headers=kind)) == (413, "too-long")
    assert problem(call("PUT", path, content="{}", headers={"Content-Type": "text/plain"})) == (415, "not-json")
    for body in (b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xef\xbb\xbf{}"):
        assert problem(call("PUT", path, content=body, headers=kind)) == (400, "not-json")
    for body in (b"[]", b"1", b"null", b'"x"'):
        assert problem(call("PUT", path, content=body, headers=kind)) == (422, "refused")
    assert problem(call("PUT", path, headers=kind)) == (422, "refused")
    assert call.decide().status_code == 201


def test_a_key_that_calls_too_often_is_told_to_wait(trial, time):
    for call in served(trial, time, limits=CallLimits(rate=0.5, burst=3, refusals=0.5)):
        answers = [call("GET", "participants/p01").status_code for _ in range(5)]
        assert answers == [200, 200, 200, 429, 429]
        refused = call("GET", "participants/p01")
        assert problem(refused) == (429, "too-many")
        assert 1 <= int(refused.headers["Retry-After"]) <= 2
        assert call("GET", "participants/p01", scope="operator").status_code == 200  # another key
        tried = [call("GET", "participants/p01", scope=None).status_code for _ in range(8)]
        assert tried == [401] * 5 + [429] * 3  # whoever guesses keys is slowed down


def test_the_log_has_study_ids_and_nothing_that_was_observed_or_is_secret(location, time, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    trial = begun(location, time, warm=False)
    enrol(trial, "p01")
    tokens = []
    for call in served(trial, time):
        tokens = [call.token(scope) for scope in SCOPES]
        decision = call.decide(steps=117.25, hour=13.625).json()
        call.decide(steps=118.25)
        call.decide(index=1, mood="melancholic")
        call("POST", "outcomes", {"items": [outcome(decision, 4711.5), outcome(decision, 4712.5)]})
        call("PUT", "participants/p02", {**PERSON, "attributes": {"diagnosis": "melancholic"}})
        call("GET", "incidents?secret=melancholic", scope="operator")
        call("PUT", "participants/p01%0Aforged%20line/decisions/walk/0", asked())
        call("GET", "export/decisions.csv", scope="analyst unblinded")
        call("POST", "outcomes", content=b'{"melancholic')

        def fails(request, began):
            raise RuntimeError(f"melancholic {request.context}")

        monkeypatch.setattr(call.trial, "decide", fails)
        assert call.decide(index=7, steps=119.25).status_code == 500
    trial.close()
    lines = [each.getMessage() for each in caplog.records if not each.name.startswith("http")]  # that is the caller's
    kept = "\n".join(lines) + "".join(str(each.exc_info or "") for each in caplog.records)
    assert "PUT /participants/{participant}/decisions/{kind}/{index} 201" in kept
    assert "participant='p01'" in kept
    assert "RuntimeError in /participants/{participant}/decisions/{kind}/{index} (test_guard.py:" in kept
    for word in ("melancholic", "117.25", "118.25", "119.25", "13.625", "4711.5", "4712.5"):
        assert word not in kept
    for token in tokens:
        assert token not in kept
        assert token.split("_", 2)[2] not in kept
    assert not any(line.startswith("forged") for line in kept.splitlines())


def test_a_server_listens_on_this_machine_only_unless_told():
    with listening(port=0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert address_of(listener).startswith("http://127.0.0.1:")
        assert listener.family == socket.AF_INET


@pytest.mark.parametrize(
    ("line", "more", "statuses"),
    [
        ("PUT {path}", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", {400}),
        ("PUT {path}", "Content-Length: 5\r\nContent-Length: 6\r\n", {400}),
        ("PUT {path}", "Content-Length: -5\r\n", {400}),
        ("GET http://elsewhere{path}", "", {404}),
        ("GET /x/..{path}", "", {404}),
        ("GET /{path}", "", {404}),
        ("GET {path}\xff", "", {400}),
        ("GET {path}%ff", "", {422}),
        ("OPTIONS *", "", {404}),
        ("DELETE {path}", "", {405}),
        ("GET {path}", "Authorization: Bearer other\r\n", {401}),
    ],
)
def test_lines_that_no_client_would_send(trial, time, line, more, statuses):
    token = trial.create_key(["app"]).token
    app = create_app(trial, name="walks", clock=time, interval=0)
    first = line.format(path="/v1/trials/walks/participants/p01")
    sent = f"{first} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{more}\r\n0\r\n\r\n"
    with in_thread(app) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(sent.encode("latin-1"))
            answer = connection.recv(65536)
    assert int(answer.split()[1]) in statuses

"""The client against a real server, and against one that fails in every way."""

import threading
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kerneltrail.errors import CallRefused, DataError
from kerneltrail.trial import Client
from kerneltrail.trial.service import CallLimits, create_app, in_thread

from .running import BEGIN, Time, begun

CONTEXT = {"hour": 9.0, "steps": 120.0}


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    time = Time()
    trial = begun(tmp_path_factory.mktemp("client") / "ledger.db", time, warm=False)
    app = create_app(trial, name="walks", limits=CallLimits(rate=1e6, burst=10**6), clock=time, interval=0)
    with in_thread(app) as address:
        made = {}
        for name, *scopes in (("app", "app"), ("operator", "operator"), ("analyst", "analyst", "unblinded")):
            made[name] = Client(address, "walks", trial.create_key(scopes).token, timeout=60.0)
        yield made
    trial.close()


def enrolled(clients, name):
    return clients["app"].enrol(name, timezone="Europe/Zurich", starts_on=date(2026, 3, 1))


def test_a_participant_from_enrolment_to_replay(clients):
    app, operator, analyst = clients["app"], clients["operator"], clients["analyst"]
    first = enrolled(clients, "a/b <c>")
    assert (first.status, enrolled(clients, "a/b <c>").replayed) == (201, True)
    changed = app.enrol("a/b <c>", timezone="Europe/Rome", starts_on=date(2026, 3, 1), tag=first.tag)
    assert app.participant("a/b <c>").value["timezone"] == "Europe/Rome"
    assert changed.tag == app.participant("a/b <c>").tag
    decided = app.decide("a/b <c>", "walk", 0, decided_at=BEGIN, context=CONTEXT)
    again = app.decide("a/b <c>", "walk", 0, decided_at=BEGIN, context=CONTEXT)
    assert (decided.body, decided.replayed, again.replayed) == (again.body, False, True)
    assert decided.probability_of_action == (decided.probability if decided.action else 1 - decided.probability)
    app.deliver(decided.decision_id, "delivered", at=BEGIN, delivered_action=decided.action)
    item = {
        "client_id": "o1", "participant": "a/b <c>", "decision": decided.decision_id, "value": 1.5,
        "observed_at": BEGIN + timedelta(hours=1),
    }  # fmt: skip
    broken = app.outcomes(
        [{**item, "client_id": "nan", "value": float("nan")}, {**item, "client_id": "o0", "value": None}]
    )
    assert [each.status for each in broken] == ["refused", "stored"]  # NaN is answered for by itself
    assert [each.status for each in app.outcomes([item, {**item, "client_id": "o2", "decision": "none"}])] == [
        "stored",
        "refused",
    ]
    seen = {"client_id": "s", "participant": "a/b <c>", "observed_at": BEGIN, "values": {"steps": 3}}
    assert app.observe([seen])[0].status == "stored"
    dry = operator.update("look", dry_run=True)
    assert (dry.state, dry.id) == ("done", "")
    started = operator.update("now")
    while operator.updated(started.id).state == "running":
        pass
    assert operator.updated(started.id).version == "2"
    back = operator.activate("1", "too early", tag=operator.policies().tag)
    assert back.status == 200
    assert b"a/b <c>" in analyst.export("decisions", reason="a look & more")
    assert analyst.replay(decided.decision_id).state == "equal"


def test_schedules_reports_events_and_incidents(clients):
    app, operator = clients["app"], clients["operator"]
    enrolled(clients, "p02")
    ahead = [{"kind": "walk", "index": number, "decided_at": BEGIN, "context": CONTEXT} for number in range(2)]
    drawn = app.schedule("p02", ahead)
    assert [each.index for each in drawn] == [0, 1]
    assert app.schedule("p02", ahead)[1].replayed
    contexts = {"09:00": CONTEXT, "17:30": CONTEXT}
    days = {"begins_on": date(2026, 3, 10), "days": 2, "first_index": 50, "contexts": contexts}
    times, of_days = zip(*app.schedule_days("p02", "walk", **days), strict=True)
    assert [f"{at:%d %H:%M}" for at in times] == ["10 09:00", "10 17:30", "11 09:00", "11 17:30"]
    assert [each.index for each in of_days] == [50, 51, 52, 53]
    reported = app.decide("p02", "rest", 0, decided_at=BEGIN, context=CONTEXT, drawn=(1, 0.5, "no answer"))
    assert (reported.action, reported.rung) == (1, "fixed")
    other = {**CONTEXT, "steps": 1.0}
    stands = app.decide("p02", "walk", 0, decided_at=BEGIN, context=other)  # drawn ahead: whatever is asked for now
    assert (stands.decision_id, stands.replayed) == (drawn[0].decision_id, True)
    with pytest.raises(CallRefused) as refused:
        app.decide("p02", "rest", 0, decided_at=BEGIN, context=other)
    assert (refused.value.status, refused.value.kind) == (422, "key-conflict")
    incidents = operator.incidents(open_only=True)
    assert incidents
    for each in incidents:
        operator.acknowledge(each["id"], by="Ann")
    assert operator.incidents(open_only=True) == []
    assert app.event("p02", "pause", at=BEGIN).value["status"] == "paused"
    with pytest.raises(CallRefused, match="scope operator"):
        app.event("p02", "remove_data", at=BEGIN)


@contextmanager
def answering(*answers):
    """A server that gives one answer after the other: a status, a body, headers; None breaks the connection."""
    calls, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            calls.append((self.command, self.path, self.rfile.read(length), self.headers.get("Authorization")))
            given = left.pop(0)
            if given is None:
                self.connection.close()
                return
            status, body, headers = given
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def problem(status, kind, **headers):
    body = f'{{"type":"urn:kerneltrail:problem:{kind}","title":"no","status":{status},"detail":"why"}}'.encode()
    return status, body, {"Content-Type": "application/problem+json", **headers}


GOOD = (200, b'{"incidents":[]}', {})


def test_what_may_be_repeated_is_repeated_and_waits_as_told():
    pauses = []
    flaky = (problem(503, "not-recorded", **{"Retry-After": "3"}), None, problem(409, "in-flight"), GOOD)
    with answering(*flaky) as (address, calls):
        client = Client(address, "walks", "kt_a_b", pause=pauses.append)
        assert client.incidents() == []
    assert len(set(calls)) == 1
    assert calls[0][3] == "Bearer kt_a_b"
    assert len(pauses) == 3
    assert pauses[0] == 3.0
    assert all(0.0 < each <= 10.0 for each in pauses)


@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_that_is_cut_off_is_none_and_the_call_is_repeated(status):
    cut = (status, b'{"inci', {"Content-Length": "500"})
    with answering(cut, GOOD) as (address, calls):
        assert Client(address, "walks", "kt_a_b", pause=lambda _: None).incidents() == []
        assert len(calls) == 2
    with answering(cut) as (address, _):
        with pytest.raises(CallRefused) as refused:
            Client(address, "walks", "kt_a_b", tries=1).incidents()
        assert (refused.value.status, refused.value.kind) == (0, "no-answer")


def test_what_is_refused_or_must_not_be_repeated_is_not():
    with answering(problem(422, "refused")) as (address, calls):
        with pytest.raises(CallRefused) as refused:
            Client(address, "walks", "kt_a_b", pause=pytest.fail).incidents()
        assert (refused.value.status, refused.value.kind, refused.value.detail) == (422, "refused", "why")
        assert len(calls) == 1
    with answering(problem(503, "not-recorded")) as (address, calls):
        with pytest.raises(CallRefused):
            Client(address, "walks", "kt_a_b", pause=pytest.fail).update("now")
        assert len(calls) == 1
    gateway = answering((502, b"<html>", {"Content-Type": "text/html"}))
    with gateway as (address, _), pytest.raises(CallRefused, match="status 502"):
        Client(address, "walks", "kt_a_b", tries=1).incidents()


def test_the_key_is_not_taken_elsewhere():
    with answering(GOOD) as (other, stolen):
        with answering((307, b"", {"Location": f"{other}/x"}), (301, b"", {"Location": other})) as (address, _):
            client = Client(address, "walks", "kt_a_b", tries=1)
            for _ in range(2):
                with pytest.raises(CallRefused):
                    client.incidents()
        assert stolen == []
    assert "kt_a_b" not in repr(client)


@pytest.mark.parametrize("address", ["trial.example.org", "ftp://x", "http://trial.example.org", "http://10.0.0.1", ""])
def test_addresses_that_are_none_or_without_tls(address):
    with pytest.raises(DataError):
        Client(address, "walks", "kt_a_b")


def test_nobody_there_and_times_without_a_zone():
    client = Client("http://127.0.0.1:9", "walks", "kt_a_b", tries=2, pause=lambda seconds: None)
    assert not client.ready()
    with pytest.raises(CallRefused) as refused:
        client.incidents()
    assert (refused.value.status, refused.value.kind) == (0, "no-answer")
    with pytest.raises(DataError, match="zone"):
        client.decide("p01", "walk", 0, decided_at=datetime(2026, 3, 1, 9))
    with pytest.raises(DataError, match="zone"):
        client.outcomes([{"observed_at": datetime(2026, 3, 1, 9)}])
    assert Client("http://trial.example.org", "walks", "kt_a_b", clear=True)

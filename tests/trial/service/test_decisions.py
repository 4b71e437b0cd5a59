"""Calls about decisions and what came of them."""

import json

import pytest

from kerneltrail.errors import InFlight, LedgerError, NotRecorded
from kerneltrail.trial.draw import PUBLISHED

from ..running import BEGIN
from .calls import asked, outcome, problem


def test_a_decision_is_made_once_and_repeated_to_the_byte(both):
    first = both.decide()
    again = both.decide()
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    body = first.json()
    assert set(body) == {
        "decision_id", "trial", "participant", "kind", "index", "action", "probability", "probability_of_action",
        "available", "reasons", "rung", "rung_reason", "policy_version", "model_id", "composition", "advantage",
        "clipped", "imputed", "expires_at", "words",
    }  # fmt: skip
    assert (body["rung"], body["trial"], body["participant"]) == ("policy", "walks", "p01")
    entry = both.trial._core.ledger.get("decision", "p01/walk/0")
    assert entry.response == first.content


def test_the_same_decision_with_another_payload_is_refused_and_an_incident(both):
    both.decide()
    assert problem(both.decide(steps=121.0)) == (422, "key-conflict")
    (incident,) = both("GET", "incidents", scope="monitor").json()["incidents"]
    assert (incident["kind"], incident["participant"], incident["open"]) == ("conflict", "p01", True)


def test_who_is_unknown_early_paused_or_gone(call):
    assert problem(call.decide("p99")) == (404, "unknown")
    assert problem(call.decide(index=1, decided_at="2026-02-20T09:00:00+01:00")) == (409, "not-active")
    assert problem(call.decide(index=1, decided_at="2026-07-01T09:00:00+01:00")) == (410, "ended")
    event = {"kind": "pause", "at": BEGIN.isoformat(), "reason": "holiday"}
    assert call("POST", "participants/p01/events", event).status_code == 201
    assert problem(call.decide(index=2)) == (409, "not-active")
    call("POST", "participants/p01/events", {**event, "kind": "withdraw"})
    assert problem(call.decide(index=2)) == (410, "ended")


def test_who_is_unavailable_gets_no_action_and_a_reason(call):
    body = call.decide(available=False, reasons=["driving"]).json()
    assert (body["action"], body["probability"], body["rung"], body["reasons"]) == (0, 0, "unavailable", ["driving"])
    assert problem(call.decide(index=1, available=False)) == (422, "refused")
    assert problem(call.decide(index=1, available=False, reasons=["lazy"])) == (422, "refused")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"decided_at": "2026-03-01T09:00:00"}, "body.decided_at"),
        ({"decided_at": 1772355600}, "body.decided_at"),
        ({"decided_at": "yesterday"}, "body.decided_at"),
        ({"available": "yes"}, "body.available"),
        ({"available": 1}, "body.available"),
        ({"mood": 3}, "body.mood"),
        ({"context": {"hour": [9]}}, "body.context.hour"),
        ({"context": []}, "body.context"),
        ({"reasons": "driving"}, "body.reasons"),
        ({"expires_at": "2026-03-01"}, "body.expires_at"),
        ({"action": 1}, "body"),
        ({"drawn_by": "app"}, "body"),
    ],
)
def test_a_body_that_is_not_exactly_as_it_should_be_is_refused_field_by_field(call, change, field):
    response = call("PUT", "participants/p01/decisions/walk/0", {**asked(), **change})
    assert problem(response) == (422, "refused")
    assert any(each["field"].startswith(field) for each in response.json()["errors"])
    assert call.decide().status_code == 201  # nothing was recorded under the key


@pytest.mark.parametrize("index", ["-1", "1.0", "1e3", "x", "01", "%201", "1000000000000"])
def test_an_index_is_a_whole_number_written_in_one_way(call, index):
    assert problem(call.decide(index=0, kind=f"walk/{index}#"))[0] in (404, 422)
    assert problem(call("PUT", f"participants/p01/decisions/walk/{index}", asked()))[0] == 422


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_refused(call, number):
    body = json.dumps(asked()).replace("120.0", number)
    sent = {"Content-Type": "application/json"}
    response = call("PUT", "participants/p01/decisions/walk/0", content=body, headers=sent)
    assert problem(response) == (400, "not-json")


def test_what_the_protocol_does_not_know_is_refused(call):
    assert problem(call.decide(kind="swim")) == (422, "refused")
    assert "swim" in call.decide(kind="swim").json()["detail"]
    response = call("PUT", "participants/p01/decisions/walk/0", {**asked(), "context": {"hour": 9.0}})
    assert problem(response) == (422, "refused")
    assert "steps" in response.json()["detail"]


def test_what_the_app_drew_is_recorded_as_such(call):
    drawn = {**asked(), "drawn_by": "app", "action": 1, "probability": 0.5, "reason": "no answer"}
    first = call("PUT", "participants/p01/decisions/walk/0", drawn)
    assert first.status_code == 201
    body = first.json()
    assert (body["action"], body["probability"], body["rung"], body["drawn_by"]) == (1, 0.5, "fixed", "app")
    assert call("PUT", "participants/p01/decisions/walk/0", drawn).content == first.content
    assert problem(call("PUT", "participants/p01/decisions/walk/1", {**drawn, "probability": 0.99}))[0] == 422


def test_a_delivery_is_recorded_once_for_each_status(both):
    decision = both.decide().json()
    path = f"decisions/{decision['decision_id']}/delivery"
    body = {"status": "delivered", "at": BEGIN.isoformat(), "delivered_action": decision["action"]}
    first, again = both("PUT", path, body), both("PUT", path, body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert problem(both("PUT", path, {**body, "delivered_action": 1 - decision["action"]})) == (422, "key-conflict")
    assert both("PUT", "decisions/p01%2Fwalk%2F0/delivery", {"status": "seen"}).status_code == 201
    assert problem(both("PUT", path, {"status": "eaten"})) == (422, "refused")
    assert problem(both("PUT", path, {"status": "sent", "delivered_action": True})) == (422, "refused")
    assert problem(both("PUT", "decisions/nothing/delivery", body)) == (404, "unknown")


def test_outcomes_are_answered_one_by_one(both):
    decision = both.decide().json()
    good = outcome(decision, 1.5)
    items = [good, {**good, "client_id": "x", "participant": "p02"}, {**good, "client_id": "y", "value": None}]
    answer = both("POST", "outcomes", {"items": items}).json()
    assert [each["status"] for each in answer["items"]] == ["stored", "refused", "stored"]
    assert (answer["stored"], answer["duplicate"], answer["refused"]) == (2, 0, 1)
    assert "p02" in answer["items"][1]["reason"]
    again = both("POST", "outcomes", {"items": [good, {**good, "value": 2.5}]}).json()
    assert [each["status"] for each in again["items"]] == ["duplicate", "refused"]
    corrected = {**good, "client_id": "z", "value": 2.0, "supersedes": "o0"}
    assert both("POST", "outcomes", {"items": [corrected]}).json()["stored"] == 1
    assert both("POST", "outcomes", {"items": []}).json()["items"] == []


def test_after_the_key_of_the_draws_was_published_a_decision_is_refused_with_what_to_do(call):
    call.trial._core.incident(PUBLISHED, "the key was published in a.zip", severity="error", key=PUBLISHED)
    answer = call.decide()
    assert problem(answer) == (409, "key-published")
    assert "begin a trial with a key of its own" in answer.json()["detail"]


def test_lists_are_limited_and_checked(call):
    item = {"client_id": "a", "participant": "p01", "observed_at": BEGIN.isoformat(), "values": {"steps": 3}}
    many = [{**item, "client_id": str(number)} for number in range(1001)]
    assert problem(call("POST", "observations", {"items": many})) == (413, "too-many-items")
    assert call("POST", "observations", {"items": many[:3]}).json()["stored"] == 3
    assert call("POST", "observations", {"items": [item, item]}).json()["duplicate"] == 1
    for number, change in enumerate(({"values": {"a": "b" * 3000}}, {"observed_at": "2026-03-01T10:00"}, {"extra": 1})):
        good = {**item, "client_id": f"good {number}"}
        answer = call("POST", "observations", {"items": [{**item, "client_id": "bad", **change}, good]}).json()
        assert [each["status"] for each in answer["items"]] == ["refused", "stored"]
    assert problem(call("POST", "observations", {"items": item})) == (422, "refused")
    assert problem(call("POST", "observations", {"items": [item], "more": 1})) == (422, "refused")


JSON = {"Content-Type": "application/json"}
BAD = [
    ({"value": "much"}, "value: expected a number, or null where it is missing, got 'much'"),
    ({"value": True}, "value: expected a number, or null where it is missing, got True"),
    ({"value": float("nan")}, "value: expected a number, or null where it is missing, got nan"),
    ({"value": float("inf")}, "value: expected a number, or null where it is missing, got inf"),
    ({"observed_at": "2026-03-01T10:00"}, "observed_at: the time has no zone"),
    ({"valu": 1.0}, "valu: Extra inputs are not permitted"),
    ({"client_id": 7}, "client_id: Input should be a valid string, got 7"),
]


def test_one_item_that_cannot_be_read_keeps_none_of_the_others_from_being_recorded(both):
    decisions = [both.decide(index=number).json() for number in range(len(BAD) + 2)]
    items = [outcome(each, 0.5) for each in decisions]
    mixed = [items[0], *({**items[n], **change} for n, (change, _) in enumerate(BAD, 1)), "nothing", items[-1]]
    content = json.dumps({"items": mixed}).encode()  # with NaN, as many programs write it
    reply = both("POST", "outcomes", content=content, headers=JSON)
    assert reply.status_code == 200
    answer = reply.json()
    assert (answer["stored"], answer["refused"]) == (2, len(BAD) + 1)
    assert [each["index"] for each in answer["items"]] == list(range(len(mixed)))
    assert [each["status"] for each in answer["items"]] == ["stored", *["refused"] * (len(BAD) + 1), "stored"]
    for (change, words), each in zip(BAD, answer["items"][1:], strict=False):
        assert words in each["reason"]
        assert each["client_id"] == ("" if "client_id" in change else f"o{each['index']}")
    again = both("POST", "outcomes", {"items": items}).json()  # mended, and sent again as a whole
    assert (again["stored"], again["duplicate"]) == (len(BAD), 2)


def test_a_number_that_json_does_not_have_is_refused_elsewhere(call):
    content = b'{"context": {"hour": NaN}}'
    assert problem(call("PUT", "participants/p01/decisions/walk/0", content=content, headers=JSON)) == (400, "not-json")


def test_a_schedule_is_drawn_ahead_and_stands(both):
    planned = [{"kind": "walk", "index": index, **asked(index)} for index in range(3)]
    body = {"participant": "p01", "decisions": planned}
    first, again = both("POST", "schedules", body), both("POST", "schedules", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert again.headers["Idempotency-Replayed"] == "true"
    drawn = first.json()["decisions"]
    assert [each["index"] for each in drawn] == [0, 1, 2]
    assert all(0.2 <= each["probability"] <= 0.8 for each in drawn)
    asked_again = both.decide(index=1)
    assert (asked_again.status_code, asked_again.json()) == (200, drawn[1])
    both.decide(index=4, steps=1.0)
    later = {"participant": "p01", "decisions": [{"kind": "walk", "index": 4, **asked(4)}]}
    assert problem(both("POST", "schedules", later)) == (409, "key-conflict")
    assert problem(both("POST", "schedules", {**body, "participant": "p99"})) == (404, "unknown")
    assert problem(both("POST", "schedules", {**body, "decisions": []})) == (422, "refused")
    assert problem(both("POST", "schedules", {**body, "days": 2})) == (422, "refused")


def test_days_are_drawn_ahead_at_the_protocols_times_on_the_participants_clock(both):
    hours = {"09:00": {"hour": 9.0, "steps": 120.0}, "17:30": {"hour": 17.5, "steps": 80.0}}
    days = {"kind": "walk", "begins_on": "2026-03-28", "days": 2, "first_index": 10, "contexts": hours}
    body = {"participant": "p01", **days}
    first, again = both("POST", "schedules", body), both("POST", "schedules", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert [each["index"] for each in first.json()["decisions"]] == [10, 11, 12, 13]
    # The clocks go forward in between.
    assert first.json()["times"] == [
        "2026-03-28T09:00:00+01:00", "2026-03-28T17:30:00+01:00",
        "2026-03-29T09:00:00+02:00", "2026-03-29T17:30:00+02:00",
    ]  # fmt: skip
    for change in ({"kind": "rest"}, {"kind": "run"}, {"contexts": {"12:00": {}}}, {"days": 0}, {"first_index": None}):
        assert problem(both("POST", "schedules", {**body, **change})) == (422, "refused")
    many = {**body, "days": 60, "begins_on": "2026-03-02", "first_index": 100}
    assert both("POST", "schedules", {**many, "contexts": {}}).status_code == 422  # nothing stands in for the hour


@pytest.mark.parametrize(
    ("error", "answered"),
    [
        (NotRecorded("the disk at /secret is full"), (503, "not-recorded")),
        (LedgerError("the database at postgresql://ann:pw@host is down"), (503, "not-recorded")),
        (InFlight("the same decision is being made"), (409, "in-flight")),
        (RuntimeError("context was 17"), (500, "mistake")),
    ],
)
def test_what_cannot_be_recorded_says_so_and_nothing_more(call, monkeypatch, error, answered):
    def fails(request, began):
        raise error

    monkeypatch.setattr(call.trial, "decide", fails)
    response = call.decide()
    assert problem(response) == answered
    assert "secret" not in response.text
    assert "pw" not in response.text
    assert "17" not in response.text
    if answered[0] != 500:
        assert response.headers["Retry-After"] == "1"


@pytest.mark.parametrize("value", [2**53, 10**400, "x" * 1999, True, "9"])
def test_odd_values_of_a_context_are_refused_by_name_or_randomised(call, value):
    response = call("PUT", "participants/p01/decisions/walk/0", {**asked(), "context": {"hour": value, "steps": 1.0}})
    assert problem(response) == (422, "refused")
    assert "hour" in response.json()["detail"]

"""Calls about who takes part: enrolment with ETag and If-Match, events, removal."""

from urllib.parse import quote

import pytest

from ..running import BEGIN
from .calls import PERSON, asked, outcome, problem


def test_what_is_not_there_is_refused_without_the_names_of_others(call):
    decision = call.decide().json()
    item = outcome(decision, 1.0, participant="p0")
    answers = [
        call("GET", "participants/p0"),
        call("PUT", "participants/p0/decisions/walk/0", asked()),
        call("POST", "participants/p0/events", {"kind": "pause", "at": BEGIN.isoformat()}),
        call("POST", "outcomes", {"items": [item]}),
        call("GET", "replay/p0%2Fwalk%2F0", scope="operator"),
    ]
    assert [each.status_code for each in answers] == [404, 404, 404, 200, 404]
    for each in answers:
        assert "p01" not in each.text
    assert "no participant 'p0' is enrolled: look at the spelling" in answers[0].json()["detail"]


def test_enrolment_has_a_tag_and_a_change_must_name_it(both):
    first = both("PUT", "participants/new", PERSON)
    assert first.status_code == 201
    tag = first.headers["ETag"]
    again = both("PUT", "participants/new", PERSON)
    assert (again.status_code, again.content, again.headers["ETag"]) == (200, first.content, tag)
    changed = {**PERSON, "timezone": "Europe/Rome"}
    assert problem(both("PUT", "participants/new", changed)) == (428, "revision-needed")
    assert problem(both("PUT", "participants/new", changed, headers={"If-Match": '"1"'})) == (412, "stale-revision")
    done = both("PUT", "participants/new", changed, headers={"If-Match": tag})
    assert done.status_code == 200
    assert done.headers["ETag"] != tag
    assert problem(both("PUT", "participants/new", PERSON, headers={"If-Match": tag})) == (412, "stale-revision")
    read = both("GET", "participants/new")
    assert (read.headers["ETag"], read.json()["timezone"]) == (done.headers["ETag"], "Europe/Rome")
    assert both("PUT", "participants/new", PERSON, headers={"If-Match": "*"}).status_code == 200


def test_if_match_is_read_as_http_has_it(call):
    tag = call("GET", "participants/p01").headers["ETag"]
    changed = {**PERSON, "timezone": "Europe/Rome"}
    for header in ("5", "'5'", '"5', "nothing at all"):
        assert problem(call("PUT", "participants/p01", changed, headers={"If-Match": header})) == (422, "refused")
    assert problem(call("PUT", "participants/p01", changed, headers={"If-Match": f"W/{tag}"}))[0] == 412
    assert problem(call("PUT", "participants/new", PERSON, headers={"If-Match": '"1"'})) == (412, "stale-revision")
    assert call("PUT", "participants/p01", changed, headers={"If-Match": f'"0", {tag}'}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"timezone": "Mars/Olympus"},
        {"timezone": "../../etc/passwd"},
        {"starts_on": "2026-3-1"},
        {"starts_on": "2026-02-30"},
        {"starts_on": "2026-03-01T00:00:00Z"},
        {"ends_on": "2026-02-01"},
        {"attributes": {"age": 2**60}},
        {"attributes": [1]},
        {"name": "Ann"},
    ],
)
def test_enrolments_that_cannot_be_are_refused(call, change):
    assert problem(call("PUT", "participants/new", {**PERSON, **change})) == (422, "refused")
    assert problem(call("GET", "participants/new")) == (404, "unknown")


def test_events_in_an_order_that_can_be(both):
    event = {"kind": "pause", "at": BEGIN.isoformat(), "reason": "holiday"}
    first, again = (both("POST", "participants/p01/events", event) for _ in range(2))
    assert (first.status_code, again.status_code, again.content) == (201, 200, first.content)
    assert first.json()["status"] == "paused"
    assert problem(both("POST", "participants/p02/events", {**event, "kind": "resume"})) == (409, "not-active")
    assert both("POST", "participants/p01/events", {**event, "kind": "withdraw"}).status_code == 201
    assert problem(both("POST", "participants/p01/events", {**event, "kind": "resume"})) == (409, "not-active")
    assert problem(both("POST", "participants/p99/events", event)) == (404, "unknown")
    assert problem(both("POST", "participants/p01/events", {**event, "kind": "delete"})) == (422, "refused")


def test_data_are_removed_by_an_operator_only_and_everything_else_stays(both):
    both.decide()
    both.decide("p02")
    event = {"kind": "remove_data", "at": BEGIN.isoformat(), "reason": "asked for"}
    refused = both("POST", "participants/p01/events", event)
    assert problem(refused) == (403, "wrong-scope")
    assert 'scope="operator"' in refused.headers["WWW-Authenticate"]
    done = both("POST", "participants/p01/events", event, scope="operator")
    assert (done.status_code, done.json()["payloads"]) == (201, 2)
    assert both("POST", "participants/p01/events", event, scope="operator").status_code == 200
    assert problem(both.decide()) == (410, "removed")
    assert problem(both("PUT", "participants/p01", PERSON)) == (410, "removed")
    assert both.decide("p02").status_code == 200
    replayed = both("GET", "replay/p01%2Fwalk%2F0", scope="monitor").json()
    assert replayed["state"] == "removed"
    assert both.trial.verify().sound


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "../../x", "a/b", "p 1", "é", "=1+1", "%", "%2F", "。"])
def test_any_printable_name_is_a_name(call, name):
    path = f"participants/{quote(name, safe='')}"
    made = call("PUT", path, PERSON)
    assert made.status_code == 201
    assert made.json()["participant"] == name
    assert made.headers["content-type"] == "application/json"
    assert made.headers["x-content-type-options"] == "nosniff"
    assert call("GET", path).json()["participant"] == name
    decision = call.decide(quote(name, safe="")).json()
    assert decision["participant"] == name
    path = f"decisions/{quote(decision['decision_id'])}/delivery"
    assert call("PUT", path, {"status": "sent"}).status_code == 201


@pytest.mark.parametrize(
    "name", ["%00", "%0a", "%zz", "p%", "%1f", "%ff", "%c3%28", "%e2%80%a8", "a%09b", "%ED%A0%80", "x" * 300]
)
def test_names_with_other_characters_are_refused(call, name):
    assert problem(call("PUT", f"participants/{name}", PERSON)) == (422, "refused")
    assert problem(call.decide(name)) == (422, "refused")


@pytest.mark.parametrize(
    "path", ["participants/../p01", "participants//", "participants/p01/", "participants/p01/decisions", "../walks"]
)
def test_paths_are_taken_as_they_are(call, path):
    status, _ = problem(call("GET", path))
    assert status in (404, 405)

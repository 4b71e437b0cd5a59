"""Who sees what: log-in, cookies, scopes, tokens of forms, and what never leaves."""

import logging
from datetime import timedelta

import pytest

from kerneltrail.trial.dashboard.access import TRIES
from kerneltrail.trial.dashboard.desk import mount

from .living import NASTY, token_of

PAGES = ("", "/participants", "/participants/p01", "/cohort", "/policies", "/incidents", "/data")


def test_who_types_the_address_is_led_to_the_log_in(visitor):
    for address in ("/", "/desk/"):
        assert visitor.get(address).headers["location"] == "/desk"
    assert visitor.get("/desk").headers["location"] == "/desk/login"
    for path in PAGES[1:]:
        answer = visitor.get(f"/desk{path}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/desk/login?next=/desk{path}")
    assert visitor.client.post("/desk/policies", data={"version": "1"}, follow_redirects=False).status_code == 303


@pytest.mark.parametrize("scope", ["operator", "analyst", "monitor"])
def test_a_key_of_people_opens_the_desk(visitor, scope):
    answer = visitor.log_in(scope, goal="/desk/cohort")
    assert (answer.status_code, answer.headers["location"]) == (303, "/desk/cohort")
    for path in PAGES:
        assert visitor.get(f"/desk{path}").status_code == 200


def test_other_keys_open_nothing(visitor):
    for scopes, status, words in ((("app",), 403, "for app alone"), (("unblinded",), 403, "needs one with the scope")):
        answer = visitor.log_in(*scopes)
        assert answer.status_code == status
        assert words in answer.text
    refused = visitor.log_in(token="kt_00000000_nothing")
    assert refused.status_code == 401
    assert "opens nothing" in refused.text
    assert visitor.get("/desk").status_code == 303


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(visitor):
    plain = visitor.log_in("monitor").headers["set-cookie"]
    assert all(part in plain for part in ("HttpOnly", "SameSite=strict", "Path=/desk"))
    assert "Secure" not in plain
    assert "Secure" in visitor.log_in("monitor", **{"X-Forwarded-Proto": "https"}).headers["set-cookie"]


@pytest.mark.parametrize(
    "goal", ["https://evil.example", "//evil.example", "/v1/openapi.json", "/desk/\\evil", "/deskx"]
)
def test_nobody_is_led_elsewhere_after_the_log_in(visitor, goal):
    assert visitor.log_in("monitor", goal=goal).headers["location"] == "/desk"


def test_a_session_ends_with_its_key_and_when_somebody_logs_out(visitor, life):
    trial, time = life
    key = visitor.key("monitor")
    visitor.log_in(token=key.token)
    assert visitor.get("/desk").status_code == 200
    trial.revoke_key(key.id)
    assert visitor.get("/desk").status_code == 303
    assert visitor.log_in(token=key.token).status_code == 401

    short = visitor.key("monitor", expires_at=time.now + timedelta(hours=1))
    visitor.log_in(token=short.token)
    assert visitor.get("/desk").status_code == 200
    before = time.now
    time.go(hours=1)
    assert visitor.get("/desk").status_code == 303
    assert "has expired" in visitor.log_in(token=short.token).text
    time.now = before

    visitor.log_in("monitor")
    cookies = dict(visitor.client.cookies)
    assert visitor.send("/desk/logout", "/desk").headers["location"] == "/desk/login"
    visitor.client.cookies.update(cookies)  # somebody kept a copy
    assert visitor.get("/desk").status_code == 303


def test_another_server_of_the_same_trial_knows_the_session(visitor, app):
    visitor.log_in("monitor")
    mount(app)  # as after a restart: nothing is in memory
    assert visitor.get("/desk").status_code == 200


FORMS = {
    "/desk/logout": {},
    "/desk/incidents": {"incident": "x", "by": "ann"},
    "/desk/policies": {"version": "1", "serving": "3", "reason": "x", "by": "ann"},
    "/desk/data/replay": {},
    "/desk/data/verify": {},
    "/desk/cohort": {"reason": "x"},
    "/desk/participants/p01": {"reason": "x"},
}


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_token_or_from_another_site_is_refused(visitor, state, path):
    visitor.log_in("operator", "analyst", "unblinded")
    good = token_of(visitor.get("/desk").text)
    entries = visitor.trial.snapshot().sequence
    for token, headers in (("", {}), ("x" * 43, {}), (good, {"Sec-Fetch-Site": "cross-site"})):
        answer = visitor.client.post(path, data={**FORMS[path], "token": token}, headers=headers)
        assert answer.status_code == 403
        assert "not accepted" in answer.text
    assert visitor.trial.snapshot().sequence == entries
    assert visitor.client.post(path, json={"token": good}).status_code == 415
    assert visitor.client.post(path, content=b"token=a&token=b", headers=FORM).status_code == 422


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_the_log_in_form_has_a_token_too(visitor):
    token = visitor.key("monitor").token
    visitor.get("/desk/login")
    assert visitor.client.post("/desk/login", data={"key": token}).status_code == 403
    other = visitor.log_in("monitor")
    assert other.status_code == 303


def test_failed_log_ins_are_limited_and_a_good_key_still_has_to_wait(visitor):
    for _ in range(TRIES):
        assert visitor.log_in(token="kt_00000000_nothing").status_code == 401
    answer = visitor.log_in("monitor")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("scopes", "path", "fields"),
    [
        (("analyst",), "/desk/incidents", {"incident": "x", "by": "ann"}),
        (("monitor",), "/desk/policies", {"version": "1", "serving": "3", "reason": "x", "by": "ann"}),
        (("operator", "analyst", "monitor"), "/desk/cohort", {"reason": "curious"}),
        (("operator", "analyst", "monitor"), "/desk/participants/p01", {"reason": "curious"}),
    ],
)
def test_a_key_without_the_scope_is_refused_by_name(visitor, scopes, path, fields):
    visitor.log_in(*scopes)
    before = visitor.trial.snapshot().sequence
    answer = visitor.send(path, "/desk", **fields)
    assert answer.status_code == 403
    assert "scope" in answer.text
    assert visitor.trial.snapshot().sequence == before


@pytest.mark.parametrize("path", [*PAGES, "/login", "/nowhere", "/participants/nobody", "/data/mrt.csv"])
def test_every_page_forbids_what_it_does_not_need(team, path):
    answer = team.get(f"/desk{path}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    if "html" in answer.headers["content-type"]:
        assert "style=" not in answer.text
        assert "<style" not in answer.text
        assert " onclick" not in answer.text
        assert answer.text.count("<script") == answer.text.count('<script src="/desk/assets/desk.js" defer>')


def test_a_refusal_is_a_page(team):
    for path, status in (("/nowhere", 404), ("/participants/nobody", 404), ("/assets/secrets.txt", 404)):
        answer = team.get(f"/desk{path}")
        assert answer.status_code == status
        assert "<h1>" in answer.text


def test_the_calls_of_apps_are_untouched(visitor):
    assert visitor.get("/v1/trials/walks/incidents").headers["content-type"] == "application/problem+json"
    visitor.log_in("operator")
    assert visitor.get("/v1/trials/walks/incidents").status_code == 401  # a cookie is no key
    assert not any(path.startswith("/desk") for path in visitor.get("/v1/openapi.json").json()["paths"])


def test_no_secret_and_no_outcome_is_in_the_log(visitor, caplog):
    key = visitor.key("operator", "analyst", "unblinded")
    with caplog.at_level(logging.DEBUG, logger="kerneltrail.trial.service"):
        visitor.log_in(token=key.token)
        visitor.log_in(token="kt_00000000_mistyped")
        for path in PAGES:
            visitor.get(f"/desk{path}?q=what+was+searched")
        visitor.send("/desk/participants/p01", reason="a reason of mine")
    text = caplog.text
    assert f"key={key.id}" in text
    assert "participant='p01'" in text
    for secret in (key.token, key.token.split("_")[2], "mistyped", "what+was", "a reason", "kerneltrail_desk"):
        assert secret not in text


def test_names_are_escaped_wherever_they_stand(team, life):
    trial, _ = life
    trial.incident("conflict", f"words with {NASTY} in them", participant=NASTY, key="nasty")
    for path in ("", "/participants", "/participants?q=" + NASTY, "/incidents", "/cohort", "/policies", "/data"):
        text = team.get(f"/desk{path}").text
        assert "<script>alert" not in text
    page = team.get("/desk/participants/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert page.status_code == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;</h1>" in page.text
    assert "<script>alert" not in page.text
    assert "on holiday &amp; &lt;away&gt;" in team.get("/desk/participants/p04").text

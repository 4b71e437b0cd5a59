"""What each page says, and what its forms do, without a browser."""

from dataclasses import replace
from datetime import date, timedelta
from html import unescape
from re import DOTALL, findall, search, sub

import pytest

from kerneltrail.trial.ahead import days_ahead
from kerneltrail.trial.dashboard import pages
from kerneltrail.trial.dashboard.jobs import Jobs
from kerneltrail.trial.dashboard.people import listed
from kerneltrail.trial.dashboard.texts import share
from kerneltrail.trial.dashboard.today import LIGHTS
from kerneltrail.trial.export import COLUMNS
from kerneltrail.trial.service import create_app

from ..running import Time, agreed, asked, begun, broken, enrol, walked
from .conftest import LIMITS, TestClient
from .living import LONG, Visitor, lived


def text_of(html):
    """The words of a page."""
    inner = search(r"<main.*</main>", html, DOTALL)[0]
    return " ".join(unescape(sub(r"<[^>]*>", " ", inner)).split())


def read(visitor, path=""):
    answer = visitor.get(f"/desk{path}")
    assert answer.status_code == 200, answer.text
    return text_of(answer.text)


def test_today_says_who_needs_a_call_and_how_it_runs(team, life):
    text = read(team)
    assert "Yellow" in text
    assert "Who needs a call (3)" in text
    calls = text[text.index("Who needs a call") : text.index("How it runs")]
    assert calls.index(LONG) < calls.index("p02") < calls.index("p04")  # who never began has been silent longest
    assert "Silent." in calls
    assert "on holiday & <away>" in calls
    assert "p01" not in calls
    for words in ("Calls of apps, 24 hours", "Last call of an app", "4 hours", "Time to decide", "policy 3 serves"):
        assert words in text
    assert "Open incidents" in text
    assert "the app of p02 has asked for nothing" in text


def test_every_page_counts_missing_outcomes_alike_and_says_which(team, life):
    trial, time = life
    standing = trial.status()
    missing, due = standing.missing
    assert 0 < missing < due
    rows = listed(trial.snapshot(), trial.protocol, time.now)
    assert (sum(row.missing for row in rows), sum(row.due for row in rows)) == (missing, due)
    assert f"Missing outcomes {missing} of {due} in the whole trial" in read(team)
    assert f"Of the outcomes that should be there, {share(missing, due)} are missing" in read(team, "/cohort")
    for path in ("", "/participants", "/participants/p01", "/cohort"):
        assert "one should be there a day after each decision at which somebody could act" in read(team, path)


def test_columns_of_exports_have_headings_for_people_and_their_names_in_the_files(team):
    html = team.get("/desk/data").text
    headings = findall(r"<dt>([^<]*)</dt>", html)
    assert {"Probability of the treatment", "Decided at", "Kernel"} <= set(headings)
    assert not [each for each in headings if "_" in each]
    for columns in COLUMNS.values():
        for name in columns:
            assert f"<code>{name}</code>" in html
    assert not [each for each in findall(r'<th scope="row">([^<]*)</th>', html) if each in ("mrt", "obp")]


def test_a_light_for_every_state(team, app, monkeypatch):
    shown = {}
    for light in ("green", "yellow", "red"):
        inner = pages.today
        monkeypatch.setattr(pages, "today", lambda *a, light=light, inner=inner: _with(inner(*a), light))
        app.state.desk.today.forget()
        shown[light] = team.get("/desk").text
        monkeypatch.undo()
    assert all(f'class="light {light}"' in html for light, html in shown.items())


def _with(today, light):
    shape, name, words = LIGHTS[light]
    return replace(today, status=replace(today.status, light=light), shape=shape, light=name, words=words)


def test_a_trial_whose_model_is_missing_is_red_and_names_the_fallback(tmp_path):
    time = Time()
    whole = begun(tmp_path / "red.db", time, protocol=agreed(), warm=False)
    whole.close()
    trial = begun(tmp_path / "red.db", time, models={}, protocol=None, warm=False)
    enrol(trial, "p01")
    for index in range(12):
        trial.decide(asked("p01", index, kind="rest", at=time.go(minutes=1)))
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor")
        text = read(one)
        assert "Red Something is broken" in text
        assert "Fallbacks, 24 hours 12 of 12 (100 %)" in text
        assert "a fixed probability 12 of 12 (100 %)" in text
        assert "decided by a fixed probability" in read(one, "/participants/p01")
        assert "fallback: fixed" in read(one, "/cohort")
        assert read(one, "/participants").count("0 %") >= 1
    trial.close()


def test_green_says_who_is_to_call_and_an_empty_trial_that_nobody_is_enrolled(tmp_path):
    time = Time()
    trial = begun(tmp_path / "green.db", time, protocol=agreed(), warm=False)
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor")
        text = read(one)
        assert "Green No alert; nobody needs a call." in text
        assert "Who needs a call (0) Nobody is enrolled yet." in text
        enrol(trial, "later", starts_on=date(2026, 4, 1))
        assert "Nobody: nobody takes part now." in read(one)
        time.go(minutes=13 * 60)  # a simulated trial's days pass in seconds, and who looks at it stays logged in
        assert "Nobody: nobody takes part now." in read(one)
        enrol(trial, "p01")
        assert "Nobody: everybody's app asks for decisions" in read(one)
        trial.event("p01", "pause", at=time.now)
        assert "Green No alert; 1 person to call." in read(one)
        trial.incident("delivered-otherwise", "p01 was sent what was not assigned", severity="error", participant="p01")
        text = read(one)
        assert "Red Something is broken." in text
        assert "Error: an incident (delivered-otherwise) is open: p01 was sent what was not assigned." in text
    trial.close()


def test_participants_are_listed_sorted_and_searched(team):
    html = team.get("/desk/participants").text
    assert 'aria-sort="ascending"' in html
    assert "6 of 6 participants" in read(team, "/participants")
    sorted_by = team.get("/desk/participants?sort=decisions").text
    order = findall(r'<th scope="row"><a href="/desk/participants/([^"]*)"', sorted_by)
    assert order[:3] == [LONG, "p03", "p02"]
    turned = team.get("/desk/participants?sort=decisions&order=down").text
    assert 'aria-sort="descending"' in turned
    assert "1 of 6 participants match “paused”" in read(team, "/participants?q=paused")
    assert team.get("/desk/participants?sort=secrets&order=sideways").status_code == 200
    assert "removed" in read(team, "/participants?q=p03")


def test_a_participant_in_words(team):
    text = read(team, "/participants/p01")
    for words in (
        "Why the last message was or was not sent",
        "The number that was drawn",
        "How sure it was: the probability that",
        "What the model has found",
        "90 % interval",
        "12 decisions",
        "arrived",
        "Which description fits, update by update",
        "lie in the 90 % interval that was predicted before they were seen",
    ):
        assert words in text, words
    html = team.get("/desk/participants/p01").text
    assert html.count("<img") == len(findall(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="[^"]{40,}"', html)) >= 5
    assert "Needs a call: today" in read(team, "/participants/p02")


def test_who_was_removed_is_shown_as_removed(team):
    answer = team.get("/desk/participants/p03")
    assert answer.status_code == 200
    assert "were removed" in answer.text
    assert "<img" not in answer.text
    assert "p03" not in read(team, "/cohort")


def test_who_has_not_begun_has_a_page(tmp_path):
    time = Time()
    trial = begun(tmp_path / "new.db", time, protocol=agreed(), warm=False)
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    enrol(trial, "p01")
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("operator", "analyst")
        assert "Green" in read(one)
        assert "No decision has been made yet" in read(one, "/participants/p01")
        for path in ("/participants", "/cohort", "/policies", "/incidents", "/data"):
            read(one, path)
    trial.close()


def test_a_model_that_is_missing_keeps_no_page_from_being_shown(team, life, monkeypatch):
    trial, _ = life
    monkeypatch.setattr(trial, "followed", broken)
    monkeypatch.setattr(trial, "model", broken)
    assert "decisions come from a fallback" in read(team, "/participants/p01")


def test_the_cohort_in_words(team):
    text = read(team, "/cohort")
    for words in (
        "Probabilities of sending",
        "No version of the policy differs from its probabilities by more than chance makes",
        "policy 1",
        "policy 2",
        "How participants fare",
        "Messages a day",
        "Of the outcomes that should be there",
        "of the outcomes lay in the 90 % interval",
        "Which descriptions fit participants?",
    ):
        assert words in text, words
    assert "Outcome by action" not in text


def test_outcomes_by_action_are_shown_to_the_unblinded_and_each_look_is_recorded(visitor, life):
    trial, _ = life
    key = visitor.key("monitor", "unblinded")
    visitor.log_in(token=key.token)
    before = len(trial.snapshot().looks)
    assert "Student's t" not in read(visitor, "/cohort")
    assert len(trial.snapshot().looks) == before  # the form alone is no look
    assert visitor.send("/desk/cohort", reason="").status_code == 422
    answer = visitor.send("/desk/cohort", reason="meeting of the board")
    assert "Student's t over participants" in text_of(answer.text)
    answer = visitor.send("/desk/participants/p01", reason="safety")
    assert "triangles where a message was assigned" in text_of(answer.text)
    looks = trial.snapshot().looks[before:]
    assert [(each.by, each.payload["what"], each.payload["participant"], each.payload["reason"]) for each in looks] == [
        (f"key {key.id}", "the cohort", None, "meeting of the board"),
        (f"key {key.id}", "a participant", "p01", "safety"),
    ]
    assert "meeting of the board" in read(visitor, "/data")
    assert visitor.send("/desk/participants/nobody", "/desk/participants/p01", reason="x").status_code == 404
    assert visitor.send("/desk/participants/p03", "/desk/participants/p01", reason="x").status_code == 410
    assert len(trial.snapshot().looks) == before + 2
    assert trial.verify().sound


def test_a_look_that_cannot_be_recorded_shows_nothing(visitor, life, monkeypatch):
    visitor.log_in("monitor", "unblinded")
    monkeypatch.setattr(life[0], "look", broken)
    answer = visitor.send("/desk/cohort", reason="meeting")
    assert answer.status_code == 500
    assert "<h1>Kerneltrail made a mistake" in answer.text
    assert "Student's t" not in answer.text


def test_policies_incidents_and_proofs(tmp_path):
    """What forms change, on a trial of their own."""
    trial, time = lived(tmp_path / "own.db")
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        team = Visitor(client, trial)
        team.log_in("operator")
        assert "Policy 3 serves now" in read(team, "/policies")
        fields = {"version": "2", "serving": "3", "reason": "too many messages", "by": "Ann"}
        stale = team.send("/desk/policies", **{**fields, "serving": "1"})
        assert stale.status_code == 412
        assert team.send("/desk/policies", **{**fields, "reason": ""}).status_code == 422
        assert team.send("/desk/policies", **fields).headers["location"] == "/desk/policies?done=activated"
        text = read(team, "/policies?done=activated")
        assert "Policy 2 serves now" in text
        assert "The policy was changed." in text
        assert "too many messages, by Ann (key" in text
        assert [each.version for each in trial.policies() if each.active] == ["2"]

        incident = next(each for each in trial.incidents() if each.is_open)
        done = team.send("/desk/incidents", incident=incident.id, by="Ann", note="called, the telephone was off")
        assert done.headers["location"] == "/desk/incidents?done=acknowledged"
        assert "called, the telephone was off" in read(team, "/incidents")
        assert not trial.snapshot().incidents[incident.id].is_open
        assert team.send("/desk/incidents", incident="none", by="Ann").status_code == 404

        for kind, words in (("replay", "Equal: all"), ("verify", "The ledger of walks is sound:")):
            team.send(f"/desk/data/{kind}", "/desk/data")
            app.state.desk.jobs.wait(kind, 60)
            assert words in read(team, "/data")
        assert "equal: all" not in read(team, "/data")  # it is said once
        assert team.get("/desk/data/mrt.csv").status_code == 403

        team.log_in("analyst")
        csv = team.get("/desk/data/participants.csv")
        assert csv.headers["content-disposition"] == 'attachment; filename="participants.csv"'
        assert csv.text.startswith("participant,status,timezone")
        assert team.get("/desk/data/secrets.csv").status_code == 422
    trial.close()


def test_tables_with_outcomes_are_downloaded_by_the_unblinded_with_a_reason_that_is_recorded(visitor, life):
    trial, _ = life
    fields = {"table": "mrt", "format": "csv", "reason": "the board meets"}
    before = len(trial.snapshot().looks)
    visitor.log_in("operator", "analyst", "monitor")
    assert visitor.get("/desk/data/mrt.csv").status_code == 403
    assert visitor.send("/desk/data/table", "/desk/data", **fields).status_code == 403
    assert "mrt.csv" not in visitor.get("/desk/data").text
    visitor.log_in("monitor", "unblinded")
    assert visitor.send("/desk/data/table", "/desk/data", **fields).status_code == 403
    key = visitor.key("analyst", "unblinded")
    visitor.log_in(token=key.token)
    assert visitor.get("/desk/data/mrt.csv").status_code == 422  # an address alone has no reason
    for wrong in ({"reason": ""}, {"table": "keys"}, {"table": "participants"}, {"format": "xlsx"}):
        assert visitor.send("/desk/data/table", "/desk/data", **{**fields, **wrong}).status_code == 422
    assert len(trial.snapshot().looks) == before
    csv = visitor.send("/desk/data/table", "/desk/data", **fields)
    assert csv.headers["content-disposition"] == 'attachment; filename="mrt.csv"'
    assert csv.text.startswith("id,decision_point,outcome,treatment")
    (look,) = trial.snapshot().looks[before:]
    assert (look.by, look.payload["what"], look.payload["reason"]) == (
        f"key {key.id}", "the table mrt", "the board meets"
    )  # fmt: skip
    assert "the table mrt the board meets" in read(visitor, "/data")


def test_jobs_run_one_at_a_time_and_say_what_failed():
    jobs, time = Jobs(), Time()
    assert jobs.get("replay") is None
    jobs.start("replay", broken, time)
    jobs.wait("replay", 10)
    failed = jobs.get("replay")
    assert not failed.good
    assert "could not be done" in failed.words
    assert "broken" not in failed.words
    jobs.start("replay", lambda: (True, "equal"), lambda: time.now + timedelta(seconds=5))
    jobs.wait("replay", 10)
    assert (jobs.get("replay").good, jobs.get("replay").words) == (True, "equal")


@pytest.mark.parametrize(("path", "kind"), [("desk.css", "text/css"), ("desk.js", "text/javascript")])
def test_style_and_script_are_ours(visitor, path, kind):
    answer = visitor.get(f"/desk/assets/{path}")
    assert answer.headers["content-type"].startswith(kind)
    assert "http:" not in answer.text
    assert "https:" not in answer.text


def test_no_page_shows_what_was_drawn_ahead_before_its_time(tmp_path):
    """A phone that goes offline has a week's decisions; the team sees each only when its time has come."""
    time = Time()
    trial = begun(tmp_path / "ahead.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01", "p02")
    for person in ("p01", "p02"):
        walked(trial, person, range(4), time)
    time.go(hours=1)
    contexts = {clock: {"hour": 9.0, "steps": 100.0} for clock in trial.protocol.decisions["walk"].times}
    begins_on = (time.now + timedelta(days=1)).date()
    trial.schedule(
        days_ahead(
            trial.protocol, "p01", "Europe/Zurich", kind="walk", begins_on=begins_on, days=7, first_index=4,
            contexts=contexts,
        )
    )  # fmt: skip
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor", "unblinded")
        paths = ("", "/participants", "/participants/p01", "/cohort")
        before = {path: read(one, path) for path in paths}
        assert "4 decisions." in before["/participants/p01"]
        assert "Drawn ahead 14 decisions" in before["/participants/p01"]
        assert "8 decisions at which somebody could act" in before["/cohort"]
        for text in [*before.values(), *(text_of(one.send(f"/desk{path}", reason="x").text) for path in paths[2:])]:
            for day in range(7):
                assert f"{begins_on + timedelta(days=day):%-d %b}" not in text
        time.now = time.now.replace(hour=12) + timedelta(days=1)
        one.log_in("monitor")
        assert "5 decisions." in read(one, "/participants/p01")
    trial.close()

"""What forms take and what they refuse, on a trial of their own."""

from html import unescape
from re import search

import pytest

from kerneltrail.trial.service import create_app

from ..running import Time, agreed, begun, enrol, walked
from .conftest import LIMITS, TestClient
from .living import Visitor
from .test_pages import text_of


@pytest.fixture
def own(tmp_path):
    """Somebody with all scopes at the desk of a trial with two policies and an open incident."""
    time = Time()
    trial = begun(tmp_path / "forms.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01")
    walked(trial, "p01", range(4), time)
    trial.update(reason="two days are over", by="test")
    trial.incident("odd", "something is odd", severity="info", key="odd/1")
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("operator", "analyst", "monitor", "unblinded")
        yield one
    trial.close()


def notes(own):
    return [each["note"] for _, each in own.trial.snapshot().incidents["odd/1"].acknowledged]


@pytest.mark.parametrize("note", ["a" * 501, "one\nline", "one\rline", "a\x00b", "a\x1b[31mb", "a\u2028b"])
def test_a_note_that_is_no_line_of_500_characters_is_not_recorded(own, note):
    answer = own.send("/desk/incidents", incident="odd/1", by="Ann", note=note)
    assert answer.status_code == 422
    assert "one line, 500 characters at most" in text_of(answer.text)
    assert notes(own) == []


@pytest.mark.parametrize("fields", [{}, {"note": ""}, {"note": "é" * 500}])
def test_a_note_may_be_empty_and_has_500_characters_at_most(own, fields):
    assert own.send("/desk/incidents", incident="odd/1", by="Ann", **fields).status_code == 303
    assert notes(own) == [fields.get("note", "")]


NAME = 'Ann "Nan" <b>Lee</b>'


def field(html, name):
    """The element of a field, in the form that is open."""
    return unescape(search(rf'<input id="{name}[^"]*" name="[^"]*"[^>]*>', html)[0])


@pytest.mark.parametrize(
    ("path", "fields", "wrong", "words", "kept"),
    [
        ("/desk/incidents", {"incident": "odd/1", "note": "called"}, "by", "Write your name (one line", ["called"]),
        ("/desk/incidents", {"incident": "odd/1", "by": NAME, "note": "x" * 501}, "note", "500 characters", [NAME]),
        ("/desk/policies", {"version": "1", "serving": "2", "by": NAME}, "reason", "Write why another", [NAME]),
        ("/desk/policies", {"version": "1", "serving": "2", "reason": "too many"}, "by", "Write your", ["too many"]),
        ("/desk/cohort", {"reason": "x" * 501}, "reason", "500 characters at most", ["x" * 501]),
        ("/desk/participants/p01", {"reason": ""}, "reason", "Write why you have to see", []),
        ("/desk/data/table", {"table": "lifejacket", "format": "jsonl"}, "reason", "Write why", []),
    ],
)
def test_a_form_that_is_refused_is_shown_again_with_what_was_typed(own, path, fields, wrong, words, kept):
    before = own.trial.snapshot().sequence
    answer = own.send(path, path.removesuffix("/table"), **fields)
    assert answer.status_code == 422
    assert own.trial.snapshot().sequence == before
    element = field(answer.text, wrong)
    assert 'aria-invalid="true"' in element
    described = search(r'aria-describedby="([^"]*)"', element)[1]
    said = search(rf'<p class="wrong" id="{described}" role="alert">([^<]*)</p>', answer.text)[1]
    assert words in said
    assert answer.text.count('class="wrong"') == 1
    for value in kept:
        assert f'value="{value}"' in unescape(answer.text)
    assert "<b>Lee" not in answer.text
    if "incident" in fields:
        assert '<details class="expert" open>' in answer.text
    for name in ("table", "format"):
        if name in fields:
            assert search(rf"<option[^>]*{fields[name]}[^>]* selected>|<option selected>{fields[name]}<", answer.text)


def test_what_was_typed_is_there_after_another_policy_was_activated_meanwhile(own):
    fields = {"version": "1", "serving": "1", "reason": "too many messages", "by": NAME}
    answer = own.send("/desk/policies", **fields)
    assert answer.status_code == 412
    assert 'role="alert"' in answer.text
    assert f'value="{NAME}"' in unescape(answer.text)
    assert 'name="serving" value="2"' in answer.text
    assert own.send("/desk/policies", **{**fields, "serving": "2"}).status_code == 303


def test_of_a_choice_the_refusal_does_not_say_how_long_a_line_may_be(own):
    answer = own.send("/desk/policies", serving="2", reason="too many", by=NAME)
    assert answer.status_code == 422
    assert "choose a version." in text_of(answer.text)
    assert "one line" not in text_of(answer.text)
    assert f'value="{NAME}"' in unescape(answer.text)
    answer = own.send("/desk/incidents", by=NAME)
    assert "the form does not say which incident." in text_of(answer.text)
    assert f'value="{NAME}"' not in unescape(answer.text)  # it may be of any of the forms
    answer = own.send("/desk/data/table", "/desk/data", table="secrets", format="csv", reason="x")
    assert "choose one of the tables" in text_of(answer.text)


def test_a_form_that_cannot_be_shown_again_leads_back_to_its_page(own):
    answer = own.client.post("/desk/policies", data={"token": "old", "version": "1"}, follow_redirects=False)
    assert answer.status_code == 403
    assert '<a href="/desk/policies">Back to Policies</a>' in answer.text
    answer = own.send("/desk/incidents", incident="none", by=NAME)
    assert answer.status_code == 404
    assert '<a href="/desk/incidents">Back to Incidents</a>' in answer.text
    assert '<a href="/desk">Back to the first page</a>' in own.get("/desk/nothing").text

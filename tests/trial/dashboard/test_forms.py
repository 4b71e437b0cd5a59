"""What forms take and what they refuse, on a trial of their own."""

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

"""The table of participants: what stands in it, and in which order."""

from datetime import UTC, date, datetime
from html import unescape
from re import findall
from urllib.parse import unquote

import pytest

from kerneltrail.trial.dashboard.people import COLUMNS, listed, row_of
from kerneltrail.trial.service import create_app
from kerneltrail.trial.standing import lines

from ..running import BEGIN, Time, agreed, asked, begun, enrol, walked
from .conftest import LIMITS, TestClient
from .living import Visitor
from .test_pages import read


@pytest.fixture
def own(tmp_path):
    """Somebody at the desk of a trial in which one takes part, one begins in April, and one left before."""
    time = Time()
    trial = begun(tmp_path / "people.db", time, protocol=agreed(), warm=False)
    enrol(trial, "p01")
    enrol(trial, "later", "gone", starts_on=date(2026, 4, 1))
    walked(trial, "p01", range(4), time)
    trial.event("gone", "withdraw", at=time.now, reason="changed their mind")
    app = create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)
    with TestClient(app, raise_server_exceptions=False) as client:
        one = Visitor(client, trial)
        one.log_in("monitor")
        yield one, trial, time
    trial.close()


def test_who_has_not_begun_is_shown_and_counted_so(own):
    one, trial, time = own
    assert "Participants 3 1 active, 1 not begun, 1 withdrawn" in read(one)
    assert "later not begun" in read(one, "/participants")
    assert "1 of 3 participants match “not begun”" in read(one, "/participants?q=not+begun")
    assert "Status not begun Takes part from Wed 1 Apr 2026 to Mon 1 Jun 2026" in read(one, "/participants/later")
    assert "Status withdrawn (changed their mind)" in read(one, "/participants/gone")
    assert trial.status().participants == {"active": 1, "not begun": 1, "withdrawn": 1}
    assert "Participants: 1 active, 1 not begun and 1 withdrawn" in lines(trial.status())
    assert [each.id for each in listed(trial.snapshot(), trial.protocol, time.now, search="active")] == ["p01"]


@pytest.mark.parametrize(("hour", "status"), [(21, "not begun"), (22, "active")])
def test_they_begin_when_the_day_does_on_their_clock(own, hour, status):
    _, trial, _ = own
    now = datetime(2026, 3, 31, hour, tzinfo=UTC)  # two hours ahead in Zurich by then
    assert row_of(trial.snapshot().participants["later"], trial.protocol, now).status == status


@pytest.mark.parametrize("paused", [False, True])
def test_after_their_last_day_they_have_ended_and_need_no_call(own, paused):
    one, trial, time = own
    if paused:
        trial.event("p01", "pause", at=time.now, reason="on holiday")
    during, after = datetime(2026, 6, 1, 21, tzinfo=UTC), datetime(2026, 6, 1, 22, tzinfo=UTC)  # midnight in Zurich
    person = trial.snapshot().participants["p01"]
    assert row_of(person, trial.protocol, during).status == ("paused" if paused else "active")
    assert row_of(person, trial.protocol, after).status == "ended"
    assert row_of(person, trial.protocol, during).contact is not None
    assert row_of(person, trial.protocol, after).contact is None
    gone = trial.snapshot().participants["gone"]
    assert row_of(gone, trial.protocol, after).status == "withdrawn"
    time.now = after
    assert "Participants 3 2 ended, 1 withdrawn" in read(one)
    assert "Nobody: nobody takes part now." in read(one)
    assert "Status ended" in read(one, "/participants/p01")
    assert "2 of 3 participants match “ended”" in read(one, "/participants?q=ended")


def options(html):
    """The orders that the form offers, by their value, and the one that is chosen."""
    found = findall(r'<option value="([^"]*)"( selected)?>([^<]*)</option>', html)
    return {value: unescape(words) for value, _, words in found}, [value for value, chosen, _ in found if chosen]


def order(html):
    return [unquote(each) for each in findall(r'<th scope="row"><a href="/desk/participants/([^"]*)"', html)]


@pytest.mark.parametrize("name", list(COLUMNS))
def test_every_order_has_a_name_and_is_that_of_the_headings(team, name):
    offered, _ = options(team.get("/desk/participants").text)
    up, down = (team.get(f"/desk/participants?sort={name}.{each}").text for each in ("up", "down"))
    assert offered[f"{name}.up"] != offered[f"{name}.down"]
    assert [options(html)[1] for html in (up, down)] == [[f"{name}.up"], [f"{name}.down"]]
    for each, html in (("up", up), ("down", down)):
        linked = team.get(f"/desk/participants?sort={name}&order={each}").text
        assert order(html) == order(linked)
        assert options(linked)[1] == [f"{name}.{each}"]


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("Last call: longest ago first", ["late", "p01"]),
        ("Last call: newest first", ["p01", "late"]),
        ("Needs a call: most urgent first", ["late", "p01"]),
        ("Needs a call: least urgent first", ["p01", "late"]),
        ("Decisions: fewest first", ["late", "p01"]),
        ("Decisions: most first", ["p01", "late"]),
        ("Missing outcomes: highest share first", ["late", "p01"]),
        ("Missing outcomes: lowest share first", ["p01", "late"]),
        ("Participant: A to Z", ["late", "p01"]),
    ],
)
def test_orders_are_what_they_are_called(own, words, first):
    one, trial, time = own
    enrol(trial, "late")
    time.now = BEGIN
    trial.decide(asked("late", 0, at=time.now))
    walked(trial, "p01", range(4, 8), time)
    offered, _ = options(one.get("/desk/participants").text)
    value = next(value for value, called in offered.items() if called == words)
    assert [each for each in order(one.get(f"/desk/participants?sort={value}").text) if each in first] == first


def test_the_share_of_missing_outcomes_is_shown_by_which_rows_are_sorted(team, life, state):
    trial, time = life
    row = row_of(state.participants["p01"], trial.protocol, time.now)
    assert row.missing
    words = f"{row.missing} of {row.due} ({100 * row.missing / row.due:.0f} %)"
    assert COLUMNS["missing"].text(row, time.now) == words
    assert words in read(team, "/participants?q=p01")

"""Outcomes on the page of a participant: what who is blinded can learn from it, and what not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from kerneltrail.report.page import Paragraph
from kerneltrail.trial.dashboard import outcomes
from kerneltrail.trial.dashboard.foresight import Foreseen
from kerneltrail.trial.dashboard.person import PersonView
from kerneltrail.trial.decided import points_of, updates_at
from kerneltrail.trial.ledger.participant import sifted

from ..running import BEGIN, Time, asked, begun, enrol, outcome
from ..test_ratio import point

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def drawn(monkeypatch):
    """What pictures are made of, the newest last."""
    data = []
    monkeypatch.setattr(
        outcomes.GALLERY, "picture", lambda draw, shown, alt, caption: data.append(shown) or Paragraph("")
    )
    return data


@pytest.fixture(scope="module")
def points(state):
    return points_of(state.participants["p01"])


@pytest.fixture(scope="module")
def view(life, state, points):
    trial, time = life
    return seen(trial, points, time.now + timedelta(days=3), updates_at(state))


def seen(trial, points, now, updates=()):
    foreseen = {each.sequence: Foreseen(1.0, 0.1, 0.5) for each in points if each.outcome is not None}
    return PersonView("p01", "Europe/Zurich", trial.protocol, points, updates, foreseen, now)


def settled(day, hour, action, value=1.0):
    at = START.replace(hour=hour) + timedelta(days=day)
    return replace(point(0.5, action), at=at, sequence=100 * day + hour, outcome=value, settled=value)


def test_no_outcome_changes_what_a_blinded_page_has_shown_whenever_it_comes(tmp_path, drawn):
    """Outcomes that come at once, days late, corrected, or withdrawn as missing: two looks never differ by one."""
    rng, time = np.random.default_rng(3), Time()
    trial = begun(tmp_path / "late.db", time, warm=False)
    enrol(trial, "p01")
    waiting, looks = [], [()]
    for hours in range(0, 24 * 12, 4):
        time.now = BEGIN + timedelta(hours=hours)
        if hours % 12 == 0:
            answer = trial.decide(asked("p01", hours // 12, at=time.now))
            value, name = float(rng.normal(5.0, 2.0)), f"o{hours}"
            first = outcome(answer, value, name=name)
            waiting.append((time.now + timedelta(hours=float(rng.choice([0, 20, 100]))), first))
            if hours % 36 == 0:  # corrected within a day, or after the mean was shown; to a value, or to none
                again = outcome(answer, None if hours % 72 else value + 9.0, name=f"{name}c", supersedes=name)
                waiting.append((time.now + timedelta(hours=float(rng.choice([120, 150]))), again))
        for item in [item for due, item in waiting if due <= time.now]:
            assert trial.outcomes([item])[0].status in ("stored", "duplicate")
            drawn.clear()
            known = points_of(trial.snapshot().participants["p01"])
            outcomes.outcome_section(seen(trial, known, time.now), by_action=False)
            looks.append(drawn[-1].value if drawn else ())
        waiting = [(due, item) for due, item in waiting if due > time.now]
    trial.close()
    assert len(looks) > 25
    for before, after in pairwise(looks):
        assert after[: len(before)] == before
    assert len(looks[-1]) >= 2


def test_what_counted_when_a_day_was_settled_is_found_by_the_rule_for_what_counts(tmp_path):
    time = Time()
    trial = begun(tmp_path / "settled.db", time, warm=False)
    enrol(trial, "p01")
    answers = [trial.decide(asked("p01", index, at=time.go(hours=1))) for index in range(6)]
    moments = [(0, 1, 5.0, None), (1, 2, 4.0, None), (50, 1, 6.0, "a0"), (30, 2, 3.0, None), (60, 3, 2.0, None)]
    moments += [(20, 4, 1.0, None), (21, 4, None, "a5"), (22, 5, 1.5, "none such")]
    for number, (hours, which, value, supersedes) in sorted(enumerate(moments), key=lambda each: each[1][0]):
        time.now = BEGIN + timedelta(hours=12 + hours)
        trial.outcomes([outcome(answers[which], value, name=f"a{number}", supersedes=supersedes)])
    known = trial.snapshot().participants["p01"]
    close = datetime(2026, 3, 3, 12, tzinfo=UTC)
    by_then = [each for each in known.outcomes.values() if datetime.fromisoformat(each.received_at) <= close]
    naive = {each.decision: each.value for each in sifted(by_then)[0].values()}
    assert len(by_then) == 6
    for each, (key, decision) in zip(points_of(known), known.decisions.items(), strict=True):
        assert (each.sequence, each.settles_at) == (decision.sequence, close)
        assert each.settled == naive.get(key)
    trial.close()


def test_a_mean_is_of_whole_settled_days_of_five_or_more_after_both_actions():
    now = START + timedelta(days=30)
    days = [settled(day, hour, action=int(day % 2 == 0 or hour == 9)) for day in range(6) for hour in (9, 18)]
    groups = outcomes.grouped(days, now)
    assert [len(group) for group in groups] == [6, 6]
    assert [each for group in groups for each in group] == days
    assert outcomes.grouped(days[:4], now) == []
    one = [replace(each, action=1) for each in days]
    assert outcomes.grouped(one, now) == []
    assert [len(group) for group in outcomes.grouped([*one[:-1], days[-1]], now)] == [12]
    # The sixth of March is settled at noon of the eighth: it is over everywhere a day before.
    settling = datetime(2026, 3, 8, 12, tzinfo=UTC)
    assert len(outcomes.grouped(days, settling - timedelta(seconds=1))) == 1
    assert len(outcomes.grouped(days, settling)) == 2
    late = [replace(each, settled=None) if i in (2, 8) else each for i, each in enumerate(days)]
    assert [len(group) for group in outcomes.grouped(late, now)] == [5, 5]


def test_a_mean_is_drawn_no_more_exactly_than_its_interval_is_wide(view, drawn):
    some = [settled(day, hour, int(hour == 9), 1.0 + 0.0137 * day) for day in range(4) for hour in (9, 18)]
    foreseen = {each.sequence: Foreseen(1.0, 0.1, 0.5) for each in some}
    outcomes.outcome_section(replace(view, points=some, foreseen=foreseen), by_action=False)
    assert drawn[-1].value == (1.0,)  # 1.0137, of an interval that is 1.4 wide


def test_nothing_that_a_blinded_page_draws_tells_actions(view, points, drawn):
    outcomes.outcome_section(view, by_action=False)
    # The same with every action the other way round, and what follows from it: the figure must not know.
    other = replace(view, points=[replace(each, action=1 - each.action) for each in points])
    outcomes.outcome_section(other, by_action=False)
    assert drawn[0] == drawn[1]
    assert drawn[0].action == ()
    outcomes.outcome_section(view, by_action=True)
    outcomes.outcome_section(other, by_action=True)
    assert drawn[2] != drawn[3]
    assert set(drawn[2].action) <= {-1, 0, 1}
    shown = [each.outcome for each in points if each.outcome is not None]
    assert drawn[2].value == pytest.approx(shown)
    assert 1 <= len(drawn[0].value) <= len(shown) / outcomes.GROUP


def test_a_pooled_model_is_said_to_flatter_itself(view):
    def words(person):
        return outcomes.outcome_section(person, by_action=True).blocks[1].text

    assert "flatters" not in words(view)
    assert "flatters" in words(replace(view, protocol=view.protocol.model_copy(update={"pooling": "pooled"})))

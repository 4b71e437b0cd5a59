"""What the page Cohort says in words."""

from dataclasses import replace

from kerneltrail.report.page import Table
from kerneltrail.trial.dashboard import cohort
from kerneltrail.trial.decided import points_of, present, updates_at


def test_messages_of_the_last_day_are_among_all_who_had_a_decision(life, state):
    """Somebody who had a decision and was sent nothing counts; so do messages that did not arrive."""
    trial, time = life
    (first, *_), (other, *_) = (points_of(each) for each in present(state)[:2])
    sent = [replace(first, action=1, delivered=delivered) for delivered in (1, 1, None, 0)]
    points = [*sent, replace(other, at=first.at, action=0)]
    view = cohort.CohortView(state, trial.protocol, points, updates_at(state), "Europe/Zurich", time.now)
    words = cohort._doses(view).blocks[0].text
    assert "4 messages were sent among 2 participants with a decision: 2.00 each. 2 of them are known" in words
    assert "went to" not in words
    alone = cohort._doses(replace(view, points=[sent[0]])).blocks[0].text
    assert "1 message was sent among 1 participant with a decision: 1.00 each. It is known to have arrived." in alone
    none = cohort._doses(replace(view, points=[points[-1]])).blocks[0].text
    assert "0 messages were sent among 1 participant with a decision: 0.00 each. Over" in none


def test_the_verdict_on_a_policy_stands_beside_its_name_on_any_screen(life, state):
    trial, time = life
    points = cohort.all_points([points_of(each) for each in present(state)])
    view = cohort.CohortView(state, trial.protocol, points, updates_at(state), "Europe/Zurich", time.now)
    table = next(block for block in cohort._ratio(view).blocks if isinstance(block, Table))
    assert table.columns[:3] == ("decided by", "verdict", "decisions")
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert {row[1] for row in table.rows} == {"as drawn"}
    assert table.names == 2  # words, so on the left

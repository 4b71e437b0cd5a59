"""What reached a participant: the same on pages, in exports and for doses."""

import pytest

from kerneltrail.trial.decided import points_of
from kerneltrail.trial.delivered import delivered_action
from kerneltrail.trial.points import reached

from .running import Time, asked, begun, enrol, rows

CASES = [
    ([], None),
    ([("sent", None)], None),
    ([("unknown", None)], None),
    ([("failed", None)], 0),
    ([("not_delivered", None)], 0),
    ([("delivered", 1), ("seen", None)], 1),
    ([("delivered", 1), ("dismissed", None)], 1),
    ([("failed", None), ("delivered", 1)], 1),
    ([("sent", 1), ("failed", None)], 0),
    ([("failed", 0), ("unknown", None)], 0),
]


@pytest.mark.parametrize(("reports", "expected"), CASES)
def test_pages_exports_and_doses_say_the_same_of_what_reached_somebody(tmp_path, reports, expected):
    time = Time()
    trial = begun(tmp_path / "delivered.db", time, warm=False)
    enrol(trial, "p01")
    answer = next(
        answer
        for index in range(40)
        if (answer := trial.decide(asked(index=index, at=time.go(hours=1)))).value["action"]
    )
    before = trial.snapshot().sequence
    for status, action in reports:
        trial.deliver(answer.value["decision_id"], status=status, at=time.now, delivered_action=action)
    known = trial.snapshot().participants["p01"]
    decision = list(known.decisions.values())[-1]
    assert delivered_action(known, decision.key) == expected
    assert delivered_action(known, decision.key, before) is None  # nobody had said anything by then
    assert rows(trial, "decisions")[-1]["delivered_action"] == expected
    point = points_of(known)[-1]
    assert (point.delivered, point.lost) == (expected, expected == 0)
    assert reached(known, decision, before) is True
    assert reached(known, decision, before + len(reports)) is (expected != 0)
    trial.decide(asked(index=41, at=time.go(hours=1)))  # the message was the first one, if it arrived
    assert (rows(trial, "decisions")[-1]["dose"] > 0.0) is (expected != 0)
    assert trial.replay().same
    trial.close()

"""Which rows form which batches: whatever came, in whatever order, each counting outcome is in one batch, once."""

from datetime import timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kerneltrail.trial.ledger.participant import Decision, Outcome, Participant, StatusChange
from kerneltrail.trial.rows import SENTENCES, arrays, planned, rows_of, until, usable

from .running import BEGIN
from .study import centred_model

OBSERVED = "2026-03-01T12:00:00+00:00"


class Record:
    """A participant whose entries are made by hand."""

    def __init__(self):
        self.person = Participant("p01", enrolled={"timezone": "UTC"}, enrolled_at="2026-01-01T00:00:00Z")
        self.sequence = 0

    def next(self):
        self.sequence += 1
        return self.sequence

    def decide(self, hours, **changes):
        key = f"p01/walk/{len(self.person.decisions)}"
        payload = {
            "decided_at": (BEGIN + timedelta(hours=hours)).isoformat(),
            "available": True,
            "action": 1,
            "probability": (0.3).hex(),
            "arrived": {"hour": 9.0, "steps": 100.0 + hours},
            **changes,
        }
        self.person.decisions[key] = Decision(self.next(), key, OBSERVED, payload)
        return key

    def tell(self, decision, value, supersedes=None):
        key = f"p01/o{len(self.person.outcomes)}"
        self.person.outcomes[key] = Outcome(self.next(), key, OBSERVED, OBSERVED, decision, value, supersedes)
        return key

    def plan(self, base=()):
        return planned(base, usable(self.person, centred_model()).rows, self.person)


def test_the_reason_for_every_row_that_is_left_out():
    record = Record()
    keys = [record.decide(hours) for hours in range(5)]
    record.decide(5, arrived={"hour": 9.0})
    record.decide(6, available=False, action=0, probability=(0.0).hex())
    for key in (*keys[:2], "p01/walk/5", "p01/walk/6"):
        record.tell(key, 1.0)
    record.tell(keys[2], None)
    first = record.tell(keys[3], 1.0)
    record.tell(keys[3], 2.0, first)
    record.tell(None, 3.0)
    at = (BEGIN + timedelta(minutes=90)).isoformat()
    record.person.changes.append(StatusChange(record.next(), at, at, "paused", None))
    record.person.changes.append(
        StatusChange(record.next(), (BEGIN + timedelta(hours=2)).isoformat(), at, "active", None)
    )
    rows = usable(record.person, centred_model())
    assert [row.y for row in rows.rows] == [1.0, 1.0, 2.0, 1.0]
    assert [row.available for row in rows.rows] == [1.0, 1.0, 1.0, 0.0]
    assert rows.left_out == {
        "outcome missing": (3,),
        "no outcome": (5,),
        "context incomplete": (6,),
        "corrected": (13,),
        "no decision": (15,),
    }
    record.person.changes[0] = StatusChange(1, (BEGIN + timedelta(minutes=30)).isoformat(), at, "paused", None)
    assert usable(record.person, centred_model()).left_out["paused"] == (2,)
    assert set(rows.left_out) <= set(SENTENCES)


@given(
    st.lists(
        st.tuples(st.sampled_from(["decide", "tell", "correct", "lose", "update"]), st.integers(0, 30)), max_size=40
    )
)
def test_every_counting_outcome_is_in_one_batch_and_stays_in_the_one_it_entered(steps):
    record, base, entered = Record(), (), {}
    waiting, told = [], []
    for what, number in steps:
        if what == "decide":
            waiting.append(record.decide(number))
        elif what == "tell" and waiting:
            key = waiting.pop(number % len(waiting))
            told.append((key, record.tell(key, float(number))))
        elif what in ("correct", "lose") and told:
            key, name = told.pop(number % len(told))
            told.append((key, record.tell(key, float(number) if what == "correct" else None, name)))
        elif what == "update":
            plan = record.plan(base)
            current = {each.sequence for each in record.person.current().values() if each.value is not None}
            listed = [outcome for batch in plan.batches for outcome in batch]
            assert sorted(listed) == sorted(current)
            assert all(plan.batches)
            assert (plan.change is None) == (plan.batches == base)
            if plan.change is not None and not plan.rebuilt:
                assert (*base, tuple(plan.change["batch"])) == plan.batches
            batch_of = {
                next(o.decision for o in record.person.outcomes.values() if o.sequence == outcome): i
                for i, batch in enumerate(plan.batches)
                for outcome in batch
            }
            together = {key: {k for k in batch_of if batch_of[k] == batch_of[key]} for key in batch_of}
            for key, mates in entered.items():  # who entered together stays together
                assert together.get(key, mates) & mates == mates & set(batch_of) or key not in batch_of
            entered = together
            base = plan.batches
            assert [len(batch) for batch in rows_of(record.person, base)] == [len(batch) for batch in base]


def test_entries_after_a_moment_are_not_there():
    record = Record()
    key = record.decide(0)
    name = record.tell(key, 1.0)
    then = record.sequence
    record.tell(key, 2.0, name)
    record.decide(1)
    assert [row.y for row in usable(record.person, centred_model()).rows] == [2.0]
    before = until(record.person, then)
    assert [row.y for row in usable(before, centred_model()).rows] == [1.0]
    assert len(before.decisions) == 1


def test_rows_as_arrays():
    record = Record()
    record.tell(record.decide(3), 1.5)
    X, y, assignment = arrays(usable(record.person, centred_model()).rows, ("steps", "hour"))
    assert (X.tolist(), y.tolist()) == ([[103.0, 9.0]], [1.5])
    assert assignment.probability.tolist() == pytest.approx([0.3])

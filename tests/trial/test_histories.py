"""Any history of a trial: decisions, repeats, changes, late and corrected outcomes, restarts, updates, rollbacks.

Whatever happened, in whatever order, every decision comes out of the ledger again to the last bit, and every repeat
gets the bytes that were answered first.
"""

import tempfile
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from kerneltrail.errors import KeyConflict

from .running import BEGIN, Time, asked, begun, enrol, outcome

PEOPLE = st.sampled_from(["p01", "p02"])
VALUES = st.one_of(st.none(), st.floats(-2.0, 4.0))


class Histories(RuleBasedStateMachine):
    """A trial with two participants."""

    decisions = Bundle("decisions")
    waiting = Bundle("waiting")
    told = Bundle("told")

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.time = Time()
        self.location = Path(self.folder.name) / "ledger.db"
        self.trial = begun(self.location, self.time)
        enrol(self.trial, "p01", "p02")
        self.indices = {"p01": 0, "p02": 0}
        self.answers = {}
        self.names = 0

    @rule(target=waiting, person=PEOPLE, steps=st.floats(0.0, 500.0), available=st.integers(0, 4))
    def decide(self, person, steps, available):
        self.time.go(hours=3)
        index = self.indices[person]
        self.indices[person] += 1
        reasons = () if available else ("asleep",)
        request = asked(person, index, at=self.time.now, steps=steps, available=bool(available), reasons=reasons)
        answer = self.trial.decide(request)
        assert answer.new
        assert answer.value["rung"] == ("policy" if available else "unavailable")
        self.answers[person, index] = (request, answer)
        return answer

    @rule(pick=st.randoms(use_true_random=False))
    def repeat(self, pick):
        if self.answers:
            request, answer = pick.choice(sorted(self.answers.values(), key=lambda each: each[1].sequence))
            assert self.trial.decide(request).body == answer.body

    @rule(pick=st.randoms(use_true_random=False))
    def change(self, pick):
        if self.answers:
            request, answer = pick.choice(sorted(self.answers.values(), key=lambda each: each[1].sequence))
            other = asked(request.participant, request.index, at=request.decided_at, steps=499.5)
            with pytest.raises(KeyConflict):
                self.trial.decide(other)
            assert self.trial.decide(request).body == answer.body

    @rule(target=told, answer=consumes(waiting), value=VALUES, days=st.integers(0, 2))
    def observe(self, answer, value, days):
        self.time.go(days=days)
        return answer, self._tell(answer, value, None)

    @rule(target=told, known=consumes(told), value=VALUES)
    def correct(self, known, value):
        answer, name = known
        return answer, self._tell(answer, value, name)

    def _tell(self, answer, value, supersedes):
        self.names += 1
        name = f"n{self.names}"
        item = outcome(answer, value, name=name, supersedes=supersedes)
        assert [each.status for each in self.trial.outcomes([item, item])] == ["stored", "duplicate"]
        return name

    @rule(answer=waiting, action=st.sampled_from([0, None]))
    def deliver(self, answer, action):
        self.trial.deliver(answer.value["decision_id"], status="failed", at=None, delivered_action=0)

    @rule()
    def restart(self):
        self.trial.close()
        self.trial = begun(self.location, self.time, warm=False)

    @rule()
    def update(self):
        assert self.trial.update(reason="test").state in ("done", "empty")

    @rule(pick=st.randoms(use_true_random=False))
    def roll_back(self, pick):
        self.trial.activate(pick.choice([each.version for each in self.trial.policies()]), reason="test")

    @rule(person=PEOPLE)
    def pause_for_an_hour(self, person):
        self.trial.event(person, "pause", at=self.time.now + timedelta(minutes=10))
        self.trial.event(person, "resume", at=self.time.go(hours=1))

    @invariant()
    def replay_equals_record(self):
        replayed = self.trial.replay()
        assert (replayed.exact, replayed.different) == (len(self.answers), 0)

    def teardown(self):
        assert self.trial.verify().sound
        assert self.time.now >= BEGIN
        self.trial.close()
        self.folder.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=12, stateful_step_count=18)

"""Append, repeat, conflict, supersede, remove, in every order: the ledger does what a list would, and stays sound."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kerneltrail.errors import KeyConflict, ParticipantRemoved
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.chain import verify
from kerneltrail.trial.ledger.folds import fold
from trial.ledger.examples import outcome

PEOPLE = st.sampled_from(["p1", "p2", "p3"])
KEYS = st.sampled_from(["a", "b", "c", "d"])


class Machine(RuleBasedStateMachine):
    """A ledger beside a plain list of (key, person, value, supersedes, removed)."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger(self.folder / "ledger.db", "walking")
        self.rows = []
        self.gone = set()

    def teardown(self):
        self.ledger.close()
        shutil.rmtree(self.folder)

    def known(self, kind, key):
        return next((row for row in self.rows if (row["kind"], row["key"]) == (kind, key)), None)

    @rule(person=PEOPLE, name=KEYS, value=st.sampled_from([None, 1.0, 2.0]), old=st.none() | KEYS)
    def append(self, person, name, value, old):
        key, old = f"{person}/{name}", old and f"{person}/{old}"
        (kind, _, payload), named = outcome(person, 1, key, value, supersedes=old)
        row = self.known("outcome", key)
        if row is None and person in self.gone:
            with pytest.raises(ParticipantRemoved):
                self.ledger.append(kind, key, payload, **named)
        elif row is None:
            assert self.ledger.append(kind, key, payload, **named, response=b"yes").new
            self.rows.append({"kind": kind, "key": key, "person": person, "value": value, "old": old})
        elif person in self.gone or (row["value"], row["old"]) == (value, old):
            again = self.ledger.append(kind, key, payload, **named, response=b"no")
            assert not again.new
            assert again.entry.response == (None if person in self.gone else b"yes")
        else:
            with pytest.raises(KeyConflict):
                self.ledger.append(kind, key, payload, **named)

    @rule(person=PEOPLE)
    def remove(self, person):
        count = sum(row["person"] == person for row in self.rows if row["kind"] == "outcome")
        removal = self.ledger.remove(person)
        assert removal.new == (person not in self.gone)
        assert removal.payloads == (0 if person in self.gone else count)
        if person not in self.gone:
            self.rows.append({"kind": "removal", "key": person, "person": person})
        self.gone.add(person)

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = Ledger(self.folder / "ledger.db", "walking")

    @invariant()
    def sound(self):
        verdict = verify(self.ledger)
        assert verdict.sound, verdict
        assert verdict.entries == len(self.rows)

    @invariant()
    def entries_are_those_of_the_list(self):
        entries = list(self.ledger.entries())
        assert [(entry.kind, entry.key) for entry in entries] == [(row["kind"], row["key"]) for row in self.rows]
        for entry, row in zip(entries, self.rows, strict=True):
            assert entry.removed == (row["kind"] == "outcome" and row["person"] in self.gone)
        state = fold("walking", entries)
        for person in {row["person"] for row in self.rows}:
            theirs = [row for row in self.rows if row["kind"] == "outcome" and row["person"] == person]
            named = {row["old"] for row in theirs if row["old"] != row["key"]}
            left = [row["key"] for row in theirs if row["key"] not in named and person not in self.gone]
            assert list(state.participants[person].current()) == left[-1:]


Machine.TestCase.settings = settings(max_examples=25, stateful_step_count=20)
TestMachine = Machine.TestCase

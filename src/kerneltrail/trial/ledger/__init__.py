"""The ledger of a trial: what happened, in one append-only chain of entries, in SQLite or PostgreSQL."""

from kerneltrail.store.canonical import canonical, exact, real
from kerneltrail.trial.ledger.chain import Unsound, Verdict, verify
from kerneltrail.trial.ledger.copies import backup, restore
from kerneltrail.trial.ledger.entries import Entry, Kind, key_of
from kerneltrail.trial.ledger.folds import Activation, Folded, Incident, Key, Protocol, State, Update, fold
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.ledger.participant import (
    Decision,
    Delivery,
    Input,
    Observation,
    Outcome,
    Participant,
    StatusChange,
    sifted,
)
from kerneltrail.trial.ledger.writer import Appended, Head, Removal, Writer

__all__ = [
    "Activation",
    "Appended",
    "Decision",
    "Delivery",
    "Entry",
    "Folded",
    "Head",
    "Incident",
    "Input",
    "Key",
    "Kind",
    "Ledger",
    "Observation",
    "Outcome",
    "Participant",
    "Protocol",
    "Removal",
    "State",
    "StatusChange",
    "Unsound",
    "Update",
    "Verdict",
    "Writer",
    "backup",
    "canonical",
    "exact",
    "fold",
    "key_of",
    "real",
    "restore",
    "sifted",
    "verify",
]

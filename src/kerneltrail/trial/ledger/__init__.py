"""The ledger of a trial: what happened, in one append-only chain of entries, in SQLite or PostgreSQL."""

from kerneltrail.trial.ledger.canonical import canonical, exact, real
from kerneltrail.trial.ledger.entries import Entry, Kind, key_of
from kerneltrail.trial.ledger.ledger import Appended, Head, Ledger, Removal, Writer

__all__ = ["Appended", "Entry", "Head", "Kind", "Ledger", "Removal", "Writer", "canonical", "exact", "key_of", "real"]

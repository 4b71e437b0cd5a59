"""Draws that are not those of the secret key: taken from a record, or drawn anew for a trial that is simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from kerneltrail.errors import DataError
from kerneltrail.store.canonical import real
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.export import inputs
from kerneltrail.trial.ledger.folds import State

NO_KEY = bytes(32)
"""In the place of a key that nobody has, and that nothing is drawn with."""


@dataclass(frozen=True)
class RecordedDraws(Draws):
    """The draws that a record has, for whoever has no key: u and the decision's id are looked up.

    A replay with them shows that every probability is right, and that every action follows from its u. That nobody
    chose the draws is shown by the key alone.

    Attributes:
        key: none.
        promised: the commitment of the protocol, which cannot be checked.
        records: of decisions, by participant, kind and index.
    """

    key: bytes = field(default=NO_KEY, repr=False)
    promised: str = ""
    records: Mapping[tuple[str, str, int], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, state: State, promised: str) -> RecordedDraws:
        """Those of a ledger's state."""
        records = {}
        for _, _, _, record in inputs(state):
            records[record["participant"], record["kind"], record["index"]] = record
        return cls(promised=promised, records=records)

    @property
    def commitment(self) -> str:
        """What the protocol promises."""
        return self.promised

    def _record(self, participant: str, kind: str, index: int) -> Any:
        try:
            return self.records[participant, kind, index]
        except KeyError:
            raise DataError(f"the record has no decision {kind} {index} of participant {participant}") from None

    def number(self, trial: str, participant: str, kind: str, index: int) -> float:
        """u of one decision, as recorded."""
        number = self._record(participant, kind, index)["draw"]
        if number is None:
            raise DataError(f"the record has no draw for the decision {kind} {index} of participant {participant}")
        return real(number)

    def decision_id(self, trial: str, participant: str, kind: str, index: int, at: datetime) -> UUID:
        """The decision's name, as recorded."""
        return UUID(self._record(participant, kind, index)["decision_id"])


@dataclass(frozen=True)
class NewDraws(Draws):
    """Draws of a trial that is simulated anew under a protocol: other numbers, under the same names of decisions."""

    promised: str = ""

    @classmethod
    def of(cls, seed: int, number: int, promised: str) -> NewDraws:
        """Those of one simulated trial."""
        return cls(hashlib.sha256(f"kerneltrail resample {seed} {number}".encode()).digest(), promised)

    @property
    def commitment(self) -> str:
        """What the protocol asks for; nothing is promised by these draws."""
        return self.promised

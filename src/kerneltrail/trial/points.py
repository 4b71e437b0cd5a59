"""A participant's past at a decision, folded from the ledger's entries: the same whoever folds it, and whenever.

It is made of the decision points that were recorded by then (`until`) and that lie before the new one on the clock, in
the order of their times. The dose counts what was delivered where that is reported, and what was assigned where not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kerneltrail.trial.delivered import delivered_action
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.participant import Decision, Participant
from kerneltrail.trial.past import Past, slot_of
from kerneltrail.trial.protocol import Protocol


def reached(person: Participant, decision: Decision, until: int) -> bool:
    """Whether a decision counts for the dose: its action reached the participant, as far as entries up to `until` say.

    Where none says anything, what was assigned counts.
    """
    record: Any = decision.payload
    action = delivered_action(person, decision.key, until)
    return bool(record["action"] if action is None else action)


class Pasts:
    """Pasts of participants, each folded further from where the last one stood; a cache that may be dropped."""

    def __init__(self) -> None:
        self._folded: dict[str, tuple[list[tuple[Any, ...]], list[Past]]] = {}

    def clear(self) -> None:
        """Drop everything."""
        self._folded.clear()

    def forget(self, participant: str) -> None:
        """Drop what is kept of somebody."""
        self._folded.pop(participant, None)

    def at(self, protocol: Protocol, person: Participant, until: int, before: datetime) -> Past:
        """The past at a decision that is made `before` then, with the entries up to `until`."""
        points = sorted(self._points(protocol, person, until, before), key=lambda point: point[:2])
        marks = [(protocol.hash, point[1], point[3]) for point in points]
        known, pasts = self._folded.get(person.id, ([], []))
        common = 0
        while common < min(len(known), len(marks)) and known[common] == marks[common]:
            common += 1
        pasts = pasts[:common]
        past = pasts[-1] if pasts else Past()
        for _, _, decision, sent in points[common:]:
            record: Any = decision.payload
            slot = slot_of(protocol, record["kind"], instant(record["decided_at"]))
            past = past.after(protocol, slot, record.get("arrived", {}), sent)
            pasts.append(past)
        self._folded[person.id] = (marks, pasts)
        return past

    def _points(
        self, protocol: Protocol, person: Participant, until: int, before: datetime
    ) -> Iterator[tuple[datetime, int, Decision, bool]]:
        for decision in person.decisions.values():
            record = decision.payload
            if decision.sequence > until or record is None or record["kind"] not in protocol.decisions:
                continue
            at = instant(record["decided_at"])
            if at < before:
                yield at, decision.sequence, decision, reached(person, decision, until)

"""A recorded participant's past at one decision after the other, for whoever makes them all anew.

It comes to what `points.Pasts` finds, bit by bit, but looks at each entry once: at those that are new since the last
decision. Only an entry that came out of order, such as a late report of a delivery, lets it fold a part again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.past import Past, slot_of
from kerneltrail.trial.points import reached
from kerneltrail.trial.protocol import Protocol

Spot = tuple[datetime, int, str]
"""Where a decision stands among the others: its time, its sequence and its key."""


class Forward:
    """The past of one participant whose record is complete.

    What a decision or its deliveries say may be changed until a past is asked for that has them; no entry may be added.
    """

    def __init__(self, person: Participant) -> None:
        self.person = person
        self._decisions = sorted((each.sequence, key) for key, each in person.decisions.items())
        self._deliveries = sorted(
            (each.sequence, key) for key, several in person.deliveries.items() for each in several
        )
        self._restart("")

    def _restart(self, protocol: str) -> None:
        self._protocol, self._until = protocol, 0
        self._spots: list[Spot] = []
        self._sent: dict[str, bool] = {}
        self._pasts: list[Past] = []

    def at(self, protocol: Protocol, until: int, before: datetime) -> Past:
        """The past at a decision that is made `before` then, with the entries up to `until`."""
        if protocol.hash != self._protocol or until < self._until:
            self._restart(protocol.hash)
        for key in self._new(self._decisions, until):
            self._add(protocol, key, until)
        for key in self._new(self._deliveries, until):
            self._hear(key, until)
        self._until = until
        count = bisect_left(self._spots, before, key=lambda spot: spot[0])
        for at, _, key in self._spots[len(self._pasts) : count]:
            record: Any = self.person.decisions[key].payload
            past = self._pasts[-1] if self._pasts else Past()
            slot = slot_of(protocol, record["kind"], at)
            self._pasts.append(past.after(protocol, slot, record.get("arrived", {}), self._sent[key]))
        return self._pasts[count - 1] if count else Past()

    def _new(self, entries: Sequence[tuple[int, str]], until: int) -> Iterator[str]:
        """Keys of the decisions of entries that were not heard of before, up to `until`."""
        first, last = (bisect_left(entries, (end + 1, "")) for end in (self._until, until))
        return (key for _, key in entries[first:last])

    def _add(self, protocol: Protocol, key: str, until: int) -> None:
        decision = self.person.decisions[key]
        record = decision.payload
        if record is None or record["kind"] not in protocol.decisions:
            return
        spot = (instant(record["decided_at"]), decision.sequence, key)
        self._sent[key] = reached(self.person, decision, until)
        insort(self._spots, spot)
        self._drop(spot)

    def _hear(self, key: str, until: int) -> None:
        """Take in what a report says of a decision that is there."""
        if key not in self._sent:
            return
        decision = self.person.decisions[key]
        sent = reached(self.person, decision, until)
        if sent != self._sent[key]:
            self._sent[key] = sent
            record: Any = decision.payload
            self._drop((instant(record["decided_at"]), decision.sequence, key))

    def _drop(self, spot: Spot) -> None:
        """Drop the pasts that have a decision in them."""
        del self._pasts[bisect_left(self._spots, spot) :]

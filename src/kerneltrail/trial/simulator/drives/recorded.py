"""The drive of a real `Trial`: every call is recorded in a ledger on disk, and the record is checked at the end."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from kerneltrail.errors import LedgerError, TrialError
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.export import table
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.request import Request
from kerneltrail.trial.results import Item
from kerneltrail.trial.rhythm import UNDONE
from kerneltrail.trial.simulator.drives.drive import OUTAGE, Decided, Drive, Reported, context_fields
from kerneltrail.trial.simulator.policies import Asked

PATIENCE, SHORT = 5.0, 0.25
"""Seconds that a writer waits for its turn, usually and while an outage is simulated."""
REASON = 0
"""Which of the protocol's reasons is given where nobody can act."""


class SimulatedClock:
    """A clock that stands where it is set; it never goes back."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def __call__(self) -> datetime:
        """What time it is."""
        return self._now

    def set(self, now: datetime) -> None:
        """Go on to a time."""
        self._now = max(now, self._now)


@dataclass
class RecordedDrive(Drive):
    """A trial with its ledger, in a folder that is removed at the end."""

    folder: Path | None = field(default=None, kw_only=True)
    outages: bool = field(default=False, kw_only=True)

    def begin(self, start: datetime) -> None:
        """Freeze the protocol, and enrol everybody."""
        self._home = Path(tempfile.mkdtemp(prefix="simulated-trial-", dir=self.folder))
        self._lock: sqlite3.Connection | None = None
        self.clock = SimulatedClock(start)
        self._file = self._home / "ledger.db"
        self.trial = self._opened()
        self._enrol()
        self._bodies: dict[tuple[str, int], bytes] = {}

    def _opened(self) -> Trial:
        # A locked ledger must be noticed soon, or a simulated outage takes as long as a real one.
        patience = SHORT if self.outages else PATIENCE
        ledger = Ledger(self._file, self.protocol.trial, clock=self.clock, patience=patience)
        models = {self.protocol.model.fingerprint: self.setting.model}
        return Trial.open(
            ledger, key=self.draws.key, models=models, protocol=self.protocol, clock=self.clock, warm=False
        )

    def _enrol(self) -> None:
        for name in self.setting.people:
            self.trial.enrol(name, timezone=self.setting.calendar.zone, starts_on=self.setting.calendar.begin)

    def request(self, asked: Asked) -> Request:
        """A decision as an app asks for it."""
        reasons = () if asked.available else (self.protocol.availability[REASON],)
        given = context_fields(self.protocol, asked, self.setting.model.covariates)
        slot = asked.slot
        return Request(asked.participant, slot.kind, slot.index, slot.at, asked.available, reasons, given)

    def decide(self, asked: Asked) -> Decided:
        """By the trial."""
        self.clock.set(asked.slot.at)
        return self._decided(asked, *self._ask(asked, None))

    def _ask(self, asked: Asked, reported: tuple[int, float, str] | None) -> tuple[Mapping[str, Any], bytes]:
        if reported is None:
            answer = self.trial.decide(self.request(asked))
        else:
            action, probability, reason = reported
            answer = self.trial.report(self.request(asked), action=action, probability=probability, reason=reason)
        return answer.value, answer.body

    def _decided(self, asked: Asked, value: Mapping[str, Any], body: bytes) -> Decided:
        self._bodies[asked.participant, asked.point] = body
        return Decided(
            int(value["action"]), float(value["probability"]), value["rung"], value["clipped"] or "none",
            value["decision_id"],
        )  # fmt: skip

    def report(self, asked: Asked, action: int, probability: float) -> Decided:
        """As an app reports what it drew."""
        return self._decided(asked, *self._ask(asked, (action, probability, OUTAGE)))

    def repeat(self, asked: Asked) -> bool:
        """The same call once more: the same bytes?"""
        return self._ask(asked, None)[1] == self._bodies[asked.participant, asked.point]

    def deliver(self, asked: Asked, decided: Decided, action: int, when: datetime) -> None:
        """Report a delivery."""
        status = "delivered" if action == decided.action else "not_delivered"
        self.trial.deliver(decided.name, status=status, at=when, delivered_action=action)

    def outcomes(self, items: Sequence[Reported]) -> None:
        """Report outcomes; none may be refused."""
        for begin in range(0, len(items), 1000):
            refused = [each for each in self._send([_item(each) for each in items[begin : begin + 1000]]) if _bad(each)]
            if refused:
                raise TrialError(f"an outcome was refused: {refused[0].reason}")

    def _send(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        return self.trial.outcomes(items)

    def withdraw(self, participant: str, when: datetime) -> None:
        """Report that somebody has left."""
        self.trial.event(participant, "withdraw", at=when, reason="left")

    def tick(self, now: datetime) -> bool:
        """Run the update that is due, if the ledger can be written."""
        self.clock.set(now)
        reason = self.trial.due(now)
        if not reason:
            return False
        try:
            return self.trial.update(reason=reason).state not in UNDONE
        except LedgerError:
            return False

    def interrupt(self, outage: bool) -> None:
        """Lock the ledger's file, as another process would, or let it go."""
        super().interrupt(outage)
        if outage:
            self._lock = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            self._lock.execute("BEGIN IMMEDIATE")
        elif self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None

    def close(self) -> Mapping[str, Any]:
        """Replay and verify the record, export it, and remove the folder."""
        if self._lock is not None:
            self.interrupt(False)
        replayed, verdict, state = self.trial.replay(), self.trial.verify(), self.trial.snapshot()
        facts = {
            "replayed": str(replayed),
            "replays": replayed.same,
            "chain": verdict.sound,
            "incidents": _counted(each.payload["kind"] for each in state.incidents.values() if each.payload),
            "updates": _counted(str((each.result or {}).get("state")) for each in state.updates.values()),
            "mrt": table(state, "mrt")[1],
        }
        self.trial.close()
        shutil.rmtree(self._home, ignore_errors=True)
        return facts


def _bad(item: Item) -> bool:
    return item.status == "refused"


def _counted(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _item(report: Reported) -> dict[str, Any]:
    item = {
        "client_id": report.name,
        "participant": report.asked.participant,
        "decision": report.decision,
        "value": report.value,
        "observed_at": report.observed_at.isoformat(),
    }
    return item if report.supersedes is None else {**item, "supersedes": report.supersedes}

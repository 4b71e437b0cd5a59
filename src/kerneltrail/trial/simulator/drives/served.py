"""The drive of the real service: a server on this machine, called over HTTP as an app and an operator call it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from time import monotonic, sleep
from typing import Any

from kerneltrail.errors import CallRefused, NotRecorded, TrialError
from kerneltrail.trial.client import Client
from kerneltrail.trial.results import Item
from kerneltrail.trial.rhythm import counts
from kerneltrail.trial.service import CallLimits, create_app, in_thread
from kerneltrail.trial.service.logs import LOGGER
from kerneltrail.trial.service.served import Served
from kerneltrail.trial.simulator.drives.drive import Decided
from kerneltrail.trial.simulator.drives.recorded import RecordedDrive
from kerneltrail.trial.simulator.policies import Asked

UNRECORDED = (0, 503)
"""Statuses that say, or let fear, that nothing was written."""
LONGEST = 300.0
"""Seconds that an update may take."""


@contextmanager
def _in_silence() -> Iterator[None]:
    """Keep the server's log from the terminal: the failures in it are meant to happen."""
    nobody = logging.NullHandler()
    LOGGER.addHandler(nobody)
    try:
        yield
    finally:
        LOGGER.removeHandler(nobody)


@dataclass
class ServedDrive(RecordedDrive):
    """A trial behind its service."""

    def begin(self, start: datetime) -> None:
        """Freeze the protocol, serve it, and enrol everybody."""
        self._stack = ExitStack()
        self._stack.enter_context(_in_silence())
        super().begin(start)

    def _enrol(self) -> None:
        trial, name = self.trial, self.protocol.trial
        app = create_app(trial, name=name, limits=CallLimits(rate=1e6, burst=10**6), clock=self.clock, interval=0)
        self._served: Served = app.state.served
        tokens = {scope: trial.create_key([scope], note="simulation").token for scope in ("app", "operator")}
        address = self._stack.enter_context(in_thread(app))
        # An app that simulates an outage must not wait until it is over.
        self._app = Client(address, name, tokens["app"], timeout=60.0, tries=1)
        self._operator = Client(address, name, tokens["operator"], timeout=60.0)
        end = monotonic() + 60.0
        while not self._app.ready():
            if monotonic() > end:
                raise TrialError("the server did not become ready within a minute")
            sleep(0.01)
        for person in self.setting.people:
            self._app.enrol(person, timezone=self.setting.calendar.zone, starts_on=self.setting.calendar.begin)

    def _ask(self, asked: Asked, reported: tuple[int, float, str] | None) -> tuple[Mapping[str, Any], bytes]:
        request = self.request(asked)
        try:
            decided = self._app.decide(
                request.participant,
                request.kind,
                request.index,
                decided_at=request.decided_at,
                context=request.context,
                available=request.available,
                reasons=request.reasons,
                drawn=reported,
            )
        except CallRefused as refused:
            if refused.status in UNRECORDED:
                raise NotRecorded(str(refused)) from None
            raise
        names = ("action", "probability", "rung", "clipped", "decision_id")
        return {name: getattr(decided, name) for name in names}, decided.body

    def deliver(self, asked: Asked, decided: Decided, action: int, when: datetime) -> None:
        """Report a delivery."""
        status = "delivered" if action == decided.action else "not_delivered"
        self._app.deliver(decided.name, status, at=when, delivered_action=action)

    def _send(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        return self._app.outcomes(items)

    def withdraw(self, participant: str, when: datetime) -> None:
        """Report that somebody has left."""
        self._app.event(participant, "withdraw", at=when, reason="left")

    def tick(self, now: datetime) -> bool:
        """Let the server look at its clock, and wait for the update that it starts."""
        self.clock.set(now)
        before = self._updates()
        self._served.tick()
        end = monotonic() + LONGEST
        while self._running() and monotonic() < end:
            sleep(0.002)
        return self._updates() > before

    def _updates(self) -> int:
        with self.trial.reading() as state:
            return sum(each.result is not None and counts(each) for each in state.updates.values())

    def _running(self) -> bool:
        with self.trial.reading() as state:
            return state.running_update is not None

    def close(self) -> Mapping[str, Any]:
        """Stop the server, then as without one."""
        if self._lock is not None:
            self.interrupt(False)
        self._stack.close()
        return super().close()

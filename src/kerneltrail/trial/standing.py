"""How a trial stands: a light, numbers and words, computed from the ledger."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from kerneltrail.trial.alarms import DAY, alerts, calls, recent
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Status
from kerneltrail.trial.rhythm import due
from kerneltrail.trial.versions import Versions


def status(state: State, protocol: Protocol, now: datetime) -> Status:
    """How the trial stands at a time."""
    found, versions = tuple(alerts(state, protocol, now)), Versions(state)
    severities = {alert.severity for alert in found}
    expected = calls(state, protocol, now).values()
    every = [each for person in state.participants.values() for each in person.decisions.values()]
    made: list[Any] = [each.payload for _, each in recent(state, now)]
    outcomes = [
        each
        for person in state.participants.values()
        for each in person.outcomes.values()
        if now - DAY < instant(each.received_at) <= now
    ]
    newest = max(versions.by_name.values(), key=lambda each: each.sequence, default=None)
    return Status(
        at=now,
        trial=state.trial,
        title=protocol.title,
        light="red" if "error" in severities else "yellow" if "warning" in severities else "green",
        participants=dict(Counter(person.status() for person in state.participants.values())),
        expected=sum(each[0] for each in expected),
        received=sum(each[1] for each in expected),
        decisions=dict(Counter(record["rung"] for record in made)),
        outcomes=len(outcomes),
        policy=None if versions.active is None else versions.active.version,
        last_update=None if newest is None else instant(newest.made_at),
        update_due=due(state, protocol, now),
        last_call=max((instant(each.received_at) for each in every), default=None),
        open_incidents=sum(each.is_open for each in state.incidents.values()),
        entries=state.sequence,
        alerts=found,
    )

"""How a trial stands: a light, numbers and words, computed from the ledger."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial.alarms import DAY, DUE_WORDS, alerts, calls, outcomes_due, recent
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Status
from kerneltrail.trial.rhythm import due, on_clock, status_at
from kerneltrail.trial.versions import Versions


def status(state: State, protocol: Protocol, now: datetime) -> Status:
    """How the trial stands at a time."""
    current, versions = tuple(alerts(state, protocol, now)), Versions(state)
    severities = {alert.severity for alert in current}
    expected = calls(state, protocol, now).values()
    every = [each for person in state.participants.values() for each in person.decisions.values()]
    made: list[Any] = [each.payload for _, each in recent(state, now)]
    taken = [record["computed_ms"] for record in made if "computed_ms" in record]
    outcomes = [
        each
        for person in state.participants.values()
        for each in person.outcomes.values()
        if now - DAY < instant(each.received_at) <= now
    ]
    means = list(mean_outcomes(state).values())
    newest = max(versions.by_name.values(), key=lambda each: each.sequence, default=None)
    return Status(
        at=now,
        trial=state.trial,
        title=protocol.title,
        light="red" if "error" in severities else "yellow" if "warning" in severities else "green",
        participants=dict(Counter(status_at(person, now) for person in state.participants.values())),
        expected=sum(each[0] for each in expected),
        received=sum(each[1] for each in expected),
        decisions=dict(Counter(record["rung"] for record in made)),
        latency_ms=None if not taken else (float(np.quantile(taken, 0.5)), float(np.quantile(taken, 0.95))),
        outcomes=len(outcomes),
        policy=None if versions.active is None else versions.active.version,
        last_update=None if newest is None else instant(newest.made_at),
        update_due=due(state, protocol, now),
        last_call=max((instant(each.received_at) for each in every), default=None),
        open_incidents=sum(each.is_open for each in state.incidents.values()),
        entries=state.sequence,
        outcome=None if not means else (float(np.mean(means)), protocol.reward.worst.of(means)),
        alerts=current,
        missing=outcomes_due(state, now),
        better=protocol.reward.better,
    )


def mean_outcomes(state: State) -> dict[str, float]:
    """The mean outcome of each participant who has any that counts; what is missing is left out, it is not 0."""
    values = {
        person.id: [each.value for each in person.current().values() if each.value is not None]
        for person in state.participants.values()
        if person.removed is None
    }
    return {name: float(np.mean(several)) for name, several in values.items() if several}


def as_json(standing: Status) -> dict[str, Any]:
    """A status as plain values."""
    times = {name: value.isoformat() for name, value in vars(standing).items() if isinstance(value, datetime)}
    alerts = [{**vars(each), "at": None if each.at is None else each.at.isoformat()} for each in standing.alerts]
    return {**vars(standing), **times, "alerts": alerts}


def lines(standing: Status) -> list[str]:
    """A status in words, a line for each thing."""
    statuses = [f"{number} {status}" for status, number in standing.participants.items()]
    rungs = [f"{number} by {rung}" for rung, number in standing.decisions.items()]
    people, made = listing(statuses) if statuses else "nobody yet", listing(rungs) if rungs else "none"
    calls = f", {standing.received} of {standing.expected} that were due" if standing.expected else ""
    last = "never" if standing.last_call is None else on_clock(standing.last_call)
    learnt = "" if standing.last_update is None else f", made {on_clock(standing.last_update)}"
    times, fares, side = standing.latency_ms, standing.outcome, "below" if standing.better == "higher" else "above"
    text = [
        f"{standing.title} ({standing.trial}): {standing.light}",
        f"Participants: {people}",
        f"Decisions in 24 hours: {made}{calls}; last call {last}",
        *([] if times is None else [f"Time to decide: {times[0]:.0f} ms as a rule, 95 % within {times[1]:.0f} ms"]),
        f"Outcomes in 24 hours: {standing.outcomes}",
        f"Missing outcomes: {standing.missing[0]} of {standing.missing[1]} in the whole trial ({DUE_WORDS})",
        *(
            []
            if fares is None
            else [f"Mean outcome: {fares[0]:.4g} over participants; a quarter lie {side} {fares[1]:.4g}"]
        ),
        f"Policy: {standing.policy or 'none'}{learnt}",
        f"Ledger: {counted(standing.entries, 'entry', 'entries')}; {counted(standing.open_incidents, 'incident')} open",
    ]
    if standing.update_due:
        text.append(f"An update is due: {standing.update_due}")
    return [*text, *(f"{each.severity}: {each.words}" for each in standing.alerts)]

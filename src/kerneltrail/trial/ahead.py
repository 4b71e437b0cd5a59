"""Days ahead: the decisions that fall due on them by the protocol, for a phone that goes offline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from kerneltrail.errors import DecisionError
from kerneltrail.names import nearest
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from kerneltrail.trial.rhythm import at


def days_ahead(
    protocol: Protocol,
    participant: str,
    timezone: str,
    *,
    kind: str,
    begins_on: date,
    days: int,
    first_index: int,
    contexts: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Request]:
    """The requests of some days, at the times that the protocol has for a kind of decision.

    They count from `first_index` on, so that asking again asks for the same decisions.

    Args:
        protocol: says at which times of the day a decision is due.
        participant: the study's id, and
        timezone: on whose clock those times are.
        kind: of decision.
        begins_on: the first day.
        days: how many.
        first_index: the index of the first decision.
        contexts: by time of the day, such as ``08:30``, what is expected then. A time without one has a context
            without values, and the protocol says what stands in for them.

    Raises:
        DecisionError: for a kind without times, or a time that is none of them.
    """
    if kind not in protocol.decisions:
        raise DecisionError(f"kind {kind!r} is not in the protocol; {nearest(kind, tuple(protocol.decisions))}")
    times = protocol.decisions[kind].times
    if not times:
        raise DecisionError(f"the protocol has no times for {kind!r}: list the decisions themselves")
    expected = dict(contexts or {})
    for clock in expected:
        if clock not in times:
            raise DecisionError(f"contexts has {clock!r}, but {kind!r} is decided at {', '.join(times)}")
    points = [(begins_on + timedelta(days=day), clock) for day in range(days) for clock in times]
    zone = ZoneInfo(timezone)
    return [
        Request(
            participant,
            kind,
            first_index + place,
            at(day, clock, zone),
            context=expected.get(clock, {}),
        )
        for place, (day, clock) in enumerate(points)
    ]

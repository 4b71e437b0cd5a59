"""What pages keep in memory between two looks, so that a look at an old trial costs no more than what is new in it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from kerneltrail.trial.decided import Point, points_of
from kerneltrail.trial.ledger.participant import Participant

PointsOf = Callable[[Participant, datetime], list[Point]]
"""What gives a participant's decisions up to a time: `points_of`, or `KeptPoints.of`, which remembers."""


class KeptPoints:
    """Decisions of participants, computed anew for whom something was recorded since."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[Any, ...], list[Point]]] = {}
        self._lock = threading.Lock()

    def of(self, person: Participant, now: datetime) -> list[Point]:
        """The same as `points_of`."""
        mark = _mark(person)
        with self._lock:
            known, points = self._known.get(person.id, (None, []))
        if known != mark:
            points = points_of(person)
            if person.removed is None:
                with self._lock:
                    self._known[person.id] = (mark, points)
        return points[: bisect_right(points, now, key=lambda each: each.at)]

    def forget(self, names: Collection[str]) -> None:
        """Drop some participants."""
        with self._lock:
            for name in names:
                self._known.pop(name, None)


def _mark(person: Participant) -> tuple[Any, ...]:
    """What tells a participant's entries from any earlier ones: a ledger only grows, so their numbers do."""
    deliveries = sum(map(len, person.deliveries.values()))
    return person.revision, person.removed, len(person.decisions), len(person.outcomes), deliveries


class KeptPage:
    """What the newest look at a page came to, for as long as nothing was recorded and the minute is the same."""

    def __init__(self) -> None:
        self._newest: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._forgotten = 0
        self._lock = threading.Lock()  # of what is kept; nothing is computed while it is held
        self._turn = threading.Lock()  # of who computes; `forget` never waits for it

    def of(self, sequence: int, now: datetime, more: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The values of the page; what was begun before `forget` was called is not kept.

        Args:
            sequence: of the newest entry.
            now: what time it is.
            more: on which they depend besides.
            make: computes them; who asks meanwhile waits for it. It may call `forget`, but not this.
        """
        mark = (sequence, now.replace(second=0, microsecond=0), more)
        with self._turn:
            with self._lock:
                newest, forgotten = self._newest, self._forgotten
            if newest is not None and newest[0] == mark:
                return newest[1]
            values = make()
            with self._lock:
                if self._forgotten == forgotten:
                    self._newest = (mark, values)
            return values

    def forget(self) -> None:
        """Drop it, and what is being computed."""
        with self._lock:
            self._newest = None
            self._forgotten += 1

"""Turns of threads, first come, first served: Python's own locks may let one wait for as long as others come."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """A lock that is handed on in the order in which it was asked for.

    >>> turns = Turns()
    >>> turns.acquire(1.0), turns.acquire(0.0)
    (True, False)
    >>> turns.release()
    >>> turns.acquire(0.0)
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._taken = False

    def acquire(self, seconds: float) -> bool:
        """Wait for the next turn for so many seconds; whether it came."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        if mine.wait(seconds):
            return True
        with self._lock:
            if mine.is_set():  # it came just now
                return True
            self._waiting.remove(mine)
            return False

    def release(self) -> None:
        """Hand the turn on."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False

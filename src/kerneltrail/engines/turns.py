"""Short turns of threads: for work that computes in one thread while others must answer quickly."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN = 0.0005
"""Seconds after which a thread that computes lets another one go on, if that waits."""

_LOCK = threading.Lock()
_blocks = 0
_before = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads of this process take short turns while the block runs; blocks may overlap.

    An answer that reads and writes a database gives up its turn many times. Each time it may wait five milliseconds
    for a thread that computes, which is Python's usual turn.
    """
    global _blocks, _before
    with _LOCK:
        if not _blocks:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(TURN, _before))
        _blocks += 1
    try:
        yield
    finally:
        with _LOCK:
            _blocks -= 1
            if not _blocks:
                sys.setswitchinterval(_before)

"""What a worker process does before its first job: it watches the process that began it."""

from __future__ import annotations

import os
import threading
import time

POLL = 1.0
"""Seconds between two looks."""


def begin_worker(parent: int) -> None:
    """End this process soon after its parent has ended, however that happened.

    A parent that is killed cannot tell its workers; they would wait for the next job for ever. A thread looks, because
    the system's own signal for this (Linux's PR_SET_PDEATHSIG) is sent when the parent's *thread* ends.
    """
    threading.Thread(target=_watch, args=(parent,), name="parent watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(1)  # at once: whatever waits in this process, waits for nobody

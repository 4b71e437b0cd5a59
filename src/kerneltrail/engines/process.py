"""What a process of our own sets up: a worker watches the process that began it, and freed memory is reused."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from functools import cache

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


@cache
def keep_freed_memory() -> bool:
    """Tell the C library of this process to reuse freed memory instead of returning it; whether it listened.

    Matrices of some hundred rows are just past the size that glibc maps anew for every temporary, and page faults then
    take half the time of a gradient. For processes of our own (workers, command line), not for a host's.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of <malloc.h>
    return bool(mallopt(threshold, 1 << 27)) and bool(mallopt(trim, 1 << 28))

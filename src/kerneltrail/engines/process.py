"""What a process of our own sets up: it ends with its parent, reuses freed memory, and passes over what stays."""

from __future__ import annotations

import ctypes
import gc
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


def leave_settled() -> int:
    """Leave all objects that there are now out of later garbage collections; how many they are.

    Python goes over all objects now and then to find circles that nobody uses, and every thread waits meanwhile: 0.3 s
    in a service with 500 participants. What is there when it is ready mostly stays, and so does what a collection has
    left, such as decisions: from now on each goes over what is new since the last one. Objects that nobody refers to
    are freed as ever. A circle that is broken off later stays; at most what is being answered during a collection can
    become one. For processes of our own, not for a host's.
    """
    gc.collect()  # what is a circle without use now would stay for ever
    gc.freeze()
    if _leave_new not in gc.callbacks:
        gc.callbacks.append(_leave_new)
    gc.collect()  # of nothing: how long Python waits with the next one depends on the number of objects in the last
    return gc.get_freeze_count()


def _leave_new(phase: str, about: dict[str, int]) -> None:
    if phase == "stop" and about["generation"] == 2:
        gc.freeze()

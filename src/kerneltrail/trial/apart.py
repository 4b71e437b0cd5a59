"""How a process of its own begins: at full priority it loads next to nothing, and computes nothing.

This module therefore imports nothing of the package. The job comes as bytes; making it of them loads the rest.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")
NICE = 10
"""By how much the priority of what takes long in such a process is lower."""


def begin(job: bytes, *arguments: object) -> None:
    """Do a job, a pickled function; it is called in the main thread, which keeps its priority.

    Its arguments are those that only a process that begins can be given, such as a connection.
    """
    for each in (signal.SIGINT, signal.SIGTERM):  # they are for the server, which waits for this process
        signal.signal(each, signal.SIG_IGN)
    do: Callable[..., object] = aside(partial(pickle.loads, job))
    do(*arguments)


def aside(call: Callable[[], T]) -> T:
    """Call a function in a thread at a lower priority.

    The thread that records keeps its priority (on Linux each has its own): decisions wait for it, and it would hardly
    get its turn on a busy machine.
    """
    with ThreadPoolExecutor(1, initializer=_lower) as pool:
        return pool.submit(call).result()


def _lower() -> None:
    if hasattr(os, "nice"):
        os.nice(NICE)

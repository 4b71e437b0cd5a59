"""What takes long and is asked for by a button: replay of all decisions, verification of the chain; one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from kerneltrail.errors import KerneltrailError
from kerneltrail.trial.service.logs import note_failure


@dataclass(frozen=True)
class Job:
    """A run of one kind: when it began, when it ended, and what it came to; no end: it is running."""

    began: datetime
    ended: datetime | None = None
    good: bool = False
    words: str = ""


class Jobs:
    """The newest run of each kind on this server."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def get(self, kind: str) -> Job | None:
        """The newest of a kind, or None."""
        with self._lock:
            return self._jobs.get(kind)

    def start(self, kind: str, work: Callable[[], tuple[bool, str]], clock: Callable[[], datetime]) -> None:
        """Begin a run, unless one of the kind is running; `work` says whether all is well, and words."""
        begins = Job(clock())
        with self._lock:
            running = self._jobs.get(kind)
            if running is not None and running.ended is None:
                return
            self._jobs[kind] = begins
            thread = threading.Thread(target=self._run, args=(kind, work, clock), name=kind, daemon=True)
            self._threads[kind] = thread
        thread.start()

    def wait(self, kind: str, seconds: float) -> None:
        """Wait a while for a run to end, so that a short one is shown at once."""
        thread = self._threads.get(kind)
        if thread is not None:
            thread.join(seconds)

    def _run(self, kind: str, work: Callable[[], tuple[bool, str]], clock: Callable[[], datetime]) -> None:
        try:
            good, words = work()
        except KerneltrailError as problem:
            good, words = False, f"it could not be done: {problem}"
        except Exception as error:
            note_failure({}, error)
            good, words = False, "it could not be done; the log says where it failed"
        ended = clock()
        with self._lock:
            self._jobs[kind] = replace(self._jobs[kind], ended=ended, good=good, words=words)

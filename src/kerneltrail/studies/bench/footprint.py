"""What work takes of this machine: processor seconds, memory and bytes written, of this process and its workers.

Numbers of other processes are Linux's, from /proc; elsewhere only this process's seconds are known.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from time import process_time
from types import TracebackType
from typing import Self

POLL = 0.1
"""Seconds between two looks at memory: a peak that is shorter may be missed."""

EVERY = 20
"""Looks between two at what all processes have together, which takes the system longer."""

_PROC = Path("/proc")


class Footprint:
    """Measures while it is entered; workers are all processes that this one has started, and theirs.

    >>> with Footprint() as taken:
    ...     _ = sum(range(100_000))
    >>> taken.seconds > 0
    True
    """

    def __init__(self) -> None:
        self._workers: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="footprint", daemon=True)
        self.known = (_PROC / "self" / "status").exists()
        """Whether memory and workers can be seen here."""
        self.peak = 0
        """Most bytes of memory of this process."""
        self.worker_peak = 0
        """Most bytes of memory of one worker."""
        self.together = 0
        """Most bytes of memory of all of them together, what several have in common counted once."""
        self._looks = 0

    def __enter__(self) -> Self:
        self._look()
        self._began = self._now()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._final = self.seconds

    @property
    def seconds(self) -> float:
        """Processor seconds since it was entered, of this process and its workers."""
        if self._ended.is_set() and hasattr(self, "_final"):
            return self._final
        self._look()
        return self._now() - self._began

    @staticmethod
    def written() -> int | None:
        """Bytes that this process has written so far, to files and to other processes; None where nobody knows."""
        with suppress(OSError, ValueError, StopIteration):
            lines = (_PROC / "self" / "io").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("wchar")).split()[1])
        return None

    def _now(self) -> float:
        return process_time() + sum(self._workers.values())

    def _watch(self) -> None:
        while not self._ended.wait(POLL):
            self._look()

    def _look(self) -> None:
        self.peak = max(self.peak, _memory(os.getpid()))
        children = _children(os.getpid())
        if self._looks % EVERY == 0:
            self.together = max(self.together, sum(_share(pid) for pid in (os.getpid(), *children)))
        self._looks += 1
        for pid in children:
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile; what it took until then counts
                fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
                self._workers[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self.worker_peak = max(self.worker_peak, _memory(pid))


def _memory(pid: int) -> int:
    """Bytes of memory that a process has now; 0 where nobody knows."""
    with suppress(OSError, ValueError, IndexError):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _share(pid: int) -> int:
    """Bytes of memory of a process, where a page that n processes have counts as its n-th part; 0 where unknown."""
    with suppress(OSError, ValueError, StopIteration):
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return 0


def _children(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have."""
    every: list[int] = []
    with suppress(OSError, ValueError):
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                every += [child, *_children(child)]
    return every

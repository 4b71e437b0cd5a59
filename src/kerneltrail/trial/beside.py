"""Work beside decisions: updates, and states that are computed ahead, in a process of their own where that can be.

A thread that computes keeps those that decide from their turns. A process of its own has its own turns, at a lower
priority, and leaves what it has computed in files (`shelf.Shelf`), from which the server takes a state when it is asked
for it. What the process has recorded, the server finds in the ledger, as that of any other process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol as Interface

from kerneltrail.engines import leave_settled, short_turns
from kerneltrail.engines.process import begin_worker
from kerneltrail.errors import LedgerError, TrialError
from kerneltrail.trial import apart, updating
from kerneltrail.trial.core import Core
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.versions import Version, Versions

PAUSE = 0.01
"""Seconds between states that are read while decisions are made; four times as long as it took, if that is more."""


class Opened(Interface):
    """A trial as a process of its own needs it."""

    def complete(self, id: str, aside: updating.Aside | None = None) -> object:
        """Do an update that was started."""

    def warm(self) -> int:
        """Compute states."""

    def close(self) -> None:
        """Give back connections."""


Again = Callable[[], Opened]
"""What opens the same trial in another process: it is sent there, so it must be one that can be pickled."""


def start(core: Core, id: str, again: Again | None) -> str:
    """Do an update that was started beside decisions, and return its id."""
    target, more = (updating.run_alone, ()) if again is None else (_watch, (again,))
    thread = threading.Thread(target=target, args=(core, id, *more), name=f"update {id}")
    core.beside.append(thread)
    thread.start()
    return id


def _watch(core: Core, id: str, again: Again) -> None:
    """Let a process do an update, and record how that ended where it did not do so by itself."""
    try:
        code = _in_process(again, id)
    finally:
        core.working.discard(id)
    with suppress(LedgerError):  # the next update notes what cannot be recorded now
        with core.reading() as state:
            ended = state.updates[id].finished is not None
        if not ended and code < 0:
            updating.killed(core, id)
        elif not ended:
            updating.failed(core, id, TrialError(f"its process ended with the code {code}"))
        _warm(core, gently=True)


def _in_process(again: Again, id: str | None) -> int:
    """The code with which a process ended that did an update, or computed states; negative if it was killed."""
    context = multiprocessing.get_context("spawn")  # a copy of this process would share its connections
    # As bytes: what it is made of is then loaded at a lower priority, which takes as long as some decisions.
    job = pickle.dumps(partial(work, os.getpid(), again, id))
    process = context.Process(target=apart.begin, args=(job,), name=f"update {id}")
    process.start()
    process.join()
    return process.exitcode or 0


def work(parent: int, again: Again, id: str | None) -> None:
    """What the process does: an update to its end, or all states where there is none; it ends with its parent."""
    begin_worker(parent)
    trial = apart.aside(partial(_opened, again))
    try:
        if id is None:
            apart.aside(trial.warm)
        else:
            trial.complete(id, apart.aside)
    finally:
        trial.close()


def _opened(again: Again) -> Opened:
    """The trial in another process: with the whole ledger, which need not be gone over again and again."""
    trial = again()
    leave_settled()
    return trial


def warm(core: Core, again: Again | None = None) -> int:
    """Have the states of all active participants in memory; their number.

    Those that no file has are computed: in a process of its own if there is one, so that decisions go on, else here. A
    model that is missing, or a state that cannot be computed, is left to the ladder.
    """
    if again is not None and not core.states.is_kept:
        again = None  # what the process computes would be lost with it
    count, missing = _warm(core, compute=again is None)
    if missing and again is not None:
        _in_process(again, None)
        count, _ = _warm(core)
    return count


def _warm(core: Core, *, compute: bool = False, gently: bool = False) -> tuple[int, int]:
    """Take states into memory, and compute the others if told; how many there are, and how many are missing."""
    with core.reading() as state:
        versions = Versions(state)
        people = [each for each in state.participants.values() if each.status() in ("active", "paused")]
        removed = [each.id for each in state.participants.values() if each.removed is not None]
    for name in removed:  # perhaps by a process that did not know of files here
        core.states.forget(name)
    count = missing = 0
    with short_turns():
        for person, version in _followed(people, versions):
            if core.ending.is_set():
                break
            began = time.monotonic()
            with suppress(Exception):
                if core.user(person, versions, version, compute=compute) is not None:
                    count += 1
                else:
                    missing += 1
            if gently:
                core.ending.wait(max(PAUSE, 4.0 * (time.monotonic() - began)))
    return count, missing


def _followed(people: list[Participant], versions: Versions) -> Iterator[tuple[Participant, Version]]:
    """Those who have rows at the version that serves."""
    version = versions.active
    if version is not None:
        for person in people:
            if versions.batches(version.version, person.id):
                yield person, version

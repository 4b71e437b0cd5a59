"""Followed participants, kept in memory: each a function of a model and of recorded batches, so any may be dropped."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.rows import Row, arrays
from kerneltrail.trial.shelf import Shelf, digests
from kerneltrail.trial.versions import Batches

KEPT = 3
"""States that are kept of each participant: of the policy that serves, of the one before, of the one being made."""

Gather = Callable[[int], Sequence[Sequence[Row]]]
"""The rows of a participant's batches, from the batch of that number on."""


def followed(model: LearntGraph, name: str, batches: Sequence[Sequence[Row]], start: NewUser | None = None) -> NewUser:
    """A user after batches of rows: from the beginning, or going on from a user, who stays as they are."""
    user = NewUser.start(model, name) if start is None else start.copy()
    for rows in batches:
        X, y, assignment = arrays(rows, model.covariates)
        user.update(X, y, action=assignment)
    return user


class States:
    """Followed participants by model and batches; threads may share it."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = shelf
        self._users: dict[str, OrderedDict[tuple[str, Batches], NewUser]] = {}
        self._running: dict[tuple[str, str, Batches], Future[NewUser]] = {}
        self._removed: set[str] = set()
        self._lock = threading.RLock()
        self._files = threading.Lock()  # apart, so that nobody who asks for a state in memory waits for a disk
        self._pool: ThreadPoolExecutor | None = None

    @property
    def is_kept(self) -> bool:
        """Whether states are also kept in files."""
        return self._shelf is not None

    def get(self, model_id: str, participant: str, batches: Batches) -> NewUser | None:
        """One that is in memory, or None."""
        with self._lock:
            known = self._users.get(participant)
            if known is None or (model_id, batches) not in known:
                return None
            known.move_to_end((model_id, batches))
            return known[model_id, batches]

    def put(self, model_id: str, participant: str, batches: Batches, user: NewUser) -> None:
        """Keep one, unless the participant's data were removed; the one that was not asked for longest goes."""
        with self._lock:
            if participant in self._removed:  # while this was being computed
                return
            known = self._users.setdefault(participant, OrderedDict())
            known[model_id, batches] = user
            known.move_to_end((model_id, batches))
            while len(known) > KEPT:
                known.popitem(last=False)

    def forget(self, participant: str | None = None) -> None:
        """Drop what is kept of somebody whose data were removed, for good; or what is in memory of everybody."""
        with self._lock:
            if participant is None:
                self._users.clear()
                self._removed.clear()  # another ledger, in which somebody may not have been removed
            else:
                self._users.pop(participant, None)
                self._removed.add(participant)
        if participant is not None and self._shelf is not None:
            with self._files:
                self._shelf.forget(participant)

    def compute(self, model: LearntGraph, model_id: str, participant: str, batches: Batches, gather: Gather) -> NewUser:
        """One that is in memory, or computed: from the longest beginning of its batches that is in memory or in a file.

        What is computed is kept in memory, and in a file where there is a folder for them; but not of somebody whose
        data were removed meanwhile.
        """
        known = self.get(model_id, participant, batches)
        if known is not None:
            return known
        rows = gather(0) if self._shelf is not None else ()
        names = digests(model_id, participant, rows, model.covariates) if self._shelf is not None else []
        start, begin = None, 0
        for length in range(len(batches), 0, -1):
            start = self.get(model_id, participant, batches[:length])
            if start is None and self._shelf is not None:
                start = self._shelf.read(participant, names[length - 1], model)
            if start is not None:
                begin = length
                break
        user = followed(model, participant, gather(begin), start)
        self.put(model_id, participant, batches, user)
        if self._shelf is not None and begin < len(batches):
            with self._files:
                if participant not in self._removed:
                    self._shelf.write(participant, names[-1], user)
        return user

    def known(
        self, model: LearntGraph, model_id: str, participant: str, batches: Batches, gather: Gather
    ) -> NewUser | None:
        """One that is in memory, or in a file; None if it would have to be computed."""
        user = self.get(model_id, participant, batches)
        if user is None and self._shelf is not None:
            name = digests(model_id, participant, gather(0), model.covariates)[-1]
            user = self._shelf.read(participant, name, model)
            if user is not None:
                self.put(model_id, participant, batches, user)
        return user

    def within(
        self,
        seconds: float,
        model: LearntGraph,
        model_id: str,
        participant: str,
        batches: Batches,
        gather: Gather,
    ) -> NewUser:
        """As `compute`, if it does not take longer; else `TimeoutError`, and it goes on for the next who asks."""
        known = self.get(model_id, participant, batches)
        if known is not None:
            return known
        name = (model_id, participant, batches)
        with self._lock:
            running = self._running.get(name)
            if running is None:
                self._pool = self._pool or ThreadPoolExecutor(2, thread_name_prefix="states")
                running = self._pool.submit(self.compute, model, model_id, participant, batches, gather)
                self._running[name] = running
                running.add_done_callback(lambda _: self._running.pop(name, None))
        return running.result(max(seconds, 0.0))

    def close(self) -> None:
        """End its threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def kept_in(folder: str | os.PathLike[str] | None) -> States:
    """States that are also kept in a folder; without one, in memory alone."""
    return States(None if folder is None else Shelf(Path(folder)))

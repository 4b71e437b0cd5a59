"""Entries of several threads in one commit: whoever writes takes along what others want to record by then.

Writers come one by one, and each waits for the database and its disk. If they come faster than that, more and more of
them would wait. Together they wait for two commits at most: the one that was under way, and their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby

from kerneltrail.errors import KeyConflict, NotRecorded, ParticipantRemoved
from kerneltrail.trial.ledger.writer import Appended, Draft, Writer

Transaction = Callable[[float | None], AbstractContextManager[Writer]]
"""Begins a transaction, for which it waits so many seconds; None for as long as usual."""


@dataclass(eq=False)
class _Wish:
    """What a thread wants to record; it is called when that was done, or when it should do it itself."""

    draft: Draft
    called: threading.Event = field(default_factory=threading.Event)
    outcome: Appended | Exception | None = None


class Together:
    """Records entries, those of threads that wait in one transaction; each has an outcome of its own.

    If the transaction fails, nothing of it was recorded, and all of them are told.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._lock = threading.Lock()
        self._wishes: list[_Wish] = []
        self._led = False  # whether a thread is writing, or was called to

    def record(self, draft: Draft, patience: float | None, wait: float) -> Appended:
        """Record an entry: when this returns, it is on the disk.

        Args:
            draft: the entry.
            patience: seconds to wait for other writers, as `Ledger.append` has it.
            wait: seconds to wait for threads of this process.

        Raises:
            KeyConflict, ParticipantRemoved, NotRecorded: as `Ledger.append`.
        """
        mine, began = _Wish(draft), time.monotonic()
        with self._lock:
            self._wishes.append(mine)
            if not self._led:
                self._led = True
                mine.called.set()
        if not mine.called.wait(wait) and self._given_up(mine):
            raise NotRecorded("other threads were writing for too long; nothing was recorded")
        mine.called.wait()  # where it is being recorded just now, that goes on
        if mine.outcome is None:
            self._lead(mine, None if patience is None else patience - (time.monotonic() - began))
        if isinstance(mine.outcome, Appended):
            return mine.outcome
        assert mine.outcome is not None
        raise mine.outcome

    def _given_up(self, mine: _Wish) -> bool:
        """Take a wish back, if nobody has begun to record it and it was not called."""
        with self._lock:
            if mine.called.is_set() or mine not in self._wishes:
                return False
            self._wishes.remove(mine)
            return True

    def _lead(self, mine: _Wish, patience: float | None) -> None:
        """Record all that is wanted by the time when the transaction has begun, and call whoever comes next."""
        taken, results = [mine], list[Appended | Exception]()
        try:
            with self._transaction(patience) as writer:
                with self._lock:
                    taken, self._wishes = self._wishes, []
                results = _recorded(writer, [each.draft for each in taken])
            for each, result in zip(taken, results, strict=True):
                each.outcome = result
        except BaseException as problem:
            for each in taken:
                each.outcome = NotRecorded(str(problem))  # one of its own: each is raised in another thread
            raise
        finally:
            with self._lock:
                self._wishes = [each for each in self._wishes if each is not mine]
                self._led = bool(self._wishes)
                if self._wishes:
                    self._wishes[0].called.set()
            for each in taken:
                each.called.set()


def _recorded(writer: Writer, drafts: Sequence[Draft]) -> list[Appended | Exception]:
    """What became of each draft; one kind after the other, since these take one statement each."""
    if len(drafts) == 1:
        try:
            return [writer.record(drafts[0])]
        except (KeyConflict, ParticipantRemoved) as problem:
            return [problem]
    outcomes: dict[int, Appended | Exception] = {}
    numbered = sorted(enumerate(drafts), key=lambda pair: pair[1].kind)
    for _, several in groupby(numbered, key=lambda pair: pair[1].kind):
        numbers, alike = zip(*several, strict=True)
        outcomes |= zip(numbers, writer.extend(alike), strict=True)
    return [outcomes[number] for number in range(len(drafts))]

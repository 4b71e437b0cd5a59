"""Walking the chain: whether anything that was recorded has been changed, cut out, moved or deleted since."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from kerneltrail.errors import LedgerError
from kerneltrail.store.canonical import digest
from kerneltrail.trial.ledger import schema
from kerneltrail.trial.ledger.entries import Entry, Kind, first
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.ledger.writer import Head


@dataclass(frozen=True)
class Verdict:
    """What walking a chain came to.

    Attributes:
        trial: whose chain it is.
        entries: how many entries are sound, counted from the first.
        removed: of those, how many had their payload removed as an entry says.
        head: the last sound entry.
        sequence: the first entry that is not sound; None where all are, or where the trouble is not with one entry.
        problem: what is wrong, in words; None where nothing is.
    """

    trial: str
    entries: int
    removed: int
    head: Head | None
    sequence: int | None = None
    problem: str | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"the ledger of {self.trial} is not sound: {self.problem}"
        gone = f", {self.removed} of them with their payload removed" if self.removed else ""
        return f"the ledger of {self.trial} is sound: {self.entries} entries{gone}"


class Chain:
    """A chain that is walked entry by entry; `step` says what is wrong with one, or None."""

    def __init__(self, trial: str) -> None:
        self.trial = trial
        self.last = Head(0, first(trial))
        self.removed = 0
        self._absent: dict[str | None, list[int]] = {}  # entries without payload, until a removal is met
        self._present: dict[str, int] = {}  # the newest entry of a participant that still has its payload

    def step(self, entry: Entry) -> str | None:
        """Compare an entry with what it says of itself, with the one before, and with its payload."""
        n, expected = entry.sequence, self.last.sequence + 1
        if n != expected:
            gap = f"entries {expected} to {n - 1} are missing" if n > expected + 1 else f"entry {expected} is missing"
            return gap if n > expected else f"entry {n} stands where {expected} should"
        name = f"entry {n} ({entry.kind} {entry.key!r})"
        if entry.trial != self.trial:
            return f"{name} belongs to the trial {entry.trial}"
        if entry.previous != self.last.hash:
            return f"{name} does not follow the one before it: an entry was changed, exchanged or moved"
        if entry.sealed() != entry.hash:
            return f"{name} was changed after it was recorded"
        if entry.content is None:
            owner = None if entry.kind == Kind.REMOVAL else entry.participant  # a removal does not remove itself
            self._absent.setdefault(owner, []).append(n)
        else:
            problem = _payload_problem(entry)
            if problem is not None:
                return f"{name}: {problem}"
            if entry.participant is not None and entry.kind != Kind.REMOVAL:
                self._present[entry.participant] = n
        if entry.kind == Kind.REMOVAL:
            self.removed += len(self._absent.pop(entry.key, ()))
            if entry.key in self._present:
                return f"{name} is there, but entry {self._present[entry.key]} still has its payload"
        self.last = Head(n, entry.hash)
        return None

    def absent(self) -> int | None:
        """The first entry whose payload is gone although no entry says that it was removed."""
        return min((numbers[0] for numbers in self._absent.values()), default=None)


def _payload_problem(entry: Entry) -> str | None:
    salt, content = entry.salt or b"", entry.content or b""
    if digest(salt, content) != entry.payload_hash:
        return "its payload was changed after it was recorded"
    if (entry.response is None) != (entry.response_hash is None):
        return "the bytes that were answered are " + ("missing" if entry.response is None else "not those of the entry")
    if entry.response is not None and digest(salt, entry.response) != entry.response_hash:
        return "the bytes that were answered were changed after they were recorded"
    return None


class Unsound(LedgerError):
    """A chain that is not sound, with the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(str(verdict))

    def __reduce__(self) -> tuple[type[Unsound], tuple[Verdict]]:
        return Unsound, (self.verdict,)


def walked(trial: str, entries: Iterable[Entry], expected: Head | None = None) -> Generator[Entry, None, Verdict]:
    """Entries one by one, each after it was found sound; `Unsound` is raised at the first that is not.

    Args:
        trial: whose chain it is.
        entries: all of them in their order.
        expected: an end of the chain as it was noted before; without it, entries that were cut off at the end cannot
            be noticed.
    """
    chain = Chain(trial)
    for entry in entries:
        problem = chain.step(entry)
        noted = expected is not None and entry.sequence == expected.sequence
        if problem is None and noted and expected is not None and entry.hash != expected.hash:
            problem = f"entry {entry.sequence} is not the one that was noted: the chain was written anew"
        if problem is not None:
            raise Unsound(_verdict(chain, min(entry.sequence, chain.last.sequence + 1), problem))
        yield entry
    absent = chain.absent()
    if absent is not None:
        words = f"entry {absent}: its payload is missing, and no entry says that it was removed"
        raise Unsound(_verdict(chain, absent, words))
    if expected is not None and chain.last.sequence < expected.sequence:
        words = f"entry {expected.sequence} was noted, and the chain ends at {chain.last.sequence}"
        raise Unsound(_verdict(chain, chain.last.sequence + 1, words))
    return _verdict(chain, None, None)


def verify_entries(trial: str, entries: Iterable[Entry], expected: Head | None = None) -> Verdict:
    """Walk entries from the first; the first that is not sound is named."""
    walk = walked(trial, entries, expected)
    try:
        while True:
            next(walk)
    except StopIteration as end:
        return end.value
    except Unsound as problem:
        return problem.verdict


def _verdict(chain: Chain, sequence: int | None, problem: str | None) -> Verdict:
    head = chain.last if chain.last.sequence else None
    return Verdict(chain.trial, chain.last.sequence, chain.removed, head, sequence, problem)


def verify(ledger: Ledger, expected: Head | None = None) -> Verdict:
    """Walk a ledger's chain, and look whether its database still refuses changes."""
    verdict = verify_entries(ledger.trial, ledger.entries(), expected)
    if verdict.sound and ledger.database.is_there():
        with ledger.database.reading() as connection:
            gone = schema.missing_triggers(connection)
        if gone:
            words = f"the database no longer refuses changes: the trigger {', '.join(gone)} is missing or off"
            return Verdict(verdict.trial, verdict.entries, verdict.removed, verdict.head, None, words)
    return verdict

"""Errors that people read: each says what was met, where, and what was expected."""

from __future__ import annotations


class KerneltrailError(Exception):
    """Base of every error that Kerneltrail raises on purpose; the command line prints it without a traceback."""


class KernelError(KerneltrailError, ValueError):
    """A kernel, pool or prior that cannot be built as asked."""


_AROUND = 100
"""Of a text that is much longer, so many characters are shown before and after the one that could not be read."""


class KernelSyntaxError(KernelError):
    """Kernel text that does not parse; the message shows the text with a caret under the character.

    Attributes:
        text: the whole text that was being read.
        position: index of the character at which reading stopped.
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        self.problem = problem
        self.text = text
        self.position = position
        start = max(0, position - _AROUND) if len(text) > 4 * _AROUND else 0
        part = text[start : position + _AROUND] if len(text) > 4 * _AROUND else text
        shown = "".join(" " if c.isspace() else c for c in part)  # one line, so the caret stands right
        super().__init__(f"{problem} (character {position + 1})\n    {shown}\n    {' ' * (position - start)}^")

    def __reduce__(self) -> tuple[type[KernelSyntaxError], tuple[str, str, int]]:
        return KernelSyntaxError, (self.problem, self.text, self.position)  # an error must survive a process pool


class DataError(KerneltrailError, ValueError):
    """A table, column, row or user that cannot be used as asked."""


class NumericalError(KerneltrailError, ArithmeticError):
    """A matrix that could not be factorised, or a value that is not finite, with the likely cause."""


class ModelFileError(KerneltrailError, ValueError):
    """A stored model or user that cannot be read here, or written there."""


class ConfigError(KerneltrailError, ValueError):
    """A configuration file that does not say what it should; the message names the key and its place."""


class TrajectoryError(KerneltrailError, ValueError):
    """Paths, evidences or a configuration of moves that do not fit together."""


class DecisionError(KerneltrailError, ValueError):
    """A request for a decision that cannot be answered as it stands; the message names the field."""


class LedgerError(KerneltrailError):
    """A trial's ledger that cannot be opened, read, verified or restored, with the reason."""


class NotRecorded(LedgerError):
    """What the ledger could not take: its database is full, locked, down or read-only. Nothing is half-written.

    Whoever gets it may send the same again: if the entry was written after all, as when a connection breaks in the very
    commit, the repeat is answered from the ledger.
    """


class KeyConflict(LedgerError, ValueError):
    """A key of the ledger that is taken by something else; the message names both.

    Attributes:
        sequence: the number of the entry that holds the key.
        kind: the kind of both.
        key: their key.
    """

    def __init__(self, words: str, sequence: int, kind: str, key: str) -> None:
        self.words = words
        self.sequence = sequence
        self.kind = kind
        self.key = key
        super().__init__(words)

    def __reduce__(self) -> tuple[type[KeyConflict], tuple[str, int, str, str]]:
        return KeyConflict, (self.words, self.sequence, self.kind, self.key)


class ParticipantRemoved(LedgerError, ValueError):
    """An entry about a participant whose data were removed: nothing more is recorded of them."""


class TrialError(KerneltrailError):
    """A step of a trial that cannot be taken as things stand; the message says what stands in its way."""


class UnknownName(TrialError, LookupError):
    """A participant, decision, policy, update, incident or key that the ledger does not have."""


class NotActive(TrialError):
    """A participant for whom nothing is decided now.

    Attributes:
        status: `early` (has not begun), `paused`, `ended` (their time is over) or `withdrawn`.
    """

    def __init__(self, words: str, status: str) -> None:
        self.words = words
        self.status = status
        super().__init__(words)

    def __reduce__(self) -> tuple[type[NotActive], tuple[str, str]]:
        return NotActive, (self.words, self.status)


class KeyPublished(TrialError):
    """The key of the draws is public, so nothing may be drawn with it any more; the message says what to do."""


class InFlight(TrialError):
    """The same decision is being made just now; asked again a little later, it is answered."""


class UpdateRunning(TrialError):
    """Another update of the policy is running."""


class RevisionNeeded(TrialError):
    """A change that must say which revision it changes."""


class StaleRevision(TrialError):
    """A change of something that somebody else has changed meanwhile."""


class CallRefused(TrialError):
    """A call that the service of a trial refused, or that could not reach it.

    Attributes:
        status: of HTTP; 0 if there was no answer.
        kind: of problem, such as `key-conflict`; what a program looks at.
        detail: for people.
        after: seconds after which the service would like to be asked again; 0 if it does not say.
    """

    def __init__(self, status: int, kind: str, detail: str, after: float = 0.0) -> None:
        self.status = status
        self.kind = kind
        self.detail = detail
        self.after = after
        super().__init__(f"{detail} ({kind}, status {status})" if status else detail)

    def __reduce__(self) -> tuple[type[CallRefused], tuple[int, str, str, float]]:
        return CallRefused, (self.status, self.kind, self.detail, self.after)

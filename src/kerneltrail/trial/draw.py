"""The draw: a number in [0, 1) for each decision, from a secret key and the decision's name alone (method §15.2).

There is no generator with a state. Two workers, a restart and a replay draw the same number, in any language, and
whoever knows the key's SHA-256, published before the trial, can check afterwards that nobody chose the draws.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from kerneltrail.errors import DataError

SEPARATOR = "\x1f"
"""The unit separator, byte 0x1f, between the parts of a decision's name; no part may contain it."""

PUBLISHED = "draw-key-published"
"""The incident of a key of the draws that everybody may have; its name in the ledger, too."""
EXAMPLES = (bytes(32), bytes(range(32)))
"""Keys that stand in examples: everybody has them."""
SHORTEST = 16
"""Bytes that a key has at least."""


def checked_id(text: object, what: str) -> str:
    """A part of a decision's name, if it can be one; else refused as `what`."""
    if not isinstance(text, str) or not text or not text.isprintable():  # 0x1f and line breaks are not printable
        raise DataError(f"{what} must be a text of printable characters that is not empty, got {text!r}")
    return text


@dataclass(frozen=True)
class Draws:
    """The draws of a trial.

    >>> draws = Draws(bytes(range(32)))
    >>> round(draws.number("walks", "p01", "morning", 0), 4)
    0.7746
    >>> draws.commitment[:8]
    '630dcd29'

    Attributes:
        key: the secret, at least 16 bytes. It is kept out of texts; its `commitment` is public.
    """

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if type(self.key) is not bytes or len(self.key) < SHORTEST:
            raise DataError(f"the key of the draws must be at least {SHORTEST} bytes")

    @property
    def commitment(self) -> str:
        """SHA-256 of the key, in hexadecimal: what is published before the trial."""
        return hashlib.sha256(self.key).hexdigest()

    @property
    def is_example(self) -> bool:
        """Whether the key is one of an example, so that it is no secret."""
        return self.key in EXAMPLES

    def number(self, trial: str, participant: str, kind: str, index: int) -> float:
        """u of one decision: 53 bits in [0, 1)."""
        first = int.from_bytes(self._digest((), trial, participant, kind, index)[:8], "big")
        return (first >> 11) * 2.0**-53  # method (59)

    def decision_id(self, trial: str, participant: str, kind: str, index: int, at: datetime) -> UUID:
        """The name of a decision in records: a UUID of version 7, the same in every replay."""
        milliseconds = int(at.timestamp() * 1000.0)
        bits = int.from_bytes(self._digest(("id",), trial, participant, kind, index)[:10], "big")
        high, low = (bits >> 62) & 0xFFF, bits & (2**62 - 1)
        return UUID(int=(milliseconds & (2**48 - 1)) << 80 | 7 << 76 | high << 64 | 2 << 62 | low)

    def _digest(self, before: tuple[str, ...], trial: str, participant: str, kind: str, index: int) -> bytes:
        if type(index) is not int or index < 0:
            raise DataError(f"the index of a decision must be a whole number from 0 on, got {index!r}")
        texts = (
            checked_id(trial, "the trial's id"),
            checked_id(participant, "the participant's id"),
            checked_id(kind, "the kind of a decision"),
        )
        message = SEPARATOR.join((*before, *texts, str(index)))
        return hmac.new(self.key, message.encode("utf-8"), hashlib.sha256).digest()


def drawn(number: float, probability: float) -> int:
    """The action of a draw: 1 where the number lies below the probability."""
    return int(number < probability)  # method (59)

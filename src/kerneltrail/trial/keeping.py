"""Which copies of the ledger are kept: those made before updates would otherwise fill the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kerneltrail.errors import DataError

_NAME = re.compile(r"ledger-(\d{8}T\d{6})-before-update-.*\.(db|jsonl)")
USUAL, ALL = "10,14,26", "all"
"""Texts of the rule that is followed unless another one is told, and of the one that deletes nothing."""


@dataclass(frozen=True)
class Keeping:
    """A rule for copies made before updates: the newest ones, the newest of each day, and the newest of each week.

    Days and weeks are those on which there are copies, in UTC, counted back from the newest. Copies that somebody made
    by hand are never deleted.

    Attributes:
        last: newest copies that are kept; None for all.
        days: of which the newest copy is kept.
        weeks: of which the newest copy is kept.

    >>> Keeping.of("10,14,26")
    Keeping(last=10, days=14, weeks=26)
    """

    last: int | None = 10
    days: int = 14
    weeks: int = 26

    def __post_init__(self) -> None:
        if (self.last is not None and self.last < 1) or self.days < 0 or self.weeks < 0:
            raise DataError(
                f"at least one copy must be kept, and no fewer than 0 days and weeks: got {self.last}, {self.days} and "
                f"{self.weeks}"
            )

    @classmethod
    def of(cls, text: str) -> Keeping:
        """The rule in a text: the three numbers with commas between them, or ``all``."""
        if text.strip() == ALL:
            return cls(None)
        numbers = text.split(",")
        if len(numbers) != 3 or not all(each.strip().isdecimal() for each in numbers):
            raise DataError(f"copies that are kept are told as last,days,weeks, such as 10,14,26, or all; got {text!r}")
        return cls(*map(int, numbers))

    def superfluous(self, copies: Iterable[Path]) -> list[Path]:
        """Which copies the rule does not keep, oldest first."""
        if self.last is None:
            return []
        made = sorted((at, path) for path in copies if (at := _made_at(path)) is not None)
        kept = {path for _, path in made[-self.last :]}
        for most, span in ((self.days, "%Y-%m-%d"), (self.weeks, "%G-%V")):
            newest = {f"{at:{span}}": path for at, path in made}  # the last one of each stays
            kept |= set(list(newest.values())[max(0, len(newest) - most) :])
        return [path for _, path in made if path not in kept]

    def thin(self, folder: Path) -> list[Path]:
        """Delete what the rule does not keep, and return it; what cannot be deleted is left for the next time."""
        gone = []
        for path in self.superfluous(folder.glob("ledger-*")):
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue
            gone.append(path)
        return gone


def _made_at(path: Path) -> datetime | None:
    """When a copy was made before an update; None for another file."""
    named = _NAME.fullmatch(path.name)
    return None if named is None else datetime.strptime(named[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)

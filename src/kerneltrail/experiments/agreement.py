"""What the paper reports beside what was found, and whether the two agree: computed, never typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kerneltrail.report.page import Table


@dataclass(frozen=True)
class Agreement:
    """One claim of the paper, held against one run.

    Attributes:
        claim: what the paper says, in a sentence.
        paper: the figures or words it gives.
        ours: what was found.
        agrees: whether the claim holds for what was found; None where the run cannot say.
        where: in the paper.
        of: which of our procedures it is about, such as a preset; "" if all.
    """

    claim: str
    paper: str
    ours: str
    agrees: bool | None
    where: str = ""
    of: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "agrees", False: "differs", None: "not tested"}[self.agrees]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def agreement_table(found: Sequence[Agreement], caption: str = "Beside the paper") -> Table:
    """Claims as a table for the page."""
    rows = [[a.claim, a.of, a.paper, a.ours, a.verdict] for a in found]
    return Table(caption, ("the paper's claim", "procedure", "paper", "this run", ""), rows, words=True)

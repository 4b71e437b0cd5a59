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
        topic: which part of the page it belongs to.
        of: which of our procedures it is about, such as a preset; "" if all.
    """

    claim: str
    paper: str
    ours: str
    agrees: bool | None
    where: str = ""
    of: str = ""
    topic: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "agrees", False: "differs", None: "cannot say"}[self.agrees]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def agreement_table(claims: Sequence[Agreement], caption: str = "Beside the paper") -> Table:
    """Claims as a table for the page; what differs is bold, the procedure is named where there are several."""
    several = len({each.of for each in claims}) > 1
    rows = [
        [each.claim, *([each.of or "both"] if several else []), each.paper, each.ours, each.verdict] for each in claims
    ]
    columns = ("claim", *(["for"] if several else []), "paper", "this run", "")
    marked = [index for index, each in enumerate(claims) if each.agrees is False]
    return Table(caption, columns, rows, marked, words=True)

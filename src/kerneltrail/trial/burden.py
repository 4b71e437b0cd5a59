"""Burden: what an action costs, so that its benefit must exceed it (method §15.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from kerneltrail.errors import DataError

DECAY = 0.95
"""What is left of a dose at the next decision point."""


def dose_after(dose: float, sent: bool, decay: float = DECAY) -> float:
    """The dose after one decision point more.

    >>> dose_after(2.0, True), dose_after(2.0, False)
    (2.9, 1.9)
    """
    return decay * dose + float(sent)  # method (60)


def dose_of(sent: Iterable[bool], decay: float = DECAY) -> float:
    """The dose after decision points in their order, from what was sent at each; 0 before the first.

    >>> round(dose_of([True, False, True]), 4)
    1.9025
    """
    dose = 0.0
    for each in sent:
        dose = dose_after(dose, each, decay)
    return dose


@dataclass(frozen=True)
class Burden:
    """What the benefit of acting must exceed, in the target's units.

    Attributes:
        delta: whatever was sent before.
        per_dose: for each unit of the dose.
        decay: of the dose, from one decision point to the next.
    """

    delta: float = 0.0
    per_dose: float = 0.0
    decay: float = DECAY

    def __post_init__(self) -> None:
        if not (isfinite(self.delta) and isfinite(self.per_dose)) or self.per_dose < 0.0 or not 0.0 <= self.decay < 1.0:
            raise DataError(
                "a burden needs a finite delta, per_dose ≥ 0 and a decay in [0, 1), got "
                f"{self.delta}, {self.per_dose} and {self.decay}"
            )

    def threshold(self, dose: float) -> float:
        """δ at a dose."""
        return self.delta + self.per_dose * dose  # method (61)

"""Whether what is left unexplained is alike in neighbouring rows, as a sensor's is (method (79)).

A user's first rows hardly tell. Where it is so for the pilot users, it is taken to be so for a new one, until rows say
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerneltrail.kernels import Array
from kerneltrail.store.validate import Malformed, conform

ENOUGH, AUDIBLE = 30, 0.2
"""Rows from which on one user's neighbours are compared by themselves, and the least correlation that counts."""

ERRORS = 3.0
"""Standard errors by which a correlation must be above 0 to be more than chance."""

DIFFERENT = 0.1**2
"""Variance between users of the correlation, at least: few pilot users who agree do not tell that all do."""


def correlation_of(rest: Array) -> float:
    """Correlation of neighbours in a row of numbers; 0 of fewer than three, or where they are all the same."""
    if len(rest) < 3 or not np.ptp(rest) > 0.0:
        return 0.0
    left = rest - rest.mean()
    return float(left[1:] @ left[:-1] / (left @ left))


@dataclass(frozen=True)
class PilotEcho:
    """How alike neighbouring rows are in what is left of the pilot users.

    Attributes:
        mean: of the correlation of neighbours.
        variance: of it between users.
    """

    mean: float
    variance: float

    @classmethod
    def of(cls, rests: Sequence[Array]) -> PilotEcho | None:
        """From what is left of each pilot user's rows; None where chance alone may make as much."""
        rows = np.array([len(rest) for rest in rests if len(rest) >= 3], dtype=np.float64)
        found = np.array([correlation_of(rest) for rest in rests if len(rest) >= 3])
        if not rows.sum() >= ENOUGH:
            return None
        mean = float(rows @ found / rows.sum())
        if mean <= max(AUDIBLE, ERRORS / np.sqrt(rows.sum())):
            return None
        scatter = float(np.mean((found - mean) ** 2 - (1.0 - mean**2) / rows))
        return cls(mean, max(scatter, DIFFERENT))

    @classmethod
    def decoded(cls, stored: Any) -> PilotEcho | None:
        """From a model's file; files of before do not have it."""
        if stored is None:
            return None
        conform(stored, {"mean": float, "variance": float}, "how alike its neighbouring rows are")
        if not (0.0 < stored["mean"] < 1.0 and 0.0 < stored["variance"] < np.inf):
            raise Malformed("how alike its neighbouring rows are is no correlation between 0 and 1")
        return cls(**stored)


def echo_of(rest: Array, pilots: PilotEcho | None = None) -> float:
    """Correlation of what is left of neighbouring rows; 0 where it is too little, or chance alone may make as much.

    Where it is heard in pilot users, a user's own is shrunk to theirs by what is not known of it (method (81)).
    """
    own = correlation_of(rest)
    if pilots is None:
        return own if len(rest) >= ENOUGH and own > max(AUDIBLE, ERRORS / np.sqrt(len(rest))) else 0.0
    known = pilots.variance * len(rest)  # beside the variance 1 - ρ² of a correlation of one row
    shrunk = pilots.mean + known / (known + 1.0 - pilots.mean**2) * (own - pilots.mean)
    return shrunk if shrunk > AUDIBLE else 0.0

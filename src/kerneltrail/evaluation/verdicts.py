"""Who wins: what the interval of a difference says, and at which batches."""

from __future__ import annotations

from collections.abc import Sequence

from kerneltrail.evaluation.result import Difference

VERDICTS = ("wins", "ties", "loses")
LESS_IS_BETTER = ("rmse", "seconds", "cpu_seconds")
"""Metrics of which less is better; of the log density and of being right, more is."""


def verdict(metric: str, low: float, high: float) -> str:
    """``wins``, ``loses`` or ``ties`` of a difference: whether its interval leaves out 0, and on which side.

    >>> verdict("rmse", -0.3, -0.1), verdict("log_density", -0.3, -0.1), verdict("rmse", -0.3, 0.1)
    ('wins', 'loses', 'ties')
    """
    if low <= 0.0 <= high:
        return "ties"
    return "wins" if (high < 0.0) == (metric in LESS_IS_BETTER) else "loses"


def tally(differences: Sequence[Difference], metric: str) -> dict[str, dict[str, tuple[int, ...]]]:
    """For each method compared with, the batches seen at which the first one wins, ties and loses."""
    by_method: dict[str, dict[str, tuple[int, ...]]] = {}
    for row in differences:
        if row.metric == metric:
            at = by_method.setdefault(row.second, dict.fromkeys(VERDICTS, ()))
            at[verdict(metric, row.low, row.high)] += (row.t,)
    return by_method

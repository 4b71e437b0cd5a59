"""What a simulated trial came to, in numbers: what people got, what was spent, and whether the effect was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from kerneltrail.errors import DataError
from kerneltrail.trial.allocation import Limits
from kerneltrail.trial.analysis.wcls import wcls
from kerneltrail.trial.sections import OutcomeSection
from kerneltrail.trial.simulator.run import Record

DECILES = 10
"""Classes of the probability in which the realised share is counted."""


def measured(
    record: Record,
    limits: Limits,
    reward: OutcomeSection,
    *,
    a_day: int,
    undelivered: float,
    sums: bool,
    randomised: bool,
) -> dict[str, Any]:
    """All that is kept of one simulated trial, as plain values.

    `regret` is, on average over decisions at which somebody could act, what the best probability within the limits
    would have gained at the next outcome, given the truth. `truth` is what being assigned adds on average, which is the
    estimand of `wcls`: an effect that reaches the participant only where the prompt is delivered.

    Args:
        record: what happened.
        limits: of the probability.
        reward: which outcomes are better.
        a_day: decision points of a participant's day.
        undelivered: share of prompts that do not arrive.
        sums: whether a participant's outcomes are added up, instead of averaged.
        randomised: whether probabilities lie within the limits, so that effects can be estimated.
    """
    there = ~np.isnan(record.action)
    could = there & (record.available > 0)
    each = np.nansum(record.outcome, axis=1) if sums else np.nanmean(record.outcome, axis=1)
    effect, chance = record.effect[could], record.probability[could]
    benefit = reward.sign * effect
    best = np.where(benefit > 0.0, limits.upper, limits.lower)
    by_policy = could & (record.rung == "policy")
    took = record.milliseconds[~np.isnan(record.milliseconds)]
    days = float(there.sum()) / a_day
    return {
        "mean": float(each.mean()),
        f"p{reward.worst.percent}": reward.worst.of(each),
        "regret": float(((best - chance) * benefit).mean()) * (1.0 - undelivered) if len(effect) else 0.0,
        "at_limit": float((record.bound[by_policy] != "none").mean()) if by_policy.any() else 0.0,
        "doses": float(np.nansum(record.delivered)) / max(days, 1e-9),
        "probability": float(chance.mean()) if len(chance) else 0.0,
        "fallback": float((record.rung[could] != "policy").mean()) if could.any() else 0.0,
        "median_ms": float(np.median(took)) if len(took) else 0.0,
        "p95_ms": float(np.quantile(took, 0.95)) if len(took) else 0.0,
        "truth": float(effect.mean()) * (1.0 - undelivered) if len(effect) else 0.0,
        "wcls": _estimated(record) if randomised else None,
        "deciles": _deciles(chance, record.action[could]),
        "counts": dict(sorted(record.counts.items())),
        "facts": {key: value for key, value in record.facts.items() if key != "mrt"},
    }


def _estimated(record: Record) -> dict[str, float] | None:
    """The marginal excursion effect with its error; None where there is nothing to compare."""
    try:
        found = wcls(record.rows())
    except DataError:
        return None
    low, high = (float(end) for end in found.intervals[0])
    return {
        "estimate": float(found.estimates[0]),
        "error": float(found.standard_errors[0]),
        "low": low,
        "high": high,
        "p": float(found.p_values[0]),
    }


def _deciles(chance: Any, action: Any) -> list[list[float]]:
    """For each class of the probability: decisions, the sum of their probabilities, and how often somebody acted."""
    place = np.minimum((np.asarray(chance) * DECILES).astype(int), DECILES - 1)
    return [
        [float((place == k).sum()), float(chance[place == k].sum()), float(action[place == k].sum())]
        for k in range(DECILES)
    ]

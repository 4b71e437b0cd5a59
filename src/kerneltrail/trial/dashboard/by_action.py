"""Outcomes by action, for those who may see them: plain means, and the difference that randomisation allows.

Messages are likelier in some contexts than in others, so a plain difference compares unlike moments. Each outcome is
therefore weighted with the inverse of the probability of what was assigned, participant by participant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kerneltrail.evaluation.intervals import mean_over_users
from kerneltrail.kernels.phrases import counted, rounded, with_unit
from kerneltrail.report.model_page.numbers import digits
from kerneltrail.report.page import Paragraph, Section, Table
from kerneltrail.trial.decided import Point

FEWEST = 2
"""Outcomes after each action that a participant needs to be counted."""


def weighted_mean(points: Sequence[Point], action: int) -> float | None:
    """The mean outcome after an action, weighted with the inverse of its probability; None after too few."""
    chosen = [each for each in points if each.action == action]
    if len(chosen) < FEWEST:
        return None
    chance = np.array([each.probability if action else 1.0 - each.probability for each in chosen])
    return float(np.average([each.outcome for each in chosen], weights=1.0 / chance))


def difference(points: Sequence[Point]) -> float | None:
    """What acting added for one participant; None where it cannot be told."""
    acting, without = weighted_mean(points, 1), weighted_mean(points, 0)
    return None if acting is None or without is None else acting - without


def by_action_section(everybody: Sequence[Sequence[Point]], outcome: str, unit: str) -> Section:
    """Outcomes by action over all participants."""
    heading = "Outcome by action"
    known = [[each for each in points if each.available and each.outcome is not None] for points in everybody]
    every = [each for points in known for each in points]
    rows = []
    for action, words in ((1, "sent"), (0, "not sent")):
        values = [each.outcome for each in every if each.action == action and each.outcome is not None]
        weighted = [mean for points in known if (mean := weighted_mean(points, action)) is not None]
        rows.append(
            (
                words,
                f"{len(values):,}",
                digits(float(np.mean(values))) if values else "–",
                digits(float(np.mean(weighted))) if weighted else "–",
            )
        )
    columns = ("assigned", "outcomes", "plain mean", "weighted mean over participants")
    table = Table(f"{outcome}{f', in {unit}' if unit else ''}, by what was assigned", columns, rows)
    gains = [gain for points in known if (gain := difference(points)) is not None]
    if len(gains) < 2:
        return Section(heading, [table, Paragraph("Too few outcomes to say what acting adds.")], "by-action")
    found = mean_over_users(gains, level=0.95)
    width = found.high - found.low
    words = (
        f"Over {counted(len(gains), 'participant')} with at least {FEWEST} outcomes after each, {outcome} where a "
        f"message was assigned less that where none was is {with_unit(rounded(found.mean, width), unit)} (95 % "
        f"interval {rounded(found.low, width)} to {rounded(found.high, width)}, Student's t over participants), each "
        "outcome weighted with the inverse of the probability of what was assigned. It is an interim look, not the "
        "analysis."
    )
    return Section(heading, [Paragraph(words), table], "by-action")

"""People who brush their teeth twice a day, or not: seconds that are often 0, and else a count.

In the spirit of the simulations by which Oralytics was planned, not a copy: the numbers are ours. Whether somebody
brushes at all is a logistic regression, for how long is a count around a mean; both depend on the time of the day, on
how they brushed of late, and on the prompt, whose effect wears off as prompts accumulate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from kerneltrail.kernels import Array
from kerneltrail.trial.simulator.people.participant import POPULATIONS, Participant, Population, Potential

LONGEST = 180.0
"""Seconds that count at most."""
FADE = 13.0 / 14.0
"""What is left of brushing and of prompts at the next decision point: a week is the memory."""


class Brusher(Participant):
    """One person: coefficients of their own, and two running means that what happens changes."""

    def __init__(self, effect: float | None, hours: Array) -> None:
        super().__init__(Brushing.covariates, (0.0, 0.0, 0.0), (1.0, LONGEST, 1.0), hours)
        self.effect = effect

    def _begin(self, rng: np.random.Generator) -> None:
        # Whether they brush: constant, evening, brushing of late per minute, prompt, prompt × prompts of late.
        self._whether = np.array([0.6, 0.3, 0.5, 0.6, -0.9]) + np.array([0.6, 0.3, 0.2, 0.4, 0.2]) * rng.normal(size=5)
        # For how long: the same, on the logarithm of seconds.
        self._length = np.array([4.4, 0.1, 0.1, 0.08, -0.1]) + np.array([0.3, 0.1, 0.05, 0.08, 0.05]) * rng.normal(
            size=5
        )
        self._chance = rng.random(self.points)
        self._count = rng.standard_normal(self.points)
        self._recent, self._prompts = 60.0, 0.0

    def _context(self, point: int) -> Array:
        return np.array([float(self.hours[point] >= 15.0), self._recent, self._prompts])

    def _potential(self, point: int) -> Potential:
        evening = float(self.hours[point] >= 15.0)
        outcomes, means = [], []
        for action in (0.0, 1.0):
            row = np.array([1.0, evening, self._recent / 60.0, action, action * self._prompts])
            if self.effect is not None:
                row[3:] = 0.0
            brushes = float(scipy.special.expit(self._whether @ row))
            mean = float(np.exp(np.clip(self._length @ row, 0.0, 6.0)))
            seconds = np.clip(np.round(mean + np.sqrt(mean) * self._count[point]), 0.0, LONGEST)
            outcomes.append(float(seconds) if self._chance[point] < brushes else 0.0)
            means.append(brushes * min(mean, LONGEST))
        if self.effect is not None:
            return Potential(outcomes[0], outcomes[0] + self.effect, self.effect)
        return Potential(outcomes[0], outcomes[1], means[1] - means[0])

    def _follow(self, action: int, outcome: float) -> None:
        self._recent = FADE * self._recent + (1.0 - FADE) * float(np.clip(outcome, 0.0, LONGEST))
        self._prompts = FADE * self._prompts + (1.0 - FADE) * action


@POPULATIONS.named("brushing")
@dataclass(frozen=True)
class Brushing(Population):
    """People who brush their teeth for some seconds, or not at all; prompts wear off."""

    name: ClassVar[str] = "brushing"
    covariates: ClassVar[tuple[str, ...]] = ("evening", "brushing_before", "prompts_before")
    features: ClassVar[tuple[str, ...]] = ("evening", "prompts_before")
    outcome: ClassVar[str] = "brushing"
    units: ClassVar[dict[str, str]] = {"brushing": "seconds", "brushing_before": "seconds"}
    pool: ClassVar[str] = "LIN[evening] + LIN[brushing_before] + SE[brushing_before]"
    times: ClassVar[tuple[str, ...]] = ("08:00", "21:00")

    def participant(self, hours: Array, slots: int) -> Brusher:
        """Somebody who may brush at these hours."""
        return Brusher(self.effect, hours)

"""People in the manner of HeartSteps: five decision points a day, and log step counts in the half hour after each.

The baseline is that of `data.simulate.mhealth`: half of the people follow the clock, the others the weather. What a
prompt adds differs between people and with what they did just before, in size and in sign, so there is something to
learn of each. The numbers were set before any policy was tried on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.data.simulate import mobile_health
from kerneltrail.data.simulate.truth import draw_target
from kerneltrail.kernels import Array
from kerneltrail.trial.simulator.people.participant import (
    AVAILABLE,
    POPULATIONS,
    Population,
    ScriptedParticipant,
    assumed_availability,
    checked_share,
)

BASE = 3.0
"""Log steps that everybody's function varies around."""
MIDDLE = 2.5
"""Log steps of the half hour before, at which the mean effect is stated."""


class Walker(ScriptedParticipant):
    """One person: a function of hour, weather and steps before, and an effect of prompts of their own."""

    def __init__(self, population: HeartSteps, hours: Array, slots: int) -> None:
        super().__init__(HeartSteps.covariates, (0.0, -1.0, -60.0), (24.0, 12.0, 70.0), hours)
        self.population, self.slots = population, slots

    def _begin(self, rng: np.random.Generator) -> None:
        population, rows, days = self.population, self.points, -(-self.points // self.slots)
        kernel = mobile_health.TRUE_KERNELS[int(rng.integers(2))].draw(rng)
        hour = np.clip(self.hours + rng.uniform(-0.5, 0.5, rows), 0.0, 24.0)
        warm = mobile_health.temperature(np.resize(hour, days * self.slots), days, rng, self.slots)[:rows]
        self._rows = np.column_stack([hour, mobile_health.steps_before(rows, rng), warm])
        self._could = rng.random(rows) < population.available
        main, slope = rng.standard_normal(2)
        self._without = BASE + draw_target(kernel, self._rows, HeartSteps.covariates, rng)
        steps = self._rows[:, 1] - MIDDLE
        here = population.main + population.main_sd * main
        effects = here + (population.slope + population.slope_sd * slope) * steps
        self._effects = effects if population.effect is None else np.full(rows, population.effect)


@POPULATIONS.named("heartsteps")
@dataclass(frozen=True)
class HeartSteps(Population):
    """People who walk more after some prompts, and less after others.

    Attributes:
        main, main_sd: what a prompt adds to log steps, on average over people, and how much people differ.
        slope, slope_sd: how that changes with the log steps of the half hour before.
        available: share of decision points at which somebody can act.
    """

    main: float = 0.15
    main_sd: float = 0.35
    slope: float = -0.1
    slope_sd: float = 0.08
    available: float = AVAILABLE

    name: ClassVar[str] = "heartsteps"
    covariates: ClassVar[tuple[str, ...]] = mobile_health.COVARIATES
    features: ClassVar[tuple[str, ...]] = ("log_steps30pre",)
    outcome: ClassVar[str] = "log_steps30"
    units: ClassVar[dict[str, str]] = mobile_health.UNITS
    pool: ClassVar[str] = "LIN[log_steps30pre] + SE[hour] + SE[temperature]"
    times: ClassVar[tuple[str, ...]] = ("08:30", "12:30", "15:30", "18:30", "21:00")

    def __post_init__(self) -> None:
        checked_share(self.name, self.available)

    @property
    def availability(self) -> str:
        """A share, which is assumed."""
        return assumed_availability(self.name, self.available)

    def participant(self, hours: Array, slots: int) -> Walker:
        """Somebody who may walk at these hours."""
        return Walker(self, hours, slots)

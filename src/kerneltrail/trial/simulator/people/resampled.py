"""People made from the pilot users' own rows: a baseline fitted to each, residuals drawn again, an effect imposed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.simulator.people.contexts import follows_clock
from kerneltrail.trial.simulator.people.participant import POPULATIONS, Population, ScriptedParticipant

NEAR = 1.5
"""Hours of the clock within which a pilot user's row is like a decision point."""


@dataclass(frozen=True)
class Fitted:
    """A pilot user's rows as the model explains them, all in data units.

    Attributes:
        rows: covariates, (n, d).
        baseline: expected outcome without acting, (n,).
        residuals: what the fit leaves over, (n,).
        effects: what acting is expected to add, (n,).
        available: whether somebody could act, (n,).
    """

    rows: Array
    baseline: Array
    residuals: Array
    effects: Array
    available: Array


def fitted(model: LearntGraph, user: User) -> Fitted:
    """Follow a pilot user on the model through all rows, and take the outcomes apart."""
    followed = NewUser.start(model, user.name)
    zeros, ones = np.zeros(user.rows), np.ones(user.rows)
    known = Assignment(
        zeros if user.action is None else user.action,
        user.probability,
        ones if user.availability is None else user.availability,
    )
    followed.update(user.X, user.y, action=known)
    baseline = followed.predict(user.X, action=Assignment(zeros, zeros, zeros)).mean
    residuals = user.y - followed.predict(user.X, action=known).mean
    available = ones if user.availability is None else user.availability
    return Fitted(user.X, baseline, residuals - residuals.mean(), followed.advantage(user.X).mean, available)


class ResampledParticipant(ScriptedParticipant):
    """Somebody who lives through rows of one pilot user, in another order and with other residuals."""

    def __init__(self, population: Resampled, model: LearntGraph, hours: Array) -> None:
        count = len(model.covariates)
        super().__init__(model.covariates, [-np.inf] * count, [np.inf] * count, hours)
        self.population, self.model = population, model

    def _begin(self, rng: np.random.Generator) -> None:
        everybody = self.population.everybody
        person = everybody[int(rng.integers(len(everybody)))]
        hour = next((i for i, name in enumerate(self.covariates) if follows_clock(self.model.schema, name)), None)
        chosen = np.empty(self.points, dtype=np.int64)
        for point, clock in enumerate(self.hours):
            alike = np.arange(len(person.rows))
            if hour is not None:
                close = np.flatnonzero(np.abs(person.rows[:, hour] - clock) <= NEAR)
                alike = close if len(close) else alike
            chosen[point] = alike[int(rng.integers(len(alike)))]
        effect = self.population.effect
        self._rows = person.rows[chosen]
        self._without = person.baseline[chosen] + rng.choice(person.residuals, self.points)
        self._effects = person.effects[chosen] if effect is None else np.full(self.points, effect)
        self._could = person.available[chosen] > 0.0


@POPULATIONS.named("pilot")
@dataclass(frozen=True)
class Resampled(Population):
    """People made from the pilot users' rows."""

    name: ClassVar[str] = "pilot"

    @cached_property
    def everybody(self) -> tuple[Fitted, ...]:
        """The pilot users as the model explains them; computed once."""
        model, pilot = self.source.model, self.source.pilot
        if model is None or pilot is None:
            raise DataError("participants of the kind pilot need the pilot users' rows: name their table with --pilot")
        return tuple(fitted(model, user) for user in pilot.raw if user.rows)

    @property
    def availability(self) -> str:
        """As the pilot users'."""
        return "Somebody can act at a decision point if it was so in the pilot user's row that is drawn for it."

    def participant(self, hours: Array, slots: int) -> ResampledParticipant:
        """Somebody like one of the pilot users."""
        if self.source.model is None:
            raise DataError("participants of the kind pilot need the protocol's model")
        return ResampledParticipant(self, self.source.model, hours)

"""StepCountJITAI: the published game in which prompts wear off and wrong ones drive people away.

A context c is 0 or 1 with even odds, and only guessed: x = c + σz is seen. Every prompt makes people more used to
prompts (habituation h), a wrong one makes them lose interest (disengagement d), and who loses all interest leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.trial.simulator.people.participant import POPULATIONS, Participant, Population, Potential

LEAST, GENERIC, TAILORED = 0.1, 50.0, 200.0
"""Steps without a prompt; what a generic prompt adds to somebody who is used to none, and what the right one adds."""
USED, FORGOTTEN = 0.05, 0.9
"""By how much a prompt makes habituation grow, and what is left of it when none comes."""
BORED, PLEASED = 0.4, 0.9
"""By how much a wrong prompt makes disengagement grow, and what is left of it after a right or a generic one."""
START, GONE, LENGTH = 0.1, 0.99, 50
"""Both at the start, the disengagement at which people leave, and decision points in all."""


def belief(x: float, sigma: float) -> float:
    """The probability that c = 1, given what was seen."""
    if sigma <= 0.0:
        return float(x > 0.5)
    return float(1.0 / (1.0 + np.exp(-np.clip((x - 0.5) / sigma**2, -500.0, 500.0))))


def contexts(points: int, sigma: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array]:
    """The contexts of a game and what is believed of them, P(c = 1).

    As in the published code, the first context is 0 and nothing is seen of it; who guesses 0
    on even odds guesses right.
    """
    drawn = rng.integers(0, 2, points)
    seen = drawn + sigma * rng.standard_normal(points)
    beliefs = np.array([belief(float(x), sigma) for x in seen])
    drawn[0], beliefs[0] = 0, 0.5
    return drawn, beliefs


@dataclass
class Wear:
    """How used somebody is to prompts, and how far they have lost interest."""

    habituation: float = START
    disengagement: float = START

    def after(self, action: int, context: int) -> Wear:
        """One decision point later: 0 is nothing, 1 a generic prompt, 2 and 3 those made for context 0 and 1."""
        h = FORGOTTEN * self.habituation if action == 0 else min(1.0, self.habituation + USED)
        d = self.disengagement
        if action:
            d = PLEASED * d if action in (1, 2 + context) else min(1.0, d + BORED)
        return Wear(h, d)

    @property
    def gone(self) -> bool:
        """Whether they leave."""
        return self.disengagement >= GONE

    def steps(self, action: int, context: int) -> float:
        """Steps after an action, for somebody who is worn as this says."""
        worth = {0: 0.0, 1: GENERIC, 2 + context: TAILORED}.get(action, 0.0)
        return LEAST + (1.0 - self.habituation) * worth


class StepCountGame(gymnasium.Env[Array, int]):
    """The game with its four actions, as it was published; the observation is (P(c = 1), h, d)."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, sigma: float = 0.4) -> None:
        self.sigma = float(sigma)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(4)
        self.render_mode = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a game."""
        super().reset(seed=seed)
        self._contexts, self._beliefs = contexts(LENGTH + 1, self.sigma, self.np_random)
        self._wear, self._time = Wear(), 0
        return self._observed(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Send something, or nothing."""
        context = int(self._contexts[self._time])
        self._wear = self._wear.after(int(action), context)
        steps = self._wear.steps(int(action), context)
        self._time += 1
        return self._observed(), steps, self._wear.gone, self._time >= LENGTH, {}

    def _observed(self) -> Array:
        return np.array([self._beliefs[self._time], self._wear.habituation, self._wear.disengagement])


class StepCountParticipant(Participant):
    """The same game with two actions: nothing, or the prompt that is made for the likelier context."""

    def __init__(self, sigma: float, noise: float, effect: float | None, hours: Array) -> None:
        super().__init__(StepCount.covariates, (0.5, 0.0, 0.0), (1.0, 1.0, 1.0), hours)
        self.sigma, self.noise, self.effect = float(sigma), float(noise), effect

    def _begin(self, rng: np.random.Generator) -> None:
        self._contexts, self._beliefs = contexts(self.points, self.sigma, rng)
        self._more = self.noise * rng.standard_normal(self.points)
        self._wear = Wear()

    def _sent(self, point: int) -> int:
        """The prompt that would be sent."""
        return 3 if self._beliefs[point] > 0.5 else 2

    def _context(self, point: int) -> Array:
        guess = self._beliefs[point]
        return np.array([max(guess, 1.0 - guess), self._wear.habituation, self._wear.disengagement])

    def _potential(self, point: int) -> Potential:
        context, message = int(self._contexts[point]), self._sent(point)
        more = float(self._more[point])
        without = self._wear.after(0, context).steps(0, context) + more
        if self.effect is not None:
            return Potential(without, without + self.effect, self.effect)
        after = self._wear.after(message, context)
        # The first context is 0 and guessed rightly, though nothing is seen of it.
        certainty = self._context(point)[0] if point else 1.0
        expected = certainty * (1.0 - after.habituation) * TAILORED
        return Potential(without, after.steps(message, context) + more, float(expected))

    def _follow(self, action: int, outcome: float) -> None:
        self._wear = self._wear.after(self._sent(self.point) if action else 0, int(self._contexts[self.point]))

    def _left(self) -> bool:
        return self._wear.gone


@POPULATIONS.named("stepcount")
@dataclass(frozen=True)
class StepCount(Population):
    """StepCountJITAI with two actions, by its published formulas.

    The game has four actions. Here, to send is to send the prompt for the likelier context: a micro-randomised trial
    decides whether to send, and what to send is settled beforehand.

    Attributes:
        sigma: how badly the context is known; 0 for exactly.
        noise: standard deviation of steps that come by chance; 0 as published.
    """

    sigma: float = 0.4
    noise: float = 0.0

    name: ClassVar[str] = "stepcount"
    covariates: ClassVar[tuple[str, ...]] = ("certainty", "habituation", "disengagement")
    features: ClassVar[tuple[str, ...]] = ("certainty", "habituation")
    outcome: ClassVar[str] = "steps"
    pool: ClassVar[str] = "LIN[certainty] + LIN[habituation] + SE[habituation]"
    sums: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if min(self.sigma, self.noise) < 0.0:
            raise DataError(f"sigma and noise of stepcount must not be below 0, got {self.sigma} and {self.noise}")

    def participant(self, hours: Array, slots: int) -> StepCountParticipant:
        """Somebody who plays the game for as many points as there are."""
        return StepCountParticipant(self.sigma, self.noise, self.effect, hours)

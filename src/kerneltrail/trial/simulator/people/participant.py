"""A simulated participant: an environment of Gymnasium, whose reward is the outcome after a decision.

All that chance brings is drawn at `reset`, for every decision point at once. So two policies that meet the same
participant meet the same weather, the same mood and the same noise, and can be compared in pairs: what differs between
them comes from what they did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Cohort
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import nearest
from kerneltrail.registry import Registry, subclass_of
from kerneltrail.trajectory.graph import LearntGraph

AVAILABLE = 0.8
"""Share of decision points at which a participant is available, where nobody says otherwise."""


@dataclass(frozen=True)
class Potential:
    """What would come of a decision point: the outcome without acting, and with it.

    Attributes:
        without: the outcome if nobody acts.
        acted: the outcome if somebody does.
        effect: what acting adds on average, given all that went before.
    """

    without: float
    acted: float
    effect: float

    def outcome(self, action: int) -> float:
        """The outcome under an action."""
        return self.acted if action else self.without


class Participant(gymnasium.Env[Array, int], ABC):
    """Somebody who meets decision points one after the other; the observation is the context of the next one.

    A subclass says what is drawn (`_begin`), which context a point has (`_context`), what would come of it
    (`_potential`), and what an action leaves behind (`_follow`). `info` has `available`, `without`, `acted` and
    `effect` of the next point: an oracle may look, a policy may not.

    Args:
        covariates: names of the observation's numbers.
        low, high: between which they lie.
        hours: the clock's hour at each decision point, which is as many as there are.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, covariates: Sequence[str], low: Sequence[float], high: Sequence[float], hours: Array) -> None:
        self.covariates = tuple(covariates)
        self.hours = np.asarray(hours, dtype=np.float64)
        bounds = (np.array(each, dtype=np.float64) for each in (low, high))
        self.observation_space = gymnasium.spaces.Box(*bounds, dtype=np.float64)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.render_mode = None
        self.point = 0
        self._drawn = False

    @property
    def points(self) -> int:
        """Decision points in all."""
        return len(self.hours)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin anew, with all that chance brings drawn from a seed."""
        super().reset(seed=seed)
        self.point, self._drawn = 0, True
        self._begin(self.np_random)
        return self.context, self._info()

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Live through one decision point: the next context, the outcome, whether they left, whether it is over."""
        if not self._drawn or self.point >= self.points:
            raise DataError("a participant is at no decision point: call reset first")
        taken = int(action) if self.available else 0
        outcome = self.potential.outcome(taken)
        self._follow(taken, outcome)
        self.point += 1
        over = self.point >= self.points
        return self.context, float(outcome), bool(self._left()), over, self._info()

    @property
    def context(self) -> Array:
        """The covariates at the point at hand; after the last one, those of the last."""
        row = np.asarray(self._context(min(self.point, self.points - 1)), dtype=np.float64)
        return np.clip(row, self.observation_space.low, self.observation_space.high)

    @property
    def available(self) -> bool:
        """Whether somebody can act at the point at hand."""
        return self._available(min(self.point, self.points - 1))

    @property
    def potential(self) -> Potential:
        """What would come of the point at hand."""
        return self._potential(min(self.point, self.points - 1))

    def _info(self) -> dict[str, Any]:
        potential = self.potential
        return {
            "available": self.available,
            "without": potential.without,
            "acted": potential.acted,
            "effect": potential.effect,
        }

    @abstractmethod
    def _begin(self, rng: np.random.Generator) -> None:
        """Draw all that chance will bring."""

    @abstractmethod
    def _context(self, point: int) -> Sequence[float] | Array:
        """The covariates at a point."""

    @abstractmethod
    def _potential(self, point: int) -> Potential:
        """What would come of a point, as things stand now."""

    def _available(self, point: int) -> bool:
        return True

    def _follow(self, action: int, outcome: float) -> None:
        """Be changed by what was done and what came of it."""

    def _left(self) -> bool:
        return False


class ScriptedParticipant(Participant):
    """Somebody whose contexts, availability and outcomes are drawn beforehand and do not depend on what was done.

    `_begin` sets them, for all decision points: rows of covariates, whether somebody could act, the outcome without
    acting, and what acting adds.
    """

    _rows: Array
    _could: NDArray[np.bool_]
    _without: Array
    _effects: Array

    def _context(self, point: int) -> Array:
        return self._rows[point]

    def _available(self, point: int) -> bool:
        return bool(self._could[point])

    def _potential(self, point: int) -> Potential:
        without, effect = float(self._without[point]), float(self._effects[point])
        return Potential(without, without + effect, effect)


@dataclass(frozen=True)
class Source:
    """What participants may be made from: the trial's model, and its pilot users' rows if they are at hand."""

    model: LearntGraph | None = None
    pilot: Cohort | None = None


@dataclass(frozen=True)
class Population(ABC):
    """A kind of participants. The parameters of a subclass are those that people may write behind its name.

    Attributes:
        effect: what acting adds, the same for everybody and always; None for what the population has of itself.
        source: what it is made from, where it is made from something.
    """

    effect: float | None = None
    source: Source = field(default=Source(), repr=False, compare=False)

    name: ClassVar[str]
    covariates: ClassVar[tuple[str, ...]] = ()
    features: ClassVar[tuple[str, ...]] = ()
    outcome: ClassVar[str] = "outcome"
    units: ClassVar[Mapping[str, str]] = {}
    pool: ClassVar[str] = ""
    times: ClassVar[tuple[str, ...]] = ("09:00", "12:00", "15:00", "18:00", "21:00")
    sums: ClassVar[bool] = False

    @property
    def availability(self) -> str:
        """When its participants are available, in a sentence for people."""
        return "Somebody can act at every decision point."

    @abstractmethod
    def participant(self, hours: Array, slots: int) -> Participant:
        """A participant with decision points at these hours of the clock, so many a day; draw them with `reset`."""

    @classmethod
    def of(cls, source: Source, effect: float | None, **parameters: float) -> Self:
        """The population with parameters by name.

        Raises:
            DataError: for a parameter that it does not have.
        """
        known = [each.name for each in fields(cls) if each.name not in ("effect", "source")]
        for name in parameters:
            if name not in known:
                hint = nearest(name, known, "known are") if known else "it has none"
                raise DataError(f"participants of the kind {cls.name} have no parameter {name!r}; {hint}")
        return cls(effect=effect, source=source, **parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters by name, the effect among them."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "source"}

    def drawn(self, hours: Array, slots: int, *seed: int) -> Participant:
        """A participant who has been drawn, from numbers that name them."""
        person = self.participant(hours, slots)
        person.reset(seed=int(np.random.SeedSequence(seed).generate_state(1, np.uint32)[0]))
        return person


def assumed_availability(kind: str, share: float) -> str:
    """That a share of decision points at which somebody can act is an assumption, and how to make another one."""
    return (
        f"Somebody can act at {100 * share:.3g} % of the decision points, drawn by chance. That is an assumption: "
        f"--people {kind}:available=0.9 makes another one."
    )


def checked_share(kind: str, share: float) -> None:
    """Refuse a share of available decision points that is none.

    Raises:
        DataError: if it is not above 0 and at most 1.
    """
    if not 0.0 < share <= 1.0:
        raise DataError(
            f"available is a share of the decision points, above 0 and up to 1, got {share:g}: write for example "
            f"--people {kind}:available=0.9"
        )


POPULATIONS: Registry[type[Population]] = Registry("kind of people", DataError, subclass_of(Population))
"""Kinds of participants by name."""


def population_of(text: str, source: Source | None = None, effect: float | None = None) -> Population:
    """The population of a text such as ``stepcount:sigma=0.4``.

    >>> from kerneltrail.trial.simulator.people import population_of
    >>> population_of("stepcount:sigma=0.4").parameters
    {'effect': None, 'sigma': 0.4, 'noise': 0.0}
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        try:
            parameters[key.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise DataError(f"people are written as NAME:parameter=number,…; {part!r} is no such parameter")
    return POPULATIONS[name].of(source or Source(), effect, **parameters)

"""What every move is: one class in one file, registered once; sweeps of moves; the working copy of a state they share.

A move is a pure function of a generator and a state. Its class says which options it has and what a fit's candidates
mean to it, so that neither the sweep, nor the settings, nor the chains know which moves there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.kernels import Pool
from kerneltrail.registry import Registry, subclass_of
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.proposals import Toggle
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Shift


class MoveInfo(NamedTuple):
    """What happened in one pass.

    Attributes:
        proposed: number of proposals.
        accepted: how many of them were accepted; all of them for a Gibbs step.
        changed: how many of them changed the state.
    """

    proposed: int
    accepted: int
    changed: int

    def plus(self, other: MoveInfo) -> MoveInfo:
        """What happened in both."""
        return MoveInfo(*(a + b for a, b in zip(self, other, strict=True)))


class Move(ABC):
    """`move(rng, state) -> (state, info)`: no other effect, no other source of chance.

    A subclass is a frozen dataclass whose fields, after `joint`, are its options.

    Attributes:
        name: what a configuration calls it.
        least: the smallest whole number that an option may be, by option.
        joint: the target.
    """

    name: ClassVar[str]
    least: ClassVar[Mapping[str, int]] = {}
    joint: Joint

    @abstractmethod
    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Make one pass."""

    @cached_property
    def toggle(self) -> Toggle:
        """One product more or less, within the target's pool."""
        return Toggle.of(self.joint.urn.pool)

    @classmethod
    def make(cls, joint: Joint, options: Mapping[str, Any] | None = None) -> Self:
        """The move on a target, with its options checked."""
        return cls(joint, **cls.check(options or {}, joint.urn.pool))  # type: ignore[call-arg]  # a dataclass takes it

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """What can be said of it."""
        return tuple(each.name for each in fields(cls) if each.name != "joint")  # type: ignore[arg-type]

    @classmethod
    def check(cls, options: Mapping[str, Any], pool: Pool) -> dict[str, Any]:
        """Options as the class takes them; what it does not know or cannot use is refused.

        >>> from kerneltrail.trajectory.sampler.moves import MOVES
        >>> MOVES["plate"].check({"steps": 0}, Pool.paper())
        Traceback (most recent call last):
            ...
        kerneltrail.errors.TrajectoryError: option 'steps' of move 'plate' must be at least 1, got 0
        """
        allowed = cls.option_names()
        for option, value in options.items():
            if option not in allowed:
                known = ", ".join(allowed) or "none"
                raise TrajectoryError(f"move {cls.name!r} has no option {option!r}; it has {known}")
            least = cls.least.get(option)
            if least is not None and (not isinstance(value, int) or value < least):
                raise TrajectoryError(f"option {option!r} of move {cls.name!r} must be at least {least}, got {value!r}")
        checked = dict(options)
        if "library" in checked:
            checked["library"] = _checked_library(pool, checked["library"])
        return checked

    @classmethod
    def with_candidates(cls, options: Mapping[str, Any], candidates: tuple[int, ...], *, few: bool) -> dict[str, Any]:
        """Options completed for a fit whose chains are restricted to some candidates; `few` where these are few.

        A move with a library gets the candidates for it unless another is given.
        """
        return {"library": candidates, **options} if "library" in cls.option_names() else dict(options)


MOVES: Registry[type[Move]] = Registry("move", TrajectoryError, subclass_of(Move))
"""What `Settings.moves` may name."""


def _checked_library(pool: Pool, library: Any) -> tuple[int, ...]:
    masks = tuple(dict.fromkeys(int(mask) for mask in library))
    for mask in masks:
        if not 0 <= mask < 1 << len(pool) or (mask == 0 and not pool.allow_empty):
            raise TrajectoryError(f"{mask} in the library is not a composition of the pool")
    return masks


@dataclass(frozen=True)
class Sweep:
    """A sequence of moves on one target; itself a step function.

    A name of `MOVES` may appear more than once. Options are by name, and hold for each of its appearances.

    >>> from kerneltrail.kernels import Pool
    >>> from kerneltrail.trajectory import Sweep, Urn
    >>> class Flat:
    ...     customers = (2, 2)
    ...     def log_evidence(self, user, mask):
    ...         return np.zeros(2)
    >>> joint = Joint(Urn(Pool.paper()), Flat())
    >>> sweep = Sweep(joint, ("path", "plate"), {"plate": {"steps": 3}})
    >>> rng = np.random.default_rng(0)
    >>> state, info = sweep.step(rng, joint.state([(1, 1), (1, 3)]))
    >>> sorted(info)
    ['path', 'plate']
    """

    joint: Joint
    moves: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", tuple(self.moves))
        if not self.moves:
            raise TrajectoryError("a sweep needs at least one move")
        for name in self.options:
            if name not in self.moves:
                raise TrajectoryError(f"options are given for {name!r}, which is not in the sweep {self.moves}")
        _ = self._steps  # names and options are checked now, not at the first step

    @cached_property
    def _steps(self) -> tuple[tuple[str, Move], ...]:
        moves = {name: MOVES[name].make(self.joint, self.options.get(name)) for name in dict.fromkeys(self.moves)}
        return tuple((name, moves[name]) for name in self.moves)

    def on(self, joint: Joint) -> Sweep:
        """The same sweep on another target, say one with updated evidences."""
        return replace(self, joint=joint)

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, dict[str, MoveInfo]]:
        """One sweep: each move once, in order."""
        info: dict[str, MoveInfo] = {}
        for name, move in self._steps:
            state, move_info = move(rng, state)
            info[name] = info[name].plus(move_info) if name in info else move_info
        return state, info


Changes = Mapping[tuple[int, int], int]
"""A new composition by (user, batch)."""


class Workspace:
    """The mutable working copy of a state inside one move: paths as lists, with their counts kept in step."""

    __slots__ = ("counts", "joint", "paths")

    def __init__(self, joint: Joint, state: State) -> None:
        self.joint = joint
        self.paths = [list(path) for path in state.paths]
        self.counts = Counts.of(state.paths)

    def state(self) -> State:
        """The state reached. Its log joint is a function of the paths alone: no drift from adding up differences."""
        paths = tuple(map(tuple, self.paths))
        return State(paths, self.joint.log_joint(paths, self.counts))

    def parent(self, m: int, t: int) -> int:
        """The composition that customer (m, t) comes from: its restaurant."""
        return self.paths[m][t - 1] if t else ROOT

    def weigh(self, changes: Changes) -> tuple[float, Shift]:
        """The difference that changes would make to the log joint and to the counts; nothing is changed yet.

        Transitions into *and out of* the customers change: the next customer moves to another restaurant. Most of a
        block's transitions are the same ones, so they are counted first and weighed once each.
        """
        paths, row = self.paths, self.joint.row
        shift: Shift = {}
        log_evidence = 0.0
        for (m, t), mask in changes.items():
            path = paths[m]
            old = path[t]
            log_evidence += row(m, mask)[t] - row(m, old)[t]
            before = path[t - 1] if t else ROOT
            edge = (before, old)
            shift[edge] = shift.get(edge, 0) - 1
            edge = (changes.get((m, t - 1), before), mask)
            shift[edge] = shift.get(edge, 0) + 1
            if t + 1 < len(path) and (m, t + 1) not in changes:  # else it is counted there
                after = path[t + 1]
                edge = (old, after)
                shift[edge] = shift.get(edge, 0) - 1
                edge = (mask, after)
                shift[edge] = shift.get(edge, 0) + 1
        if log_evidence == -math.inf:
            return log_evidence, shift
        return log_evidence + self.joint.urn.log_shift(self.counts, shift), shift

    def commit(self, changes: Changes, shift: Shift) -> None:
        """Make changes that were weighed."""
        for (m, t), mask in changes.items():
            self.paths[m][t] = mask
        self.counts.shift(shift)

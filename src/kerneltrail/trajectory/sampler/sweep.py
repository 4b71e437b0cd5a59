"""A sweep: a configured sequence of moves on one target, itself a step function; and generators as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.store.validate import plain
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves import EXACT, MOVES, Move, MoveInfo


@dataclass(frozen=True)
class Sweep:
    """A sequence of moves on one target; itself a step function.

    A name of `MOVES` may appear more than once. Options are by name, and hold for each of its appearances.

    >>> from kerneltrail.kernels import Pool
    >>> from kerneltrail.trajectory import Urn
    >>> class Flat:
    ...     customers = (2, 2)
    ...     def log_evidence(self, user, mask):
    ...         return np.zeros(2)
    >>> joint = Joint(Urn(Pool.paper()), Flat())
    >>> sweep = Sweep(joint, ("path", "plate"), {"path": {"fresh": 3}})
    >>> rng = np.random.default_rng(0)
    >>> state, info = sweep.step(rng, joint.state([(1, 1), (1, 3)]))
    >>> sorted(info)
    ['path', 'plate']
    """

    joint: Joint
    moves: tuple[str, ...] = EXACT
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
            state, made = move(rng, state)
            info[name] = info[name].plus(made) if name in info else made
        return state, info


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state as plain numbers and text, for JSON."""
    return dict(plain(rng.bit_generator.state))


def rng_from(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator that `rng_state` was taken of.

    >>> rng = np.random.default_rng(1)
    >>> kept = rng_state(rng)
    >>> rng.random() == rng_from(kept).random()
    True
    """
    name = state.get("bit_generator")
    if name not in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"):
        raise TrajectoryError(f"no random generator is called {name!r}")
    bits = getattr(np.random, name)()
    bits.state = dict(state)
    return np.random.Generator(bits)


def spawn(seed: int, chains: int) -> Sequence[np.random.Generator]:
    """Independent generators, one per chain, from one seed."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]

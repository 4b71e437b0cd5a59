"""Chains: a sweep is a configured sequence of moves; a run yields what happened, and stores and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.moves import EXACT, Move, MoveInfo, make_move
from kerneltrail.trajectory.sampler.state import State


@dataclass(frozen=True)
class Sweep:
    """A sequence of moves on one target; itself a step function.

    A name may appear more than once. Options are by name, and hold for each of its appearances.

    Attributes:
        joint: the target.
        moves: names out of `moves.MOVES`.
        options: keyword arguments by name of move.

    >>> from kerneltrail.kernels import Pool
    >>> from kerneltrail.trajectory import FixedEvidence, Urn
    >>> joint = Joint(Urn(Pool.paper()), FixedEvidence.flat([2, 3]))
    >>> sweep = Sweep(joint, ("path", "plate"), {"path": {"fresh": 3}})
    >>> rng = np.random.default_rng(0)
    >>> state, info = sweep.step(rng, joint.draw_prior(rng))
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
        made = {name: make_move(name, self.joint, self.options.get(name)) for name in dict.fromkeys(self.moves)}
        return tuple((name, made[name]) for name in self.moves)

    def on(self, joint: Joint) -> Sweep:
        """The same sweep on another target, say one with updated evidences."""
        return replace(self, joint=joint)

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, dict[str, MoveInfo]]:
        """One sweep: each move once, in order."""
        info: dict[str, MoveInfo] = {}
        for name, move in self._steps:
            state, made = move(rng, state)
            so_far = info.get(name, MoveInfo(0, 0, 0))
            info[name] = MoveInfo(*(a + b for a, b in zip(so_far, made, strict=True)))
        return state, info


class Record(NamedTuple):
    """One sweep: the state it ended in, and what each move did."""

    sweep: int
    state: State
    info: dict[str, MoveInfo]

    @property
    def log_joint(self) -> float:
        """log of SPEC §4's joint, up to a constant."""
        return self.state.log_joint

    @property
    def nodes(self) -> int:
        """Number of compositions in use."""
        return self.state.nodes

    @property
    def edges(self) -> int:
        """Number of distinct transitions in use."""
        return self.state.edges

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of proposals accepted, by move."""
        return {name: made.accepted / max(made.proposed, 1) for name, made in self.info.items()}


def run(rng: np.random.Generator, sweep: Sweep, state: State, sweeps: int, *, first: int = 0) -> Iterator[Record]:
    """Sweep after sweep, one record each.

    To stop and resume bit for bit, keep `record.state.paths` (and `.tables`, if any) and `rng_state(rng)` of one
    record, and start again with both, and with `first` one more than its number.
    """
    if state.log_joint != sweep.joint.log_joint(state.paths):
        raise TrajectoryError("the state was made for another target: make it anew with joint.state(state.paths)")
    for number in range(first, first + sweeps):
        state, info = sweep.step(rng, state)
        yield Record(number, state, info)


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state as plain numbers and text, for JSON."""
    return dict(_plain(rng.bit_generator.state))


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


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value

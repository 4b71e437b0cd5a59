"""What every move is: a pure function of a generator and a state."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from kerneltrail.trajectory.sampler.state import State


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


class Move(Protocol):
    """`move(rng, state) -> (state, info)`: no other effect, no other source of chance."""

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Make one pass."""
        ...

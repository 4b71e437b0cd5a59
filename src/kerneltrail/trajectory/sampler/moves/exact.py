"""The exact moves (method §6.2): each leaves the joint (method (9)) over the target's candidates unchanged.

They are compiled (`gp.urn_moves`). Here they get their options and their uniform numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail import gp
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo


@dataclass(frozen=True)
class Seat(Move):
    """One customer after the other gets a composition from its conditional given all else (method (21))."""

    name = "seat"

    joint: Joint

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Seat everybody once, user by user, in the order of the batches."""
        codes = state.codes(self.joint.book).astype(np.int64)
        changed = gp.urn_moves.seat_all(self.joint.target, codes, rng.random(len(codes)))
        return self.joint.coded(codes), MoveInfo(len(codes), len(codes), changed)


@dataclass(frozen=True)
class Path(Move):
    """A user's whole path is drawn at once, by forward filtering and backward sampling (method (22)).

    The other users' counts are held fixed. A path that returns to a composition it has left may be rejected.
    """

    name = "path"

    joint: Joint

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Draw every user's path once."""
        before = state.codes(self.joint.book)
        codes, users = before.astype(np.int64), len(self.joint.customers)
        uniforms = rng.random((users, 1 + max(self.joint.customers)))
        accepted = gp.urn_moves.path_all(self.joint.target, codes, uniforms)
        changed = int(np.logical_or.reduceat(codes != before, self.joint.book.starts[:-1]).sum())
        return self.joint.coded(codes), MoveInfo(users, accepted, changed)


@dataclass(frozen=True)
class Plate(Move):
    """All customers of a table get another composition together, one product more or less (method (23)).

    Tables are summed out of the state (method §4.2), so the move brings its own: a block of customers is drawn as a
    table would be, an auxiliary variable with a known probability in both directions.

    Attributes:
        steps: tables per pass; fixed in advance, since a number that depended on the state would bias the chain.
    """

    name = "plate"
    least: ClassVar[Mapping[str, int]] = {"steps": 1}
    runs: ClassVar[bool] = False

    joint: Joint
    steps: int = 8

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Plate `steps` tables."""
        codes = state.codes(self.joint.book).astype(np.int64)
        uniforms = rng.random((self.steps, 4 + len(codes)))
        accepted = gp.urn_moves.plate_all(self.joint.target, codes, uniforms, self.runs)
        return self.joint.coded(codes), MoveInfo(self.steps, accepted, accepted)


@dataclass(frozen=True)
class Run(Plate):
    """`Plate` with blocks made of runs: a customer with those that follow it at the same composition.

    K→k→k→c becomes K→k'→k'→c in one step, which single customers reach only through paths that open two restaurants.
    """

    name = "run"
    runs = True


@dataclass(frozen=True)
class Rename(Move):
    """Two compositions change places everywhere, in all users' paths at once.

    The other moves pass through states in which the users disagree; each such state opens edges that cost several nats.

    Attributes:
        steps: proposals per pass.
    """

    name = "rename"
    least: ClassVar[Mapping[str, int]] = {"steps": 1}

    joint: Joint
    steps: int = 4

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Propose `steps` transpositions."""
        codes = state.codes(self.joint.book).astype(np.int64)
        accepted = gp.urn_moves.rename_all(self.joint.target, codes, rng.random((self.steps, 4)))
        return self.joint.coded(codes), MoveInfo(self.steps, accepted, accepted)

"""Rename: two compositions change places everywhere, in all users' paths at once.

The other moves change a composition customer by customer or table by table, through states in which the users disagree;
each such state opens edges that cost several nats. This one turns "everybody at LIN+PER" into "everybody at LIN+PER+SE"
in one step.

The move is the transposition (k k') applied to all paths: it undoes itself, whether k' is in use or not, so there is
no merge to undo. A composition in use is drawn uniformly (their number does not change) and k' from q, so the Hastings
ratio is q(k'→k)/q(k→k').
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo, Workspace


@dataclass(frozen=True)
class Rename(Move):
    """A fixed number of proposals.

    Attributes:
        steps: proposals per pass.
        library: if given, every second proposal (by a fair coin) is one of these instead of one product more or less.
    """

    name = "rename"
    least: ClassVar[Mapping[str, int]] = {"steps": 1}

    joint: Joint
    steps: int = 4
    library: tuple[int, ...] = ()

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Propose `steps` transpositions."""
        work = Workspace(self.joint, state)
        accepted = sum(self.transpose(rng, work) for _ in range(self.steps))
        return work.state(), MoveInfo(self.steps, accepted, accepted)

    def transpose(self, rng: np.random.Generator, work: Workspace) -> bool:
        """One proposal; whether it was accepted."""
        used = sorted(work.counts.uses)
        old = used[proposals.index(rng, len(used))]
        if self.library and proposals.index(rng, 2):
            new, log_q = self.library[proposals.index(rng, len(self.library))], 0.0
            if old not in self.library:  # the uniform draw would never lead back
                return False
        else:
            new, log_q = self.toggle.propose(rng, old)
        if new == old:
            return False
        other = {old: new, new: old}
        changes = {
            (m, t): other[mask] for m, path in enumerate(work.paths) for t, mask in enumerate(path) if mask in other
        }
        delta, shift = work.weigh(changes)
        if proposals.accept(rng, delta + log_q):
            work.commit(changes, shift)
            return True
        return False

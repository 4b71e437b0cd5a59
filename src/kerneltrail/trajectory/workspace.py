"""The mutable working copy of a state inside one move. Moves are pure: it is made from a state and ends as a state."""

from __future__ import annotations

from collections.abc import Iterable

from kerneltrail.trajectory.joint import Joint
from kerneltrail.trajectory.state import State
from kerneltrail.trajectory.urn import ROOT, Counts

Change = tuple[int, int, int]
"""(user, batch, new composition)."""


class Workspace:
    """Paths as lists, with their counts kept in step."""

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

    def change(self, changes: Iterable[Change]) -> float:
        """Give customers other compositions and return the difference this makes to the log joint.

        Transitions into *and out of* the customers change: the next customer moves to another restaurant. By
        exchangeability, taking all of them out one after the other and putting the new ones in is exact, whatever
        restaurants they share.
        """
        changes = list(changes)
        paths, counts, urn = self.paths, self.counts, self.joint.urn
        touched: dict[tuple[int, int], None] = {}
        for m, t, _ in changes:
            touched[m, t] = None
            if t + 1 < len(paths[m]):
                touched[m, t + 1] = None
        delta = 0.0
        for m, t in touched:
            parent, child = self.parent(m, t), paths[m][t]
            counts.remove(parent, child)
            delta -= urn.log_step(counts, parent, child)
        for m, t, mask in changes:
            delta += self.joint.row(m, mask)[t] - self.joint.row(m, paths[m][t])[t]
            paths[m][t] = mask
        for m, t in touched:
            parent, child = self.parent(m, t), paths[m][t]
            delta += urn.log_step(counts, parent, child)
            counts.add(parent, child)
        return delta

"""The mutable working copy of a state inside one move. Moves are pure: it is made from a state and ends as a state."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.state import State
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Shift

Changes = Mapping[tuple[int, int], int]
"""A new composition by (user, batch)."""


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

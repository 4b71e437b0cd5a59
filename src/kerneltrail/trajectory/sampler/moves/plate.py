"""Plate: all customers of one table get another composition together, by Metropolis–Hastings (method (23)).

Tables are summed out of the state (method §4.2), so the move brings its own: a block B of customers is drawn as a table
would be, an auxiliary variable with a known probability in both directions. A group is the n customers who went K→k;
given the paths, they sit at tables as in a Chinese restaurant with mass a = αH0(k|K). A group is drawn uniformly from
the G there are (so that large ones do not get all the attention), then one of its customers; the table of that
customer is a given B of size b with probability

    P(B | paths) = 1/G · b/n · a Γ(b) Γ(a+n-b) / Γ(a+n).

B is then proposed k' in place of k, and accepted with min(1, r),

    r = p(paths')/p(paths) · P(B | paths')/P(B | paths) · q(k'→k)/q(k→k').

Moving into a composition that others went to already (a merge) is as legal as splitting from it: P(B | paths') counts
the ways back. If nobody's next customer changed restaurant, r would reduce to H0(k')/H0(k) times evidences and
q-ratio, the paper's formula; the factors of the next customers are in p(paths').

A block may also be made of *runs*: a customer with those that follow it at the same composition. K→k→k→c then becomes
K→k'→k'→c in one step, which single customers reach only through paths that open two new restaurants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo, Workspace
from kerneltrail.trajectory.sampler.urn import Shift, Urn

Customer = tuple[int, int]


@dataclass(frozen=True)
class Plate(Move):
    """A fixed number of tables, each drawn anew, each proposed one product more or less.

    Attributes:
        steps: tables per pass; fixed in advance, since a number that depended on the state would bias the chain.
        runs: whether customers bring along those that follow them at the same composition (`Run`).
    """

    name = "plate"
    least: ClassVar[Mapping[str, int]] = {"steps": 1}
    runs: ClassVar[bool] = False

    joint: Joint
    steps: int = 8

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Plate `steps` tables."""
        work = Workspace(self.joint, state)
        heads = _heads(work, runs=self.runs)
        accepted = 0
        for _ in range(self.steps):
            if self.replate(rng, work, heads):
                accepted += 1
                heads = _heads(work, runs=self.runs)
        return work.state(), MoveInfo(self.steps, accepted, accepted)

    def replate(self, rng: np.random.Generator, work: Workspace, heads: Heads | None = None) -> bool:
        """One table; whether it changed."""
        heads = _heads(work, runs=self.runs) if heads is None else heads
        (parent, old), group = heads.groups[proposals.index(rng, len(heads.groups))]
        table = _draw_table(rng, work.joint.urn, group, parent, old)
        new, log_q = self.toggle.propose(rng, old)
        if new == old:
            return False
        changes = {(m, s): new for m, t in table for s in range(t, heads.ends[m, t])}
        if self._no_way_back(work, table, heads, parent, new):
            return False
        delta, shift = work.weigh(changes)
        size_after = work.counts.of_edge(parent, new) + shift.get((parent, new), 0)
        groups_after = len(heads.groups) + self._new_groups(work, shift)
        urn, b = work.joint.urn, len(table)
        log_forth = log_table(urn, parent, old, b, len(group)) - math.log(len(heads.groups))
        log_back = log_table(urn, parent, new, b, size_after) - math.log(groups_after)
        if proposals.accept(rng, delta + log_back - log_forth + log_q):
            work.commit(changes, shift)
            return True
        return False

    def _new_groups(self, work: Workspace, shift: Shift) -> int:
        """By how much the number of groups changes. For runs, self transitions make no group."""
        change = 0
        for (parent, child), by in shift.items():
            if by and not (self.runs and parent == child):
                n = work.counts.of_edge(parent, child)
                change += (n + by > 0) - (n > 0)
        return change

    def _no_way_back(self, work: Workspace, table: list[Customer], heads: Heads, parent: int, new: int) -> bool:
        """Whether B would be no table any more, so that it could not be drawn to come back.

        That is where one customer of B follows another, both having gone K→K: its restaurant becomes k'. And, for
        runs, where a run would grow together with the one before or after it.
        """
        if not self.runs:
            members = set(table)
            return any((m, t - 1) in members for m, t in table)
        ends = ((work.paths[m], heads.ends[m, t]) for m, t in table)
        return parent == new or any(end < len(path) and path[end] == new for path, end in ends)


@dataclass(frozen=True)
class Run(Plate):
    """`Plate` with blocks made of runs: a customer with those that follow it at the same composition."""

    name = "run"
    runs = True


@dataclass(frozen=True)
class Heads:
    """The customers that head a block: all of them, or those that begin a run; grouped by transition."""

    groups: list[tuple[tuple[int, int], list[Customer]]]
    ends: dict[Customer, int]  # one past the last customer of the block


def _heads(work: Workspace, *, runs: bool) -> Heads:
    head: Customer = (0, 0)
    groups: dict[tuple[int, int], list[Customer]] = {}
    ends: dict[Customer, int] = {}
    for m, path in enumerate(work.paths):
        for t, mask in enumerate(path):
            parent = work.parent(m, t)
            if runs and mask == parent:
                ends[head] = t + 1
                continue
            head = (m, t)
            groups.setdefault((parent, mask), []).append(head)
            ends[head] = t + 1
    return Heads(list(groups.items()), ends)


def log_table(urn: Urn, parent: int, mask: int, b: int, n: int) -> float:
    """log 1/n · a Γ(a+n-b)/Γ(a+n): that the table of one customer of n is a given one of b, without bΓ(b)."""
    log_seated = urn.log_rising(parent, mask, n - b) - urn.log_rising(parent, mask, n)
    return urn.log_mass(parent, mask) + log_seated - math.log(n)


def _draw_table(rng: np.random.Generator, urn: Urn, group: list[Customer], parent: int, mask: int) -> list[Customer]:
    """The table of a customer drawn uniformly, from the seating's conditional given the group: its size, then who."""
    n = len(group)
    # P(b) ∝ C(n-1, b-1) Γ(b) Γ(a+n-b) ∝ Γ(a+n-b) / (n-b)!
    sizes = [urn.log_rising(parent, mask, n - b) - math.lgamma(n - b + 1) for b in range(1, n + 1)]
    b = 1 + proposals.pick_log(rng, sizes)
    if b == n:
        return group
    return [group[i] for i in proposals.subset(rng, n, b)]  # a uniform customer and b-1 others: a uniform subset

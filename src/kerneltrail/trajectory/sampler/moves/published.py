"""The published sampler's two moves on paths (paper, "Seating the Customers" and "Plating the Tables").

They keep explicit tables, each with its composition, as the paper does. Neither targets the joint (method (9)): both
leave out that a customer's next one moves to another restaurant with it.

Where the paper is silent: a customer whose restaurant changes because its predecessor's composition did keeps its
composition, and customers who shared a table and move to the same restaurant go on sharing one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths, Urn, transitions

Table = tuple[int, int]
"""(restaurant, label)."""


def seat_at_tables(rng: np.random.Generator, urn: Urn, paths: Sequence[Sequence[int]]) -> Paths:
    """Table labels from their conditional given the paths: each group K→k sits down as in a Chinese restaurant."""
    tables: dict[tuple[int, int], list[list[int]]] = {}  # transition -> [label, customers] of each table
    labels: list[tuple[int, ...]] = []
    fresh = 0
    for path in paths:
        mine: list[int] = []
        for step in transitions(path):
            seated = tables.setdefault(step, [])
            choice = (
                proposals.pick(rng, [*(float(n) for _, n in seated), math.exp(urn.log_mass(*step))]) if seated else 0
            )
            if choice == len(seated):
                seated.append([fresh, 0])
                fresh += 1
            seated[choice][1] += 1
            mine.append(seated[choice][0])
        labels.append(tuple(mine))
    return tuple(labels)


class _Floor:
    """All restaurants with their tables, mutable, within one move."""

    def __init__(self, rng: np.random.Generator, joint: Joint, state: State) -> None:
        self.joint = joint
        self.paths = [list(path) for path in state.paths]
        labels = state.tables or seat_at_tables(rng, joint.urn, state.paths)
        self.seats: list[list[Table]] = []
        self.members: dict[Table, list[tuple[int, int]]] = {}
        for m, (path, mine) in enumerate(zip(self.paths, labels, strict=True)):
            self.seats.append([(parent, label) for (parent, _), label in zip(transitions(path), mine, strict=True)])
            for t, table in enumerate(self.seats[m]):
                self.members.setdefault(table, []).append((m, t))
        self._fresh = 1 + max(label for mine in labels for label in mine)

    def new_label(self) -> int:
        self._fresh += 1
        return self._fresh - 1

    def parent(self, m: int, t: int) -> int:
        return self.paths[m][t - 1] if t else ROOT

    def dish(self, table: Table) -> int:
        m, t = self.members[table][0]
        return self.paths[m][t]

    def stand_up(self, m: int, t: int) -> Table:
        table = self.seats[m][t]
        self.members[table].remove((m, t))
        if not self.members[table]:
            del self.members[table]
        return table

    def sit_down(self, m: int, t: int, table: Table) -> None:
        self.seats[m][t] = table
        self.members.setdefault(table, []).append((m, t))

    def state(self) -> State:
        """Paths and tables, with labels numbered by first appearance, so that a state is a function of its seating."""
        paths = tuple(map(tuple, self.paths))
        numbers: dict[Table, int] = {}
        tables = tuple(tuple(numbers.setdefault(seat, len(numbers)) for seat in mine) for mine in self.seats)
        return State(paths, self.joint.log_joint(paths, Counts.of(paths)), tables)


@dataclass(frozen=True)
class PublishedSeat(Move):
    """Seat every customer by evidence × Chinese-restaurant weight, Neal's algorithm 8; next customers left out.

    Attributes:
        auxiliary: number of empty tables on offer, each with a composition from H0.
        library: compositions to which H0 is restricted; all if empty. Where few compositions of a large pool have an
            evidence at all, draws from the whole of H0 are wasted.
    """

    name = "published_seat"
    least: ClassVar[Mapping[str, int]] = {"auxiliary": 1}

    joint: Joint
    auxiliary: int = 3
    library: tuple[int, ...] = ()

    @classmethod
    def with_candidates(cls, options: Mapping[str, Any], candidates: tuple[int, ...], *, few: bool) -> dict[str, Any]:
        """H0 is restricted to the candidates where these are few by design: draws from all of it would miss them."""
        return {"library": candidates, **options} if few else dict(options)

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Seat everybody once, user by user, in the order of the batches."""
        floor = _Floor(rng, self.joint, state)
        changed = sum(self._reseat(rng, floor, m, t) for m, path in enumerate(floor.paths) for t in range(len(path)))
        return floor.state(), MoveInfo(self.joint.size, self.joint.size, changed)

    def _reseat(self, rng: np.random.Generator, floor: _Floor, m: int, t: int) -> bool:
        old = floor.paths[m][t]
        left = floor.stand_up(m, t)
        # If the predecessor has changed, the customer comes from another restaurant, and `left` is no table here.
        parent = floor.parent(m, t)
        tables = [table for table in floor.members if table[0] == parent]
        dishes = [floor.dish(table) for table in tables]
        log_sizes = [math.log(len(floor.members[table])) for table in tables]
        alone = left[0] == parent and left not in floor.members
        empty = [old] if alone else []
        empty += [self._fresh(rng, parent) for _ in range(self.auxiliary - len(empty))]
        dishes += empty
        log_sizes += [math.log(self.joint.urn.alpha / self.auxiliary)] * len(empty)
        weights = [size + self.joint.row(m, dish)[t] for size, dish in zip(log_sizes, dishes, strict=True)]
        if max(weights) == -math.inf:  # nothing on offer has an evidence: the customer keeps its composition
            floor.sit_down(m, t, (parent, floor.new_label()))
            return False
        choice = proposals.pick_log(rng, weights)
        floor.paths[m][t] = dishes[choice]
        floor.sit_down(m, t, tables[choice] if choice < len(tables) else (parent, floor.new_label()))
        return dishes[choice] != old

    def _fresh(self, rng: np.random.Generator, parent: int) -> int:
        if not self.library:
            return self.joint.urn.sample_h0(rng, parent)
        return self.library[proposals.pick_log(rng, [self.joint.urn.log_mass(parent, mask) for mask in self.library])]


@dataclass(frozen=True)
class PublishedPlate(Move):
    """Metropolis–Hastings on each table's composition; target H0 × evidences of the customers seated there.

    Attributes:
        steps: proposals per table.
        inverted: use the Hastings ratio upside down, as the authors' code does (method §14). For comparison only.
    """

    name = "published_plate"
    least: ClassVar[Mapping[str, int]] = {"steps": 1}

    joint: Joint
    steps: int = 5
    inverted: bool = False

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Plate every table that is there at the beginning of the pass."""
        floor = _Floor(rng, self.joint, state)
        proposed = accepted = 0
        for table in list(floor.members):
            if table in floor.members:  # its customers may have left with their predecessors
                proposed += self.steps
                accepted += self._replate(rng, floor, table)
        return floor.state(), MoveInfo(proposed, accepted, accepted)

    def _replate(self, rng: np.random.Generator, floor: _Floor, table: Table) -> int:
        members = list(floor.members[table])
        old = dish = floor.dish(table)
        accepted = 0
        for _ in range(self.steps):
            new, log_q = self.toggle.propose(rng, dish)
            log_ratio = self.joint.urn.log_mass(table[0], new) - self.joint.urn.log_mass(table[0], dish)
            if log_ratio > -math.inf:
                log_ratio += math.fsum(self.joint.row(m, new)[t] - self.joint.row(m, dish)[t] for m, t in members)
            if new != dish and proposals.accept(rng, log_ratio + (-log_q if self.inverted else log_q)):
                dish = new
                accepted += 1
        if dish != old:
            self._serve(floor, members, dish)
        return accepted

    @staticmethod
    def _serve(floor: _Floor, members: list[tuple[int, int]], dish: int) -> None:
        """Give the table its new composition; the customers' next ones follow them to its restaurant."""
        for m, t in members:
            floor.paths[m][t] = dish
        followed: dict[Table, Table] = {}
        for m, t in members:
            if t + 1 < len(floor.paths[m]):
                left = floor.stand_up(m, t + 1)
                if left not in followed:
                    followed[left] = (dish, floor.new_label())
                floor.sit_down(m, t + 1, followed[left])

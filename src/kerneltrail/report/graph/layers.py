"""Where the boxes of a directed graph stand along its layers: few crossings, no two boxes on top of each other.

The method of Sugiyama, Tagawa and Toda (1981): long edges are cut at every layer by points that take part in the
ordering; layers are ordered by barycentres and exchanges of neighbours; positions along a layer are then pulled
towards their neighbours as far as the order and the sizes allow. Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

Edge = tuple[int, int]
"""From one box to another, by number."""
SWEEPS = 24
"""Rounds of ordering, and of pulling; graphs of some 25 nodes settle in a few."""


class Extent(NamedTuple):
    """Room of a box along its layer: of the box itself, and spare room before it for what hangs there."""

    box: float
    spare: float = 0.0


class Positions(NamedTuple):
    """Positions along the layers: of box centres, of the points where edges pass the layers between, and the extent."""

    boxes: tuple[float, ...]
    routes: Mapping[Edge, tuple[float, ...]]
    extent: float


def arrange(
    extents: Sequence[Extent], layer: Sequence[int], edges: Iterable[Edge], *, apart: float, slack: float
) -> Positions:
    """Positions of boxes along their layers.

    Args:
        extents: of the boxes.
        layer: of every box: 0, 1, …, none of them empty.
        edges: pairs of boxes; those from a box to itself and within a layer have no influence.
        apart: least distance between two boxes of a layer.
        slack: room for an edge that passes a layer.
    """
    room, chains = list(extents), {}
    ranks = [[box for box, rank in enumerate(layer) if rank == number] for number in range(max(layer) + 1)]
    for a, b in dict.fromkeys(edges):
        if layer[a] == layer[b]:
            continue
        step = 1 if layer[b] > layer[a] else -1
        passed = range(layer[a] + step, layer[b], step)
        points = [len(room) + i for i in range(len(passed))]
        room += [Extent(slack)] * len(points)
        for rank, point in zip(passed, points, strict=True):
            ranks[rank].append(point)
        chains[a, b] = [a, *points, b]
    forward = [way if layer[a] < layer[b] else way[::-1] for (a, b), way in chains.items()]
    pieces = [piece for way in forward for piece in pairwise(way)]
    ranks = _ordered(ranks, pieces)
    at = _pulled(ranks, pieces, room, apart, boxes=len(extents))
    first = min(at[box] - room[box].box / 2 - room[box].spare for box in at)
    last = max(at[box] + room[box].box / 2 for box in at)
    routes = {edge: tuple(at[point] - first for point in way[1:-1]) for edge, way in chains.items()}
    return Positions(tuple(at[box] - first for box in range(len(extents))), routes, last - first)


def crossings(upper: Sequence[int], lower: Sequence[int], pieces: Iterable[Edge]) -> int:
    """How many pairs of edges between two neighbouring layers cross.

    >>> crossings([0, 1], [2, 3], [(0, 3), (1, 2)]), crossings([0, 1], [2, 3], [(0, 2), (1, 3)])
    (1, 0)
    """
    above = {box: position for position, box in enumerate(upper)}
    below = {box: position for position, box in enumerate(lower)}
    ends = [(above[a], below[b]) for a, b in pieces if a in above and b in below]
    return sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ends) for c, d in ends[i + 1 :])


def _ordered(ranks: list[list[int]], pieces: list[Edge]) -> list[list[int]]:
    """The layers in an order with few crossings: the best seen over some sweeps to and fro."""

    def crossed(around: int | None = None) -> int:
        pairs = enumerate(pairwise(ranks))
        return sum(crossings(a, b, pieces) for r, (a, b) in pairs if around is None or around in (r, r + 1))

    best, fewest = [list(rank) for rank in ranks], crossed()
    for sweep in range(SWEEPS):
        if not fewest:
            break
        for r in range(1, len(ranks)):
            r, fixed = (r, r - 1) if sweep % 2 == 0 else (len(ranks) - 1 - r, len(ranks) - r)
            at = {box: position for position, box in enumerate(ranks[fixed])}
            near = {box: [at[a if b == box else b] for a, b in pieces if box in (a, b) and (a in at or b in at)]
                    for box in ranks[r]}  # fmt: skip
            barycentre = {box: np.mean(near[box] or position) for position, box in enumerate(ranks[r])}
            ranks[r].sort(key=barycentre.__getitem__)
        for r, rank in enumerate(ranks):
            better = True
            while better:  # exchange neighbours as long as that removes crossings
                better = False
                for i in range(len(rank) - 1):
                    before = crossed(r)
                    rank[i : i + 2] = rank[i : i + 2][::-1]
                    if crossed(r) < before:
                        better = True
                    else:
                        rank[i : i + 2] = rank[i : i + 2][::-1]
        if crossed() < fewest:
            best, fewest = [list(rank) for rank in ranks], crossed()
    return best


def _pulled(
    ranks: list[list[int]], pieces: list[Edge], room: Sequence[Extent], apart: float, *, boxes: int
) -> dict[int, float]:
    """Positions along the layers: each near the mean of its neighbours, in order and apart."""
    near: dict[int, list[tuple[int, float]]] = {box: [] for rank in ranks for box in rank}
    for a, b in pieces:
        # Edges that pass layers are kept straight first, as then there are fewer bends to follow with the eye.
        weight = 1.0 + 2.0 * (a >= boxes) + 2.0 * (b >= boxes)
        near[a].append((b, weight))
        near[b].append((a, weight))
    least = []  # positions of each layer's boxes as close as they may stand
    for rank in ranks:
        steps = [room[a].box / 2 + apart + room[b].spare + room[b].box / 2 for a, b in pairwise(rank)]
        least.append(np.concatenate([[0.0], np.cumsum(steps)]))
    at: dict[int, float] = {}
    for rank, low in zip(ranks, least, strict=True):
        at |= zip(rank, low - low[-1] / 2, strict=True)
    for sweep in range(SWEEPS):
        for r in range(len(ranks)) if sweep % 2 == 0 else reversed(range(len(ranks))):
            wanted = [
                np.average([at[other] for other, _ in near[box]], weights=[w for _, w in near[box]])
                if near[box]
                else at[box]
                for box in ranks[r]
            ]
            at |= zip(ranks[r], scipy.optimize.isotonic_regression(wanted - least[r]).x + least[r], strict=True)
    return {box: float(value) for box, value in at.items()}

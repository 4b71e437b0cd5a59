"""Where the boxes of a directed graph go: layers from a root, few crossings, no two boxes on top of each other.

The method of Sugiyama, Tagawa and Toda (1981): long edges are cut at every layer by points that take part in the
ordering; layers are ordered by barycentres and exchanges of neighbours; positions within a layer are then pulled
towards their neighbours as far as the order and the sizes allow. Everything is deterministic.

Two axes: `main` runs from layer to layer, `cross` along a layer. Who draws decides which of them is x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Edge = tuple[int, int]
"""From one box to another, by number."""

SWEEPS = 24
"""Rounds of ordering, and of pulling; graphs of some 25 nodes settle in a few."""


@dataclass(frozen=True)
class Size:
    """How much room a box needs.

    Attributes:
        main: of the box along the main axis.
        cross: of the box along the cross axis.
        spare: before the box, at the near end of the cross axis, for what hangs there.
    """

    main: float
    cross: float
    spare: float = 0.0


@dataclass(frozen=True)
class Place:
    """Where the centre of a box is."""

    main: float
    cross: float


@dataclass(frozen=True)
class Layout:
    """Positions of boxes and of edges.

    Attributes:
        places: of every box.
        routes: for every edge between layers, the points at which it passes the layers between, from start to end.
        layers: for every layer where its boxes begin and end on the main axis.
        main, cross: extent of everything.
    """

    places: tuple[Place, ...]
    routes: Mapping[Edge, tuple[Place, ...]]
    layers: tuple[tuple[float, float], ...]
    main: float
    cross: float


def arrange(
    sizes: Sequence[Size], layer: Sequence[int], edges: Iterable[Edge], *, gap: float, apart: float, slack: float
) -> Layout:
    """Lay out a graph.

    Args:
        sizes: of the boxes.
        layer: of every box: 0, 1, …, none of them empty.
        edges: pairs of boxes; those from a box to itself and within a layer do not influence the layout.
        gap: between two layers.
        apart: least distance between two boxes of a layer.
        slack: room for an edge that passes a layer.
    """
    between = [(a, b) for a, b in dict.fromkeys(edges) if layer[a] != layer[b]]
    room = list(sizes)
    ranks: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for box, rank in enumerate(layer):
        ranks[rank].append(box)
    chains: dict[Edge, list[int]] = {}
    segments: list[Edge] = []
    for a, b in between:
        low, high = (a, b) if layer[a] < layer[b] else (b, a)
        chain = [low]
        for rank in range(layer[low] + 1, layer[high]):
            room.append(Size(0.0, slack))
            ranks[rank].append(len(room) - 1)
            chain.append(len(room) - 1)
        chain.append(high)
        segments += pairwise(chain)
        chains[a, b] = chain if low == a else chain[::-1]
    ranks = _ordered(ranks, segments)
    cross = _pulled(ranks, segments, room, apart, boxes=len(sizes))
    starts, ends, at = [], [], 0.0
    for own in ranks:
        thick = max(room[box].main for box in own)
        starts.append(at)
        ends.append(at + thick)
        at += thick + gap
    middle = {box: (starts[r] + ends[r]) / 2.0 for r, own in enumerate(ranks) for box in own}
    first = min(cross[box] - room[box].cross / 2 - room[box].spare for box in cross)
    last = max(cross[box] + room[box].cross / 2 for box in cross)
    places = {box: Place(middle[box], cross[box] - first) for box in cross}
    return Layout(
        tuple(places[box] for box in range(len(sizes))),
        {edge: tuple(places[box] for box in chain[1:-1]) for edge, chain in chains.items()},
        tuple(zip(starts, ends, strict=True)),
        ends[-1],
        last - first,
    )


def crossings(upper: Sequence[int], lower: Sequence[int], segments: Iterable[Edge]) -> int:
    """How many pairs of segments between two neighbouring layers cross.

    >>> crossings([0, 1], [2, 3], [(0, 3), (1, 2)]), crossings([0, 1], [2, 3], [(0, 2), (1, 3)])
    (1, 0)
    """
    above = {box: place for place, box in enumerate(upper)}
    below = {box: place for place, box in enumerate(lower)}
    ends = [(above[a], below[b]) for a, b in segments if a in above and b in below]
    return sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(ends) for c, d in ends[i + 1 :])


def _ordered(ranks: list[list[int]], segments: list[Edge]) -> list[list[int]]:
    """The layers in an order with few crossings: the best seen over some sweeps to and fro."""
    ranks = [list(rank) for rank in ranks]
    best, fewest = [list(rank) for rank in ranks], _total(ranks, segments)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for r in range(1, len(ranks)) if forward else range(len(ranks) - 2, -1, -1):
            _by_barycentre(ranks, r, r - 1 if forward else r + 1, segments)
        _exchange(ranks, segments)
        now = _total(ranks, segments)
        if now < fewest:
            best, fewest = [list(rank) for rank in ranks], now
    return best


def _by_barycentre(ranks: list[list[int]], r: int, fixed: int, segments: list[Edge]) -> None:
    at = {box: float(place) for place, box in enumerate(ranks[fixed])}
    old = {box: float(place) for place, box in enumerate(ranks[r])}

    def centre(box: int) -> float:
        near = [at[a if b == box else b] for a, b in segments if box in (a, b) and (a in at or b in at)]
        return float(np.mean(near)) if near else old[box]

    ranks[r].sort(key=lambda box: (centre(box), old[box]))


def _exchange(ranks: list[list[int]], segments: list[Edge]) -> None:
    """Exchange neighbours as long as that removes crossings."""
    for r, rank in enumerate(ranks):
        better = True
        while better:
            better = False
            for i in range(len(rank) - 1):
                before = _around(ranks, r, segments)
                rank[i], rank[i + 1] = rank[i + 1], rank[i]
                if _around(ranks, r, segments) < before:
                    better = True
                else:
                    rank[i], rank[i + 1] = rank[i + 1], rank[i]


def _around(ranks: list[list[int]], r: int, segments: list[Edge]) -> int:
    pairs = [(i, i + 1) for i in (r - 1, r) if 0 <= i < len(ranks) - 1]
    return sum(crossings(ranks[i], ranks[j], segments) for i, j in pairs)


def _total(ranks: list[list[int]], segments: list[Edge]) -> int:
    return sum(crossings(a, b, segments) for a, b in pairwise(ranks))


def _pulled(
    ranks: list[list[int]], segments: list[Edge], room: Sequence[Size], apart: float, *, boxes: int
) -> dict[int, float]:
    """Positions along the layers: each near the mean of its neighbours, in order and apart."""
    near: dict[int, list[tuple[int, float]]] = {box: [] for rank in ranks for box in rank}
    for a, b in segments:
        # Edges that pass layers are kept straight first, as then there are fewer bends to follow with the eye.
        weight = 1.0 + 2.0 * (a >= boxes) + 2.0 * (b >= boxes)
        near[a].append((b, weight))
        near[b].append((a, weight))
    offsets = {tuple(rank): _offsets(rank, room, apart) for rank in ranks}
    cross: dict[int, float] = {}
    for rank in ranks:
        offset = offsets[tuple(rank)]
        cross |= {box: place - offset[-1] / 2 for box, place in zip(rank, offset, strict=True)}
    for sweep in range(SWEEPS):
        for rank in ranks if sweep % 2 == 0 else reversed(ranks):
            wanted = [
                sum(cross[other] * w for other, w in near[box]) / sum(w for _, w in near[box])
                if near[box]
                else cross[box]
                for box in rank
            ]
            offset = offsets[tuple(rank)]
            level = monotone([want - place for want, place in zip(wanted, offset, strict=True)])
            cross |= {box: value + place for box, value, place in zip(rank, level, offset, strict=True)}
    return cross


def _offsets(rank: Sequence[int], room: Sequence[Size], apart: float) -> list[float]:
    """The least positions of a layer's boxes, in order, the first at zero."""
    found = [0.0]
    for a, b in pairwise(rank):
        found.append(found[-1] + room[a].cross / 2 + apart + room[b].spare + room[b].cross / 2)
    return found


def monotone(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest in squares: neighbours that are out of order are pooled.

    >>> monotone([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]

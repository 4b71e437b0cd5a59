"""From sampled paths to the nodes of a model: those of the chosen structure, and those of the others in an average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kerneltrail.trajectory.graph import Averaged, Node
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler.joint import State, common_book
from kerneltrail.trajectory.sampler.urn import Paths, customers_of, last_use

SEEN = 0.01
"""Share of the customers, on average over the sampled structures, that a composition needs to count in the average."""

MOST = 8
"""Nodes of an average, unless the chosen structure has more: each is fitted to a followed user at every batch."""


def nodes_of(table: MapTable, paths: Paths, names: Sequence[str]) -> tuple[Node, ...]:
    """The compositions in use, in order of first use: by batch, then by user."""
    longest = max(map(len, paths))
    order = dict.fromkeys(path[t] for t in range(longest) for path in paths if t < len(path))
    customers, last = customers_of(paths), last_use(paths)
    nodes = []
    for mask in order:
        thetas = np.array([table.get(m, mask).theta[t] for m, t in customers[mask]])
        users = tuple(names[m] for m in last[mask])
        group = table.group(mask, last[mask].items())
        nodes.append(Node(mask, table.pool.composition(mask), thetas, group, users))
    return tuple(nodes)


def average_of(
    table: MapTable, states: Sequence[State], chosen: Sequence[Node], names: Sequence[str], *, most: int = MOST
) -> Averaged:
    """What the sampled structures say together, each as often as it was sampled: expected transitions, method (49).

    A composition that the chosen structure does not use has the group of the most probable structure that does. Those
    that are hardly used are left out, and so are the least used where there would be more nodes than `most`.
    """
    book = common_book(states)
    best: dict[int, State] = {}
    total = np.zeros((len(book.masks) + 1, len(book.masks)))
    for state in states:
        each = book.steps(state.codes(book))
        total += each
        for code in np.flatnonzero(each.any(axis=0)).tolist():
            mask = book.masks[code]
            if mask not in best or state.log_joint > best[mask].log_joint:
                best[mask] = state
    steps = total / len(states)
    share = steps.sum(axis=0) / book.starts[-1]
    uses = {mask: float(share[book.index[mask]]) for mask in best}
    known = {node.mask for node in chosen}
    others = sorted((mask for mask in uses if mask not in known), key=lambda mask: (-uses[mask], mask))
    kept = [mask for mask in others if uses[mask] >= SEEN][: max(most - len(chosen), 0)]
    extra = []
    for mask in kept:
        every = nodes_of(table, best[mask].paths, names)
        extra.append(next(node for node in every if node.mask == mask))
    index = {mask: i for i, mask in enumerate([*(node.mask for node in chosen), *kept])}
    codes = np.array([book.index[mask] for mask in index])
    counts = steps[np.concatenate([[0], codes + 1])[:, None], codes]
    return Averaged(tuple(extra), counts, sum(uses[mask] for mask in others if mask not in index))

"""A learnt graph as text: a tree from the root with the share of customers on every edge, as in the paper's figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kerneltrail.kernels import Pool
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths

NOTHING = "(noise alone)"
"""How the empty composition is written."""


def name_of(pool: Pool, mask: int) -> str:
    """A composition in text."""
    return pool.composition(mask).text or NOTHING


def graph_lines(pool: Pool, paths: Paths) -> list[str]:
    """The graph of a structure, a line per edge.

    >>> pool = Pool.of("LIN[x]", "SE[x]")
    >>> for line in graph_lines(pool, ((1, 3, 3), (1, 3, 3), (2, 2, 1))):
    ...     print(line)
    root
    ├─ 2/3 LIN[x]
    │  └─ 2/2 LIN[x] + SE[x]
    │     └─ 2/2 stays
    └─ 1/3 SE[x]
       ├─ 1/2 LIN[x] (above)
       └─ 1/2 stays
    """
    counts = Counts.of(paths)
    drawn: set[int] = set()

    def below(parent: int, indent: str) -> Iterable[str]:
        drawn.add(parent)
        row = counts.rows.get(parent, {})
        total = sum(row.values())
        order = sorted(row.items(), key=lambda item: (-item[1], pool.composition(item[0]).text))
        for place, (child, count) in enumerate(order, start=1):
            last = place == len(order)
            again = child in drawn and child != parent and child in counts.rows
            said = "stays" if child == parent else name_of(pool, child) + (" (above)" if again else "")
            yield f"{indent}{'└─' if last else '├─'} {count}/{total} {said}"
            if child not in drawn:
                yield from below(child, indent + ("   " if last else "│  "))

    return ["root", *below(ROOT, "")]


def path_text(pool: Pool, path: Sequence[int]) -> str:
    """One user's path, with how many batches each composition lasted.

    >>> path_text(Pool.of("LIN[x]", "SE[x]"), (1, 1, 3))
    'LIN[x] ×2 → LIN[x] + SE[x] ×1'
    """
    return " → ".join(f"{name_of(pool, mask)} ×{len(list(run))}" for mask, run in groupby(path))


def user_lines(pool: Pool, users: Sequence[str], paths: Paths) -> list[str]:
    """Each pilot user with its path (the paper's appendix table)."""
    width = max(map(len, users))
    return [f"{name:<{width}}  {path_text(pool, path)}" for name, path in zip(users, paths, strict=True)]

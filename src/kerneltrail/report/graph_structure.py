"""A learnt graph as it is drawn: boxes with names, arrows with counts, and which boxes are key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kerneltrail.kernels import NOTHING, Composition, Pool
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths

ROOT_TEXT = "root"
LONG = 18
"""Letters beyond which a product is broken at its ``*`` as well."""
KEY = 0.2
"""Share of the users who must end in a composition for it to be a key one."""


@dataclass(frozen=True)
class Link:
    """An arrow from box to box: `count` of the `total` customers who left went this way."""

    parent: int
    child: int
    count: int
    total: int

    @property
    def label(self) -> str:
        """As in the paper's figure."""
        return f"{self.count}/{self.total}"


@dataclass(frozen=True)
class Graph:
    """What is drawn.

    Attributes:
        names: text of every box, the root's first.
        batch: the first batch at which some user is there, 0 for the root.
        links: the arrows.
        key: boxes that matter most, drawn in bold.
    """

    names: tuple[str, ...]
    batch: tuple[int, ...]
    links: tuple[Link, ...]
    key: frozenset[int] = frozenset()

    @classmethod
    def of(cls, pool: Pool, paths: Paths) -> Graph:
        """The graph of a structure: ``Graph.of(model.pool, model.paths)``. Boxes in which many users end are key."""
        first: dict[int, int] = {ROOT: 0}
        for t, mask in sorted((at for path in paths for at in enumerate(path, start=1)), key=lambda at: at[0]):
            first.setdefault(mask, t)
        number = {mask: index for index, mask in enumerate(first)}
        links = []
        for parent, row in Counts.of(paths).rows.items():
            total = sum(row.values())
            links += [Link(number[parent], number[child], count, total) for child, count in row.items()]
        links.sort(key=lambda link: (link.parent, link.child))
        names = tuple(ROOT_TEXT if mask == ROOT else name_of(pool.composition(mask)) for mask in first)
        return cls(names, tuple(first.values()), tuple(links), frozenset(number[mask] for mask in key_masks(paths)))


def key_masks(paths: Paths) -> tuple[int, ...]:
    """The key compositions of a structure: those in which at least a fifth of the users end, most users first.

    Where users end in so many that none holds a fifth, those that hold the most.

    >>> key_masks(((1, 3), (1, 3), (1, 1)))
    (3, 1)
    """
    ends = Counter(path[-1] for path in paths if path)
    most = ends.most_common()
    least = min(KEY * sum(ends.values()), most[0][1])
    return tuple(mask for mask, count in most if count >= least)


def name_of(composition: Composition) -> str:
    """A composition's text for a figure."""
    return composition.text or NOTHING


def wrapped(name: str) -> str:
    """A composition's text in lines: a product each, long products broken between their factors.

    >>> print(wrapped("LIN[x] + PER[x]"))
    LIN[x]
    + PER[x]
    """
    lines = []
    for index, product in enumerate(name.split(" + ")):
        text = product if len(product) <= LONG else product.replace("*", "\n  * ")
        lines.append(f"+ {text}" if index else text)
    return "\n".join(lines)

"""One structure out of many samples: the simplest among those that are nearly as probable as the best (method (25))."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kerneltrail.trajectory.sampler.joint import State
from kerneltrail.trajectory.sampler.urn import Counts, Paths


@dataclass(frozen=True)
class Structure:
    """A sampled set of paths (masks), seen as a graph of so many compositions and transitions; and how often it was."""

    paths: Paths
    log_joint: float
    nodes: int
    edges: int
    visits: int = 1

    @property
    def graph(self) -> frozenset[tuple[int, int]]:
        """Its transitions, without counts."""
        counts = Counts.of(self.paths)
        return frozenset((parent, child) for parent, row in counts.rows.items() for child in row)


def choose(
    samples: Iterable[State],
    *,
    margin: float,
    alternatives: int = 4,
    worth: Callable[[Paths], float] | None = None,
) -> tuple[Structure, ...]:
    """The chosen structure, then alternatives with other graphs, best log joint first.

    Chosen: among samples within `margin` nats of the best log joint, the one with the fewest nodes, then edges, then
    the highest log joint. The paper keeps the simplest of five with similar likelihoods by eye; this says the same.
    With `worth`, that takes the log joint's place in the rule.
    """
    structures: dict[Paths, Structure] = {}
    for state in samples:
        known = structures.get(state.paths)
        if known is None:
            structures[state.paths] = Structure(state.paths, state.log_joint, state.nodes, state.edges)
        else:
            structures[state.paths] = replace(
                known, log_joint=max(known.log_joint, state.log_joint), visits=known.visits + 1
            )
    worths = {paths: s.log_joint if worth is None else worth(paths) for paths, s in structures.items()}
    best = max(worths.values())
    near = [structure for paths, structure in structures.items() if worths[paths] >= best - margin]
    chosen = min(near, key=lambda s: (s.nodes, s.edges, -worths[s.paths], s.paths))
    others: dict[frozenset[tuple[int, int]], Structure] = {}
    for structure in sorted(structures.values(), key=lambda s: (-s.log_joint, s.paths)):
        if structure.graph != chosen.graph and structure.graph not in others:
            others[structure.graph] = structure
        if len(others) == alternatives:
            break
    return (chosen, *others.values())

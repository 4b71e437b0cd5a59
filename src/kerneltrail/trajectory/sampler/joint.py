"""The joint over all paths (method (9)) as one function, the urn's prior times the evidences; and states of chains.

Out of many states one structure is chosen, method (25): the simplest of those that are nearly as probable as the best,
or the most typical of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.evidence.base import Evidence
from kerneltrail.trajectory.sampler.urn import Counts, Paths, Urn

Choice = Literal["simplest", "typical"]
"""Which structure is taken of those that are nearly as good as the best."""


@dataclass(frozen=True)
class State:
    """All paths with their log joint; immutable.

    Made by `Joint.state`, so that `log_joint` is a function of the paths alone, whatever moves led here: a chain that
    is stopped and started again from its paths continues bit for bit.

    Attributes:
        paths: the composition of every customer.
        log_joint: log of the joint (method (9)) over all paths, up to the constant p(data).
        tables: a table label per customer, only where the published moves keep explicit tables; a table is a pair
            (restaurant, label). The exact moves have summed them out and drop them.
    """

    paths: Paths
    log_joint: float
    tables: Paths | None = None

    @cached_property
    def nodes(self) -> int:
        """Number of compositions in use."""
        return len({mask for path in self.paths for mask in path})

    @cached_property
    def edges(self) -> int:
        """Number of distinct transitions in use, those from the root included."""
        return Counts.of(self.paths).edges


class Joint:
    """log p(paths | data) + constant, for given evidences.

    A value: when evidences change (hyperparameters were updated), make another, and the states anew with
    `state(paths)`.

    >>> from kerneltrail.kernels import Pool
    >>> class Flat:
    ...     customers = (2, 2)
    ...     def log_evidence(self, user, mask):
    ...         return np.zeros(2)
    >>> joint = Joint(Urn(Pool.of("LIN[x]", "SE[x]", probability=0.5)), Flat())
    >>> round(math.exp(joint.log_joint(((1, 1), (1, 3)))), 5)     # ⅓·⅓ for user 1, then (1+⅓)/2·⅓/2
    0.01235
    """

    def __init__(self, urn: Urn, evidence: Evidence) -> None:
        self.urn = urn
        self.evidence = evidence
        self.customers = tuple(int(t) for t in evidence.customers)
        if not self.customers or min(self.customers) < 1:
            raise TrajectoryError(f"every user needs at least one batch, got {list(self.customers)}")
        self._rows: dict[tuple[int, int], tuple[float, ...]] = {}

    @property
    def size(self) -> int:
        """Number of customers Σ T_m."""
        return sum(self.customers)

    def row(self, user: int, mask: int) -> tuple[float, ...]:
        """The log evidences of one composition for all batches of one user, as plain floats, checked once."""
        row = self._rows.get((user, mask))
        if row is None:
            values = self.evidence.log_evidence(user, mask)
            if values.shape != (self.customers[user],) or np.isnan(values).any() or np.isposinf(values).any():
                kernel = self.urn.pool.composition(mask) or "(empty)"
                raise TrajectoryError(
                    f"the evidences of {kernel} for user {user} must be {self.customers[user]} numbers below "
                    f"infinity, got {np.asarray(values).tolist()}"
                )
            row = self._rows[user, mask] = tuple(values.tolist())
        return row

    def log_joint(self, paths: Sequence[Sequence[int]], counts: Counts | None = None) -> float:
        """log of the joint (method (9)); `counts`, if given, must be those of the paths."""
        log_prior = self.urn.log_prior(Counts.of(paths) if counts is None else counts)
        if log_prior == -math.inf:
            return -math.inf
        terms = [self.row(m, mask)[t] for m, path in enumerate(paths) for t, mask in enumerate(path)]
        return log_prior + math.fsum(terms)

    def state(self, paths: Iterable[Sequence[int]], *, tables: Paths | None = None) -> State:
        """A state of these paths, checked."""
        fixed = tuple(tuple(int(mask) for mask in path) for path in paths)
        if tuple(map(len, fixed)) != self.customers:
            raise TrajectoryError(f"paths of lengths {[len(p) for p in fixed]} for batches {list(self.customers)}")
        top = 1 << len(self.urn.pool)
        for m, path in enumerate(fixed):
            for t, mask in enumerate(path):
                if not 0 <= mask < top or (mask == 0 and not self.urn.pool.allow_empty):
                    raise TrajectoryError(f"user {m}, batch {t}: {mask} is not a composition of the pool")
        log_joint = self.log_joint(fixed)
        if not math.isfinite(log_joint):
            raise TrajectoryError(f"a chain cannot stand on paths of probability zero: {fixed}")
        return State(fixed, log_joint, tables)


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
    choice: Choice = "simplest",
) -> tuple[Structure, ...]:
    """The chosen structure, then alternatives with other graphs, best log joint first, within the margin or not.

    Chosen: among samples within `margin` nats of the best log joint, the one with the fewest nodes, then edges, then
    the highest log joint. The paper keeps the simplest of five with similar likelihoods by eye; this says the same.
    With `worth`, that takes the log joint's place in the rule. With the choice ``typical``, the one of them with which
    they agree most, counted as often as they were sampled; then the highest log joint.
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
    if choice == "typical":
        agreement = _agreement(near)
        chosen = min(near, key=lambda s: (-agreement[s.paths], -s.log_joint, s.paths))
    else:
        chosen = min(near, key=lambda s: (s.nodes, s.edges, -worths[s.paths], s.paths))
    others: dict[frozenset[tuple[int, int]], Structure] = {}
    for structure in sorted(structures.values(), key=lambda s: (-s.log_joint, s.paths)):
        if structure.graph != chosen.graph and structure.graph not in others:
            others[structure.graph] = structure
        if len(others) == alternatives:
            break
    return (chosen, *others.values())


def _agreement(structures: Sequence[Structure]) -> dict[Paths, int]:
    """For each structure, the customers in all samples who have the composition that they have in it."""
    shared: Counter[tuple[int, int, int]] = Counter()
    for structure in structures:
        for customer in _customers(structure.paths):
            shared[customer] += structure.visits
    return {s.paths: sum(shared[customer] for customer in _customers(s.paths)) for s in structures}


def _customers(paths: Paths) -> Iterator[tuple[int, int, int]]:
    """(user, batch, composition) of every customer."""
    return ((m, t, mask) for m, path in enumerate(paths) for t, mask in enumerate(path))

"""The joint over all paths (method (9)) as one function, the urn's prior times the evidences; and states of chains.

Out of many states one structure is chosen, method (25): the simplest of those that are nearly as probable as the best,
or the most typical of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from kerneltrail import gp
from kerneltrail.errors import TrajectoryError
from kerneltrail.kernels import Array, Pool
from kerneltrail.trajectory.evidence.base import Evidence
from kerneltrail.trajectory.sampler.book import Book, Codes
from kerneltrail.trajectory.sampler.proposals import Toggle
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths, Urn

if TYPE_CHECKING:
    from kerneltrail.gp.urn_moves import Target

Choice = Literal["simplest", "typical"]
"""Which structure is taken of those that are nearly as good as the best."""

ALTERNATIVES = 4
"""Other structures that are kept beside the chosen one."""

LISTED = 12
"""Products of a pool up to which all its compositions are candidates where none are named."""


class State:
    """All paths with their log joint; immutable.

    Made by `Joint.state`, so that `log_joint` is a function of the paths alone, whatever moves led here: a chain that
    is stopped and started again from its paths continues bit for bit.

    Attributes:
        log_joint: log of the joint (method (9)) over all paths, up to the constant p(data).
        tables: a table label per customer, only where the published moves keep explicit tables; a table is a pair
            (restaurant, label). The exact moves have summed them out and drop them.
    """

    def __init__(self, paths: Paths | None, log_joint: float, tables: Paths | None = None) -> None:
        self.log_joint, self.tables = log_joint, tables
        self._paths = paths
        self._coded: tuple[Book, Codes] | None = None

    @classmethod
    def coded(cls, book: Book, codes: Codes, log_joint: float) -> State:
        """A state of paths in codes, which are decoded when somebody asks for them."""
        state = cls(None, log_joint)
        state._coded = (book, codes)
        return state

    @property
    def paths(self) -> Paths:
        """The composition of every customer."""
        if self._paths is None:
            assert self._coded is not None  # one of the two is there
            self._paths = self._coded[0].decode(self._coded[1])
        return self._paths

    @property
    def book(self) -> Book | None:
        """The book of its codes; None where it has none yet."""
        return None if self._coded is None else self._coded[0]

    def codes(self, book: Book) -> Codes:
        """The paths in the codes of a book; not to be changed."""
        if self._coded is None or self._coded[0] is not book:
            self._coded = (book, book.encode(self.paths))
        return self._coded[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return (self.paths, self.log_joint, self.tables) == (other.paths, other.log_joint, other.tables)

    def __hash__(self) -> int:
        return hash((self.paths, self.log_joint))

    def __repr__(self) -> str:
        return f"State({self.paths}, {self.log_joint}, {self.tables})"

    @cached_property
    def nodes(self) -> int:
        """Number of compositions in use."""
        return len(set(sum(self.paths, ()))) if self._coded is None else self._coded[0].nodes(self._coded[1])

    @cached_property
    def edges(self) -> int:
        """Number of distinct transitions in use, those from the root included."""
        return Counts.of(self.paths).edges if self._coded is None else self._coded[0].edges(self._coded[1])


class EvidenceArray:
    """Log evidences of all candidates for all customers as one array, (customers, candidates): what chains work on.

    Of anything else the evidence is zero: nothing but candidates is ever visited.
    """

    learns = False

    def __init__(self, book: Book, values: Array) -> None:
        self.book, self.values = book, values
        self.customers = book.lengths

    @classmethod
    def of(cls, evidence: Evidence, book: Book, pool: Pool) -> EvidenceArray:
        """The values of an evidence, checked."""
        values = np.empty((int(book.starts[-1]), len(book.masks)))
        for m, (start, length) in enumerate(zip(book.starts.tolist(), book.lengths, strict=False)):
            for code, mask in enumerate(book.masks):
                values[start : start + length, code] = checked_row(evidence, m, mask, pool)
        return cls(book, values)

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        code = self.book.index.get(mask)
        if code is None:
            return np.full(self.customers[user], -np.inf)
        return self.values[self.book.starts[user] : self.book.starts[user + 1], code]

    def for_paths(self, paths: Paths) -> EvidenceArray:
        """Itself: it learns nothing from paths."""
        return self


def checked_row(evidence: Evidence, user: int, mask: int, pool: Pool) -> Array:
    """The log evidences of one composition for all batches of one user; refused where they are no numbers."""
    values, length = evidence.log_evidence(user, mask), evidence.customers[user]
    if values.shape != (length,) or np.isnan(values).any() or np.isposinf(values).any():
        kernel = pool.composition(mask) or "(empty)"
        raise TrajectoryError(
            f"the evidences of {kernel} for user {user} must be {length} numbers below infinity, got "
            f"{np.asarray(values).tolist()}"
        )
    return values


class Joint:
    """log p(paths | data) + constant, for given evidences.

    A value: when evidences change (hyperparameters were updated), make another, and the states anew with
    `state(paths)`. The exact moves visit `candidates` alone: all of the pool's compositions where none are named.

    >>> from kerneltrail.kernels import Pool
    >>> class Flat:
    ...     customers = (2, 2)
    ...     def log_evidence(self, user, mask):
    ...         return np.zeros(2)
    >>> joint = Joint(Urn(Pool.of("LIN[x]", "SE[x]", probability=0.5)), Flat())
    >>> round(math.exp(joint.log_joint(((1, 1), (1, 3)))), 5)     # ⅓·⅓ for user 1, then (1+⅓)/2·⅓/2
    0.01235
    """

    def __init__(self, urn: Urn, evidence: Evidence, candidates: Sequence[int] | None = None) -> None:
        self.urn = urn
        self.evidence = evidence
        self.customers = tuple(int(t) for t in evidence.customers)
        if not self.customers or min(self.customers) < 1:
            raise TrajectoryError(f"every user needs at least one batch, got {list(self.customers)}")
        self._candidates = None if candidates is None else tuple(candidates)
        self._rows: dict[tuple[int, int], tuple[float, ...]] = {}

    @property
    def size(self) -> int:
        """Number of customers Σ T_m."""
        return sum(self.customers)

    @cached_property
    def book(self) -> Book:
        """The candidates, as codes."""
        if isinstance(self.evidence, EvidenceArray):
            return self.evidence.book
        candidates = self._candidates
        if candidates is None:
            if len(self.urn.pool) > LISTED:
                raise TrajectoryError(
                    f"a pool of {len(self.urn.pool)} products has too many compositions to list: name the candidates"
                )
            candidates = tuple(self.urn.pool.masks())
        return Book(candidates, self.customers)

    @cached_property
    def array(self) -> EvidenceArray:
        """The evidences of all candidates."""
        if isinstance(self.evidence, EvidenceArray):
            return self.evidence
        return EvidenceArray.of(self.evidence, self.book, self.urn.pool)

    @cached_property
    def target(self) -> Target:
        """What the compiled moves need of it."""
        masks, toggle = self.book.masks, Toggle.of(self.urn.pool)
        parents = (ROOT, *masks) if self.urn.keep is not None else (ROOT,)
        mass = np.array([[self.urn.log_mass(parent, child) for child in masks] for parent in parents])
        chances = np.array([[math.exp(toggle.log_prob(mask, other)) for other in masks] for mask in masks])
        left = 1.0 - chances.sum(axis=1, keepdims=True)  # neighbours that are no candidates
        return gp.urn_moves.Target(
            self.book.starts,
            np.ascontiguousarray(self.array.values),
            np.ascontiguousarray(np.broadcast_to(mass, (len(masks) + 1, len(masks)))),
            np.hstack([chances, np.where(left > 1e-9, left, 0.0)]),
            self.urn.alpha,
        )

    def row(self, user: int, mask: int) -> tuple[float, ...]:
        """The log evidences of one composition for all batches of one user, as plain floats, checked once."""
        row = self._rows.get((user, mask))
        if row is None:
            row = self._rows[user, mask] = tuple(checked_row(self.evidence, user, mask, self.urn.pool).tolist())
        return row

    def log_joint(self, paths: Sequence[Sequence[int]], counts: Counts | None = None) -> float:
        """log of the joint (method (9)); `counts`, if given, must be those of the paths."""
        log_prior = self.urn.log_prior(Counts.of(paths) if counts is None else counts)
        if log_prior == -math.inf:
            return -math.inf
        terms = [self.row(m, mask)[t] for m, path in enumerate(paths) for t, mask in enumerate(path)]
        return log_prior + math.fsum(terms)

    def coded(self, codes: Codes) -> State:
        """The state of paths in the codes of `book`, with the log joint to the bit of the same paths in masks."""
        small = codes.astype(self.book.dtype)
        counts = Counts.of_steps(self.book.masks, self.book.steps(small))
        terms = self.array.values[np.arange(len(codes)), codes].tolist()
        return State.coded(self.book, small, self.urn.log_prior(counts) + math.fsum(terms))

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
    alternatives: int = ALTERNATIVES,
    worth: Callable[[Paths], float] | None = None,
    choice: Choice = "simplest",
) -> tuple[Structure, ...]:
    """The chosen structure, then alternatives with other graphs, best log joint first, within the margin or not.

    Chosen: among samples within `margin` nats of the best log joint, the one with the fewest nodes, then edges, then
    the highest log joint. The paper keeps the simplest of five with similar likelihoods by eye; this says the same.
    With `worth`, that takes the log joint's place in the rule. With the choice ``typical``, the one of them with which
    they agree most, counted as often as they were sampled; then the highest log joint.
    """
    states = list(samples)
    book = common_book(states)
    samples_of: dict[bytes, list[State]] = {}
    for state in states:
        samples_of.setdefault(state.codes(book).tobytes(), []).append(state)
    log_joint = {key: max(state.log_joint for state in some) for key, some in samples_of.items()}
    worths = log_joint if worth is None else {key: worth(some[0].paths) for key, some in samples_of.items()}
    best = max(worths.values())
    near = [key for key in samples_of if worths[key] >= best - margin]
    if choice == "typical":
        rows = np.array([samples_of[key][0].codes(book) for key in near])
        agreement = dict(zip(near, _agreement(rows, [len(samples_of[key]) for key in near]), strict=True))
        chosen = min(near, key=lambda key: (-agreement[key], -log_joint[key], key))
    else:
        chosen = min(near, key=lambda key: (samples_of[key][0].nodes, samples_of[key][0].edges, -worths[key], key))

    def graph(key: bytes) -> bytes:
        return (book.steps(samples_of[key][0].codes(book)) > 0).tobytes()

    graphs = {graph(chosen): chosen}
    for key in sorted(samples_of, key=lambda key: (-log_joint[key], key)):
        if len(graphs) > alternatives:
            break
        graphs.setdefault(graph(key), key)
    return tuple(
        Structure(some[0].paths, log_joint[key], some[0].nodes, some[0].edges, len(some))
        for key, some in ((key, samples_of[key]) for key in graphs.values())
    )


def common_book(states: Sequence[State]) -> Book:
    """The book that all states are coded in, or one of all their compositions."""
    book = states[0].book
    if book is not None and all(state.book is book for state in states):
        return book
    return Book.of([state.paths for state in states])


def _agreement(rows: Codes, visits: Sequence[int]) -> list[int]:
    """For each row of codes, the customers in all samples who have the composition that they have in it."""
    shared = np.zeros((int(rows.max()) + 1, rows.shape[1]), dtype=np.int64)
    every = np.arange(rows.shape[1])
    for row, count in zip(rows, visits, strict=True):
        shared[row, every] += count
    return [int(shared[row, every].sum()) for row in rows]

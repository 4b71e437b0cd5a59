"""The urn: counts of transitions between compositions, and the prior they imply over all paths.

This is method (7), summed out as (8). Leaving composition K ("restaurant K") the next one is drawn from G_K, which has
the prior DP(α, H0). G_K is never sampled, and since H0 is discrete the tables are summed out too:

    p(next = k | from K) = (N[K→k] + α H0(k|K)) / (N[K] + α)                                     (method (8))

Nothing else in the package knows how counts become probabilities.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import TrajectoryError
from kerneltrail.kernels import Pool

ROOT = -1
"""The restaurant in which every user starts.

A key of its own, not mask 0: where the pool allows the empty composition, "noise only" is a node like any other, with
a restaurant like any other, and must not share the root's counts.
"""

Paths = tuple[tuple[int, ...], ...]
"""One tuple of bit masks per user, in the order of the batches."""


Shift = dict[tuple[int, int], int]
"""By how much the count of each transition changes."""


def transitions(path: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The (from, to) pairs of one path; the first leaves the root.

    >>> list(transitions((1, 1, 3)))
    [(-1, 1), (1, 1), (1, 3)]
    """
    parent = ROOT
    for mask in path:
        yield parent, mask
        parent = mask


def customers_of(paths: Paths) -> dict[int, list[tuple[int, int]]]:
    """The customers (user, batch) assigned to each composition, user by user, in the order of the batches."""
    customers: dict[int, list[tuple[int, int]]] = {}
    for m, path in enumerate(paths):
        for t, mask in enumerate(path):
            customers.setdefault(mask, []).append((m, t))
    return customers


def last_use(paths: Paths) -> dict[int, dict[int, int]]:
    """For each composition, the last batch at which each of its users is assigned to it.

    >>> last_use(((1, 1, 3), (3,)))
    {1: {0: 1}, 3: {0: 2, 1: 0}}
    """
    return {mask: dict(customers) for mask, customers in customers_of(paths).items()}


class Counts:
    """How often each transition was made, and by how many customers each composition is used.

    >>> counts = Counts.of([(1, 1, 3), (1, 3)])
    >>> counts.rows, counts.totals, counts.uses
    ({-1: {1: 2}, 1: {1: 1, 3: 2}}, {-1: 2, 1: 3}, {1: 3, 3: 2})
    """

    __slots__ = ("rows", "totals", "uses")

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, int]] = {}  # N[K→k], only positive entries
        self.totals: dict[int, int] = {}  # N[K]
        self.uses: dict[int, int] = {}  # Σ_K N[K→k]

    @classmethod
    def of(cls, paths: Iterable[Sequence[int]]) -> Counts:
        """The counts of complete paths."""
        counts = cls()
        for path in paths:
            counts.add_path(path)
        return counts

    @classmethod
    def of_steps(cls, masks: Sequence[int], steps: NDArray[np.int64]) -> Counts:
        """From N[K→k], (S+1, S), with the root in row 0."""
        counts = cls()
        parents = (ROOT, *masks)
        for i, j in zip(*(each.tolist() for each in np.nonzero(steps)), strict=True):
            parent, child, n = parents[i], masks[j], int(steps[i, j])
            counts.rows.setdefault(parent, {})[child] = n
            counts.totals[parent] = counts.totals.get(parent, 0) + n
            counts.uses[child] = counts.uses.get(child, 0) + n
        return counts

    def add_path(self, path: Sequence[int]) -> None:
        """Count every transition of a path."""
        for parent, child in transitions(path):
            self.add(parent, child)

    def remove_path(self, path: Sequence[int]) -> None:
        """Forget every transition of a path that was counted before."""
        for parent, child in transitions(path):
            self.remove(parent, child)

    def add(self, parent: int, child: int) -> None:
        """Count one transition."""
        row = self.rows.setdefault(parent, {})
        row[child] = row.get(child, 0) + 1
        self.totals[parent] = self.totals.get(parent, 0) + 1
        self.uses[child] = self.uses.get(child, 0) + 1

    def remove(self, parent: int, child: int) -> None:
        """Forget one transition that was counted before."""
        row = self.rows[parent]
        left = row[child] - 1
        if left:
            row[child] = left
        else:
            del row[child]
        total = self.totals[parent] - 1
        if total:
            self.totals[parent] = total
        else:
            del self.totals[parent], self.rows[parent]
        uses = self.uses[child] - 1
        if uses:
            self.uses[child] = uses
        else:
            del self.uses[child]

    def shift(self, by: Shift) -> None:
        """Change the counts of several transitions at once."""
        for (parent, child), change in by.items():
            if not change:
                continue
            row = self.rows.setdefault(parent, {})
            for table, key in ((row, child), (self.totals, parent), (self.uses, child)):
                left = table.get(key, 0) + change
                if left:
                    table[key] = left
                else:
                    del table[key]
            if not row:
                del self.rows[parent]

    def of_edge(self, parent: int, child: int) -> int:
        """N[K→k]."""
        row = self.rows.get(parent)
        return row.get(child, 0) if row is not None else 0

    @property
    def edges(self) -> int:
        """Number of distinct transitions in use, those from the root included."""
        return sum(map(len, self.rows.values()))


class Urn:
    """DP(α, H0) in every restaurant, with H0 from a pool and, optionally, biased towards what the parent holds.

    Immutable but for its memory of log H0, which is asked for often.

    Attributes:
        pool: the products and H0.
        alpha: the concentration α.
        keep: if given, products already in the parent are included with this probability (method §3.2).

    >>> urn = Urn(Pool.paper())
    >>> counts = Counts.of([(0b011, 0b011)])
    >>> round(urn.log_step(counts, 0b011, 0b011), 4)      # log((1 + H0) / (1 + 1))
    -0.6712
    """

    def __init__(self, pool: Pool, *, alpha: float = 1.0, keep: float | None = None) -> None:
        if not (alpha > 0.0 and math.isfinite(alpha)):
            raise TrajectoryError(f"the concentration α must be positive, got {alpha}")
        if keep is not None and not 0.0 < keep < 1.0:
            raise TrajectoryError(f"the parent bias must lie strictly between 0 and 1, got {keep}")
        self.pool = pool
        self.alpha = float(alpha)
        self.keep = keep
        self._log_alpha = math.log(alpha)
        self._log_mass: dict[int | tuple[int, int], float] = {}
        self._falling: dict[int | None, list[float]] = {}
        self._mass_matrix = lru_cache(maxsize=4)(self._build_mass_matrix)

    def __repr__(self) -> str:
        return f"Urn(<pool of {len(self.pool)}>, alpha={self.alpha}, keep={self.keep})"

    def log_mass(self, parent: int, child: int) -> float:
        """log α H0(child | parent); -inf for a composition the pool does not allow."""
        key = child if self.keep is None else (parent, child)
        log_mass = self._log_mass.get(key)
        if log_mass is None:
            log_mass = self._log_alpha + self.pool.log_h0(child, parent=max(parent, 0), keep=self.keep)
            self._log_mass[key] = log_mass
        return log_mass

    def sample_h0(self, rng: np.random.Generator, parent: int) -> int:
        """A composition from H0( · | parent), by the distance from one included product to the next.

        With s_j = Π_{i≤j} (1-p_i), the next one included after i is beyond j with probability s_j/s_i: one uniform
        number and one bisection each, without rejection where the empty composition is not allowed.
        """
        key = None if self.keep is None else parent
        falling = self._falling.get(key)  # -s_j, ascending
        if falling is None:
            falling = self._falling[key] = self._build_falling(parent)
        size, none = len(falling), -falling[-1]
        mask = 0
        if self.pool.allow_empty:
            product = bisect_left(falling, -rng.random())
        else:
            product = min(bisect_left(falling, -(none + (1.0 - none) * rng.random())), size - 1)
        while product < size:
            mask |= 1 << product
            product = bisect_left(falling, falling[product] * rng.random(), product + 1)
        return mask

    def _build_falling(self, parent: int) -> list[float]:
        bias = 0 if self.keep is None else max(parent, 0)
        chances = [
            self.keep if self.keep is not None and bias >> i & 1 else p for i, p in enumerate(self.pool.probabilities)
        ]
        return [-math.prod(1.0 - p for p in chances[: i + 1]) for i in range(len(chances))]

    def log_step(self, counts: Counts, parent: int, child: int) -> float:
        """log p(next = child | from parent), given the transitions counted: method (8)."""
        row = counts.rows.get(parent)
        log_mass = self.log_mass(parent, child)
        if row is None:
            return log_mass - self._log_alpha
        n = row.get(child)
        # A mass may be too small for a float (large pools): it is added to a count, or kept as a logarithm.
        top = log_mass if n is None else math.log(n + math.exp(log_mass))
        return top - math.log(counts.totals[parent] + self.alpha)

    def log_prior(self, counts: Counts) -> float:
        """log of Π_K { Γ(α)/Γ(α+N[K]) · Π_k Γ(αH0(k)+N[K→k])/Γ(αH0(k)) }: method (9) without evidences."""
        terms = [math.lgamma(self.alpha) - math.lgamma(self.alpha + total) for total in counts.totals.values()]
        terms += [self.log_rising(parent, child, n) for parent, row in counts.rows.items() for child, n in row.items()]
        return math.fsum(terms)  # exact, so that the order in which counts were made does not show

    def log_shift(self, counts: Counts, by: Shift) -> float:
        """The difference that a change of counts would make to `log_prior`."""
        total = 0.0
        rows: dict[int, int] = {}
        for (parent, child), change in by.items():
            if change:
                n = counts.of_edge(parent, child)
                total += self.log_rising(parent, child, n + change) - self.log_rising(parent, child, n)
                rows[parent] = rows.get(parent, 0) + change
        for parent, change in rows.items():
            if change:
                n = counts.totals.get(parent, 0)
                total += math.lgamma(self.alpha + n) - math.lgamma(self.alpha + n + change)
        return total

    def log_rising(self, parent: int, child: int, n: int) -> float:
        """log Γ(a+n)/Γ(a) with a = αH0(child|parent); Γ(a) = Γ(1+a)/a keeps it finite for a tiny mass."""
        if n == 0:
            return 0.0
        log_mass = self.log_mass(parent, child)
        if n == 1:
            return log_mass
        mass = math.exp(log_mass)
        return log_mass + math.lgamma(mass + n) - math.lgamma(mass + 1.0)

    def log_path(self, counts: Counts, path: Sequence[int]) -> float:
        """log p(path | everybody counted), its own transitions counted one after the other; counts are restored."""
        total = 0.0
        for parent, child in transitions(path):
            total += self.log_step(counts, parent, child)
            counts.add(parent, child)
        counts.remove_path(path)
        return total

    def step_matrix(self, counts: Counts, masks: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """N[K→k] + αH0(k|K) and N[K] + α, for K in (ROOT, *masks) and k in masks.

        Returns:
            Arrays of shapes [1+S, S] and [1+S].
        """
        tops = self._mass_matrix(masks).copy()
        bottoms = np.full(len(masks) + 1, self.alpha)
        index = {mask: i for i, mask in enumerate(masks)}
        for parent, row in counts.rows.items():
            i = 0 if parent == ROOT else index.get(parent, -2) + 1
            if i < 0:
                continue
            bottoms[i] += counts.totals[parent]
            for child, n in row.items():
                j = index.get(child)
                if j is not None:
                    tops[i, j] += n
        return tops, bottoms

    def _build_mass_matrix(self, masks: tuple[int, ...]) -> NDArray[np.float64]:
        parents = (ROOT, *masks)
        if self.keep is None:
            row = np.exp([self.log_mass(ROOT, child) for child in masks])
            return np.broadcast_to(row, (len(parents), len(masks)))
        return np.exp([[self.log_mass(parent, child) for child in masks] for parent in parents])

    def __reduce__(self) -> tuple[object, ...]:
        # For worker processes; the memory is not sent along.
        return partial(Urn, alpha=self.alpha, keep=self.keep), (self.pool,)

"""Paths as codes: what a chain stands on and has visited, a byte or two for each customer.

A code is a composition's place in a list, say of a fit's candidates. All customers are in one row, user after user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.sampler.urn import Paths

Codes = NDArray[Any]
"""Places in a list of compositions, one for each customer; the smallest unsigned integers that hold them."""


@dataclass(frozen=True)
class Book:
    """The list that codes refer to, and how many batches each user has.

    >>> book = Book((1, 2, 3), (2, 1))
    >>> codes = book.encode(((1, 3), (1,)))
    >>> codes, book.decode(codes), book.edges(codes)
    (array([0, 2, 0], dtype=uint8), ((1, 3), (1,)), 2)
    """

    masks: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, samples: Sequence[Paths]) -> Book:
        """The list of all compositions in some sets of paths."""
        masks = {mask for paths in samples for path in paths for mask in path}
        return cls(tuple(sorted(masks)), tuple(map(len, samples[0])))

    @cached_property
    def index(self) -> dict[int, int]:
        """The code of each composition."""
        return {mask: code for code, mask in enumerate(self.masks)}

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first customer of each user, and the number of customers at the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What holds a code."""
        return np.min_scalar_type(max(len(self.masks) - 1, 0))

    def encode(self, paths: Iterable[Sequence[int]]) -> Codes:
        """Paths as codes."""
        try:
            flat = [self.index[mask] for path in paths for mask in path]
        except KeyError as unknown:
            raise TrajectoryError(f"{unknown} is none of the {len(self.masks)} compositions on the list") from None
        if len(flat) != self.starts[-1]:
            raise TrajectoryError(f"paths of {len(flat)} customers on a list of {self.starts[-1]}")
        return np.array(flat, dtype=self.dtype)

    def decode(self, codes: Codes) -> Paths:
        """Codes as paths."""
        masks = [self.masks[code] for code in codes.tolist()]
        return tuple(tuple(masks[a:b]) for a, b in pairwise(self.starts.tolist()))

    def steps(self, codes: Codes) -> NDArray[np.int64]:
        """N[K→k], (S+1, S): how often each transition is made, with the root in row 0."""
        size = len(self.masks)
        wide = codes.astype(np.int64)
        parents = np.zeros_like(wide)
        parents[1:] = wide[:-1] + 1
        parents[self.starts[:-1]] = 0
        return np.bincount(parents * size + wide, minlength=(size + 1) * size).reshape(size + 1, size)

    def nodes(self, codes: Codes) -> int:
        """Number of compositions in use."""
        return int(np.count_nonzero(np.bincount(codes)))

    def edges(self, codes: Codes) -> int:
        """Number of distinct transitions in use, those from the root included."""
        return int(np.count_nonzero(self.steps(codes)))


@dataclass(frozen=True, eq=False)
class Visited:
    """Paths that a chain has visited, as codes, (sweeps, customers).

    >>> visited = Visited.of([((1, 3),), ((1, 1),)])
    >>> len(visited), visited.edges(), visited.agreement(((1, 1),))
    (2, [2, 2], [0.5, 1.0])
    """

    book: Book
    codes: Codes

    @classmethod
    def of(cls, samples: Sequence[Paths], book: Book | None = None) -> Visited:
        """Some sets of paths, by the book of all of them unless one is given."""
        book = book or Book.of(samples)
        rows = [book.encode(paths) for paths in samples]
        return cls(book, np.array(rows, dtype=book.dtype).reshape(len(rows), int(book.starts[-1])))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, sweep: int) -> Paths:
        return self.book.decode(self.codes[sweep])

    def since(self, first: int) -> Visited:
        """From a sweep on."""
        return Visited(self.book, self.codes[first:])

    def then(self, other: Visited) -> Visited:
        """These, and what was visited after them."""
        return Visited(self.book, np.concatenate([self.codes, other.codes]) if len(self) else other.codes)

    def edges(self) -> list[int]:
        """Number of distinct transitions in use, after each sweep."""
        return [self.book.edges(codes) for codes in self.codes]

    def agreement(self, paths: Paths) -> list[float]:
        """Share of customers with the same composition as in some paths, after each sweep."""
        if tuple(map(len, paths)) != self.book.lengths:
            raise TrajectoryError("paths of different lengths cannot be compared")
        # What is not on the list agrees with nobody.
        wanted = np.array([self.book.index.get(mask, -1) for path in paths for mask in path])
        return [float(np.mean(codes == wanted)) for codes in self.codes]

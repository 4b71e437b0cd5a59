"""How a user's rows are cut into batches: by size, by a column, at given ends, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import DataError
from kerneltrail.names import nearest
from kerneltrail.store.validate import plain


@dataclass(frozen=True)
class Batching:
    """A rule for batches; at most one of its fields is set, and none means that each user's rows are one batch.

    Attributes:
        size: rows per batch, counted over the rows that are kept. What remains at the end is a batch too, however
            short, so a user with fewer rows than `size` has one batch.
        column: a column of the table; a batch ends where its value changes in time order. A value may not come back.
        ends: rows seen after each batch, the same for all users. They count the rows in the table, before any is
            dropped, so a batch ends at the same time whatever is missing in it. Ends beyond a user's last row are left
            out, and rows beyond the last end are one more batch.
        ends_of: the same, for each user by name; here the last end has to be the user's last row.
    """

    size: int | None = None
    column: str | None = None
    ends: tuple[int, ...] | None = None
    ends_of: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends_of", FrozenDict({k: _increasing(v) for k, v in self.ends_of.items()}))
        if self.ends is not None:
            object.__setattr__(self, "ends", _increasing(self.ends))
        if self.size is not None and (isinstance(self.size, bool) or int(self.size) != self.size or self.size < 1):
            raise DataError(f"a batch size must be a whole number of at least 1, got {self.size}")
        given = (self.size is not None) + (self.column is not None) + (self.ends is not None) + bool(self.ends_of)
        if given > 1:
            raise DataError("say how to cut batches in one way only: by size, by a column, or by ends")

    @classmethod
    def of(
        cls,
        batch_size: int | None = None,
        batch_column: str | None = None,
        ends: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
    ) -> Batching:
        """The rule that the arguments of `Cohort.from_table` describe; exactly one of them has to be given."""
        if sum(value is not None for value in (batch_size, batch_column, ends)) != 1:
            raise DataError("say how to cut batches, in one way: batch_size=, batch_column= or ends=")
        if isinstance(ends, Mapping):
            return cls(ends_of={str(name): tuple(rows) for name, rows in ends.items()})
        return cls(batch_size, batch_column, None if ends is None else tuple(ends))

    def cut(self, user: str, kept: Sequence[bool], labels: Sequence[str] | None) -> tuple[int, ...]:
        """Where batches end: of a user's rows in time order those that are kept; `labels` are the batch column's."""
        total = sum(kept)
        if not total:
            return ()
        if self.size is not None:
            return (*range(self.size, total, self.size), total)
        if self.column is not None:
            marks = _changes(user, self.column, labels or ())
        elif self.ends is not None:
            marks = [end for end in self.ends if end < len(kept)]
        elif self.ends_of:
            marks = list(self._own_ends(user, len(kept)))
        else:
            marks = []
        # A batch that lost all its rows is no batch: its end falls on the one before it.
        ends = {sum(kept[:mark]) for mark in marks} | {total}
        return tuple(sorted(ends - {0}))

    def _own_ends(self, user: str, rows: int) -> tuple[int, ...]:
        if user not in self.ends_of:
            raise DataError(f"no batch ends are given for user {user!r}; {nearest(user, self.ends_of, 'given are')}")
        ends = self.ends_of[user]
        if ends[-1] != rows:
            raise DataError(f"user {user!r} has {rows} rows, but its last batch is said to end at row {ends[-1]}")
        return ends

    def to_json(self) -> dict[str, Any]:
        """As plain values, only what is set."""
        return {key: value for key, value in plain(self).items() if value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Batching:
        """The rule that `to_json` described."""
        return cls(**{key: value for key, value in stored.items() if key in cls.__dataclass_fields__})


def _increasing(ends: Sequence[int]) -> tuple[int, ...]:
    whole = tuple(int(end) for end in ends)
    if not whole or whole != tuple(ends) or any(b <= a for a, b in zip((0, *whole), whole, strict=False)):
        raise DataError(f"batch ends must be whole numbers that increase from above 0, got {list(ends)}")
    return whole


def _changes(user: str, column: str, labels: Sequence[str]) -> list[int]:
    marks: list[int] = []
    seen: set[str] = set()
    for row, label in enumerate(labels):
        if row and label != labels[row - 1]:
            marks.append(row)
            seen.add(labels[row - 1])
        if label in seen:
            raise DataError(
                f"batch {label!r} of user {user!r} comes back after another batch (column {column!r}, the user's row "
                f"{row + 1} in time order); batches have to follow each other"
            )
    return marks

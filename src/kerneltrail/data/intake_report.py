"""What happened to the rows of a table on their way into a cohort, as a value: nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerneltrail.data.frozen import Frozen

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Report:
    """How many rows were read, kept, dropped and filled, and why.

    A row with two missing values counts under both columns, and once in `rows_read - rows_kept`.

    Attributes:
        rows_read: rows in the table.
        rows_kept: rows in the cohort.
        dropped: rows dropped for a missing value, by column, then by user.
        filled: missing values replaced as declared, by column, then by user.
        unavailable: rows dropped because the user was not available, by user.
        repeated: rows whose order value equals that of the row before, by user; they keep the table's order.
        unsorted: users whose rows were not in time order and were sorted.
        empty: users of whom no row is left; they are not in the cohort.
        notes: what a loader has to say about its source.
    """

    rows_read: int = 0
    rows_kept: int = 0
    dropped: Counts = field(default_factory=Frozen)
    filled: Counts = field(default_factory=Frozen)
    unavailable: Mapping[str, int] = field(default_factory=Frozen)
    repeated: Mapping[str, int] = field(default_factory=Frozen)
    unsorted: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        for label in ("dropped", "filled"):
            put(self, label, Frozen({name: Frozen(by_user) for name, by_user in getattr(self, label).items()}))
        for label in ("unavailable", "repeated"):
            put(self, label, Frozen(getattr(self, label)))

    def missing(self, column: str) -> int:
        """Rows dropped for a missing value in that column."""
        return sum(self.dropped.get(column, {}).values())

    def __str__(self) -> str:
        lines = [f"{self.rows_read} rows read, {self.rows_kept} kept"]
        lines += [f"dropped, {column} missing: {_counted(by_user)}" for column, by_user in self.dropped.items()]
        lines += [f"filled, {column} missing: {_counted(by_user)}" for column, by_user in self.filled.items()]
        if self.unavailable:
            lines.append(f"dropped, user not available: {_counted(self.unavailable)}")
        if self.repeated:
            lines.append(f"order value repeated (table order kept): {_counted(self.repeated)}")
        if self.unsorted:
            lines.append(f"sorted into time order: {_listed(self.unsorted)}")
        if self.empty:
            lines.append(f"no rows left, not in the cohort: {_listed(self.empty)}")
        return "\n".join([*lines, *self.notes])


def _counted(by_user: Mapping[str, int]) -> str:
    worst = sorted(by_user.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {count}" for name, count in worst[:5])
    more = f", {len(worst) - 5} users more" if len(worst) > 5 else ""
    total = sum(by_user.values())
    return f"{total} {'row' if total == 1 else 'rows'} ({shown}{more})"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

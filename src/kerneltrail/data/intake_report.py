"""What happened to a table's rows on the way to users: what was kept, dropped and filled, and what is suspicious."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerneltrail.data.assignment import IMPOSSIBLE
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.kernels.phrases import listing
from kerneltrail.names import nearest

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class UnknownLevel:
    """Rows dropped because a categorical column has a level that a model does not know.

    Attributes:
        column: its name.
        value: the level.
        levels: those that are known.
        rows: of the table, counted from 1.
        users: how many rows, by user.
    """

    column: str
    value: str
    levels: tuple[str, ...]
    rows: tuple[int, ...]
    users: Mapping[str, int]

    def __str__(self) -> str:
        shown = listing([*map(str, self.rows[:4]), *([f"{len(self.rows) - 4} more"] if len(self.rows) > 4 else [])])
        where = f"row{'s' if len(self.rows) > 1 else ''} {shown}"
        hint = nearest(self.value, self.levels, "they are")
        return f"{self.column!r} is {self.value!r} in {where}, which is not one of its levels; {hint}"


@dataclass(frozen=True)
class IntakeReport:
    """How many rows were read, kept, dropped and filled, and why.

    A row with two missing values counts under both columns, and once in `rows_read - rows_kept`.

    Attributes:
        rows_read: rows in the table.
        rows_kept: rows in the cohort.
        dropped: rows dropped for a missing value, by column, then by user.
        unknown: rows dropped for a level that a model does not know.
        filled: missing values replaced as declared, by column, then by user.
        idle: missing actions and probabilities of actions in rows at which nobody could act, which are taken as 0, by
            column, then by user.
        unavailable: rows dropped because the user was not available, by user.
        repeated: rows whose order value equals that of the row before, by user; they keep the table's order.
        unsorted: users whose rows were not in time order and were sorted.
        certain: rows at which the action's probability was exactly 0 or 1 although the user was available, by user.
        impossible: rows with an action although the user was not available, by user.
        empty: users of whom no row is left; they are not in the cohort.
        refused: users left out for a cell that cannot be used, with the reason, where the reader asked to go on.
        notes: what a loader has to say about its source.
    """

    rows_read: int = 0
    rows_kept: int = 0
    dropped: Counts = field(default_factory=FrozenDict)
    filled: Counts = field(default_factory=FrozenDict)
    idle: Counts = field(default_factory=FrozenDict)
    unavailable: Mapping[str, int] = field(default_factory=FrozenDict)
    repeated: Mapping[str, int] = field(default_factory=FrozenDict)
    unsorted: tuple[str, ...] = ()
    certain: Mapping[str, int] = field(default_factory=FrozenDict)
    impossible: Mapping[str, int] = field(default_factory=FrozenDict)
    empty: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=FrozenDict)
    notes: tuple[str, ...] = ()
    unknown: tuple[UnknownLevel, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        for label in ("dropped", "filled", "idle"):
            put(self, label, FrozenDict({name: FrozenDict(by_user) for name, by_user in getattr(self, label).items()}))
        for label in ("unavailable", "repeated", "certain", "impossible", "refused"):
            put(self, label, FrozenDict(getattr(self, label)))

    def missing(self, column: str) -> int:
        """Rows dropped for a missing value in that column."""
        return sum(self.dropped.get(column, {}).values())

    @property
    def left_out(self) -> list[str]:
        """A sentence for each user who was refused."""
        return [self.why(name) for name in self.refused]

    def why(self, name: str) -> str:
        """Why a user was refused, as a sentence."""
        return f"user {name!r} is left out: {self.refused[name].removeprefix(f'user {name!r}: ')}"

    def __str__(self) -> str:
        lines = [f"{row_count(self.rows_read)} read, {self.rows_kept} kept"]
        lines += [f"dropped, {column} missing: {counted(by_user)}" for column, by_user in self.dropped.items()]
        lines += [f"warning: dropped, {counted(each.users)}: {each}" for each in self.unknown]
        lines += [f"filled, {column} missing: {counted(by_user)}" for column, by_user in self.filled.items()]
        lines += [
            f"{column} missing where the user was not available, taken as 0: {counted(by_user)}"
            for column, by_user in self.idle.items()
        ]
        if self.unavailable:
            lines.append(f"dropped, user not available: {counted(self.unavailable)}")
        if self.repeated:
            lines.append(f"order value repeated (table order kept): {counted(self.repeated)}")
        if self.unsorted:
            lines.append(f"sorted into time order: {listed(self.unsorted)}")
        if self.certain:
            lines.append(
                f"suspicious, probability exactly 0 or 1 although the user was available, so nothing was drawn: "
                f"{counted(self.certain)}"
            )
        if self.impossible:
            lines.append(f"suspicious, {IMPOSSIBLE}: {counted(self.impossible)}")
        if self.empty:
            lines.append(f"no rows left, not in the cohort: {listed(self.empty)}")
        if self.refused:
            lines.append(f"left out for what cannot be used, not in the cohort: {listed(tuple(self.refused))}")
            lines += [f"  {problem}" for problem in list(self.refused.values())[:5]]
        return "\n".join([*lines, *self.notes])


def counted(by_user: Mapping[str, int]) -> str:
    """How many rows altogether, and of whom most: ``28 rows (ann 20, bob 8)``."""
    worst = sorted(by_user.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {count}" for name, count in worst[:5])
    more = f", {len(worst) - 5} {'user' if len(worst) == 6 else 'users'} more" if len(worst) > 5 else ""
    return f"{row_count(sum(by_user.values()))} ({shown}{more})"


def row_count(rows: int) -> str:
    """``1 row``, ``2 rows``."""
    return f"{rows} {'row' if rows == 1 else 'rows'}"


def listed(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

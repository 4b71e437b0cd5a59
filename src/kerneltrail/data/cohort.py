"""A cohort: the users of one table, scaled, with what it takes to read another table in the same way."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail.data.batching import Batching
from kerneltrail.data.checks import DataCheck, PilotSummary, check
from kerneltrail.data.intake import dropping_levels, read_users, with_outcomes
from kerneltrail.data.intake_report import IntakeReport
from kerneltrail.data.scaling import Scaler, Scaling, TargetScaling
from kerneltrail.data.schema import Policy, Schema
from kerneltrail.data.table import delimiter_of
from kerneltrail.data.times import write_times
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels.phrases import counted
from kerneltrail.names import nearest, only_known, shortened, unused
from kerneltrail.store.atomic import write
from kerneltrail.store.digest import digest
from kerneltrail.views import show


@dataclass(frozen=True)
class Cohort:
    """Users with the same columns. Build it with `from_table`, `from_users` or `from_schema`.

    `users` are scaled as the schema says, and are what models see; `raw` are the same users in data units, in order
    of appearance, and `report` says what happened to the table's rows. Iterating, `len` and `cohort["ann"]` are over
    the scaled ones.

    >>> rows = {"who": ["a", "a", "b"], "day": [1, 2, 1], "hour": [8, 20, 14], "steps": [3.0, 5.0, 4.0]}
    >>> cohort = Cohort.from_table(rows, user="who", order="day", target="steps", covariates=["hour"], batch_size=1)
    >>> [user.X[:, 0].tolist() for user in cohort], cohort.scaler.length("hour", 0.25)
    ([[0.0, 1.0], [0.5]], 3.0)
    """

    schema: Schema
    raw: tuple[User, ...]
    report: IntakeReport = field(default_factory=IntakeReport)

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", tuple(self.raw))
        if not self.raw:
            raise DataError("a cohort needs at least one user")
        names: set[str] = set()
        for user in self.raw:
            if user.covariates != self.schema.covariates:
                raise DataError(
                    f"user {user.name!r} has covariates {', '.join(user.covariates)}, the cohort "
                    f"{', '.join(self.schema.covariates)}"
                )
            if user.name in names:
                raise DataError(f"two users are named {user.name!r}")
            names.add(user.name)

    @classmethod
    @only_known("option of Cohort.from_table", DataError)
    def from_table(
        cls,
        rows: Any,
        *,
        user: str,
        order: str,
        target: str,
        covariates: Sequence[str],
        batch_size: int | None = None,
        batch_column: str | None = None,
        ends: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
        action: str | None = None,
        availability: str | None = None,
        probability: str | None = None,
        categorical: Mapping[str, Sequence[Any]] | None = None,
        missing: str | Mapping[str, Policy] = "error",
        available_only: bool = False,
        scaling: Scaling = "group",
        target_scaling: TargetScaling = "standard",
        units: Mapping[str, str] | None = None,
        time_format: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        labels: Mapping[str, str] | None = None,
        value_names: Mapping[str, Mapping[float, str]] | None = None,
        skip_refused: bool = False,
    ) -> Cohort:
        """The cohort in a long table, one row per decision point.

        Args:
            rows: a pandas, polars or pyarrow table, a dict of columns, or a path to a CSV or Parquet file.
            user, target, covariates, action, availability, probability, available_only, scaling, target_scaling, units,
                labels, value_names, time_format, delimiter, decimal: as in `Schema`; covariates are numbers, unless
                declared `categorical`.
            order: column of numbers, times or ISO texts (or as `time_format` says) that orders a user's rows. Rows are
                sorted by it; rows with equal values keep the table's order and are counted in the report.
            batch_size, batch_column, ends: how batches are cut; one of the three (see Batching).
            categorical: levels by covariate, coded 0, 1, … in the order given.
            missing: what to do about missing values: ``error``, ``drop`` (the row), or by column, where a number or a
                level to fill in is possible too and columns not named keep ``error``. Nothing is ever filled unasked.
            skip_refused: leave out a user with a cell that cannot be used, and say so in the report, in place of
                refusing the table.

        Raises:
            DataError: naming column, row and user.
        """
        schema = Schema(
            user=user,
            order=order,
            target=target,
            covariates=covariates if isinstance(covariates, str) else tuple(covariates),  # type: ignore[arg-type]
            batching=Batching.of(batch_size, batch_column, ends),
            action=action,
            availability=availability,
            probability=probability,
            levels=dict(categorical or {}),  # type: ignore[arg-type]
            available_only=available_only,
            scaling=scaling,
            target_scaling=target_scaling,
            units=units or {},
            time_format=time_format,
            delimiter=delimiter,
            decimal=decimal,
            labels=labels or {},
            value_names=value_names or {},  # type: ignore[arg-type]
        )
        if isinstance(missing, str):
            if missing not in ("error", "drop"):
                raise DataError(f"missing must be 'error', 'drop' or a policy by column, got {missing!r}")
            missing = dict.fromkeys(schema.values, missing)
        schema = replace(schema, missing={name: policy for name, policy in missing.items() if policy != "error"})
        users, report = read_users(schema, rows, skip_refused=skip_refused)
        return cls(schema.fitted(users), users, report)

    @classmethod
    def from_schema(
        cls,
        schema: Schema,
        rows: Any,
        *,
        batching: Batching | None = None,
        labels: Mapping[str, str] | None = None,
        value_names: Mapping[str, Mapping[float, str]] | None = None,
        skip_refused: bool = False,
    ) -> Cohort:
        """Another table, read as a schema says and with its scaler: how a model meets new users.

        Args:
            schema: how the first table was read, such as a model's ``schema``.
            rows: what `from_table` takes.
            batching: how to cut batches, if otherwise than the first table's; ``Batching()`` makes one batch of it.
            labels, value_names: as in `Schema`, in place of the first table's.
            skip_refused: as in `from_table`; values that only scaling makes unusable count too. Of a categorical column
                whose missing values are dropped, a level that is not known costs its row alone.
        """
        changes: dict[str, Any] = {"batching": batching, "labels": labels, "value_names": value_names}
        schema = replace(schema, **{name: change for name, change in changes.items() if change is not None})
        rows = with_outcomes(schema, rows)
        drop_levels = dropping_levels(schema) if skip_refused else ()
        users, report = read_users(schema, rows, skip_refused=skip_refused, drop_levels=drop_levels)
        schema = schema if schema.scaler is not None else schema.fitted(users)
        if skip_refused:
            problems = {user.name: problem for user in users if (problem := _scaling_problem(schema, user))}
            users = tuple(user for user in users if user.name not in problems)
            refused = {**report.refused, **problems}
            report = replace(report, rows_kept=sum(user.rows for user in users), refused=refused)
            if not users:
                raise DataError(f"no user of the table can be used:\n{report}")
        return cls(schema, users, report)

    @classmethod
    def from_users(
        cls,
        users: Iterable[User],
        *,
        target: str = "y",
        scaling: Scaling = "group",
        target_scaling: TargetScaling = "none",
        units: Mapping[str, str] | None = None,
        report: IntakeReport | None = None,
    ) -> Cohort:
        """The cohort of users in data units that were made otherwise than from a table.

        Written to a table, its columns are ``user``, ``order`` and ``batch``, and ``action``, ``availability`` and
        ``probability`` if all users have them; with an underscore behind where a covariate has that name.
        """
        raw = tuple(users)
        if not raw:
            raise DataError("a cohort needs at least one user")

        def common(label: str) -> str | None:
            return free(label) if all(getattr(user, label) is not None for user in raw) else None

        def free(label: str) -> str:
            return unused(label, (*raw[0].covariates, target))

        schema = Schema(
            user=free("user"),
            order=free("order"),
            target=target,
            covariates=raw[0].covariates,
            batching=Batching(column=free("batch")),
            scaling=scaling,
            target_scaling=target_scaling,
            units=units or {},
            action=common("action"),
            availability=common("availability"),
            probability=common("probability"),
        )
        rows = sum(user.rows for user in raw)
        return cls(schema.fitted(raw), raw, report or IntakeReport(rows_read=rows, rows_kept=rows))

    @property
    def covariates(self) -> tuple[str, ...]:
        """The covariates' names."""
        return self.schema.covariates

    @property
    def target(self) -> str:
        """The target's name."""
        return self.schema.target

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Levels by categorical covariate."""
        return self.schema.levels

    @property
    def units(self) -> Mapping[str, str]:
        """Units by covariate or target."""
        return self.schema.units

    @property
    def names(self) -> tuple[str, ...]:
        """The users' names."""
        return tuple(user.name for user in self.raw)

    @property
    def rows(self) -> int:
        """Number of rows of all users together."""
        return sum(user.rows for user in self.raw)

    @cached_property
    def users(self) -> tuple[User, ...]:
        """The users, scaled."""
        return tuple(self.schema.scaler_for(user).apply(user) for user in self.raw)

    @property
    def scaler(self) -> Scaler:
        """The group's scaler; under ``user`` scaling there is none, and `scaler_for` has to be asked."""
        if self.schema.scaling == "user":
            raise DataError("each user of this cohort has a scaler of its own: ask scaler_for(name)")
        return self.schema.scaler or Scaler.identity(self.covariates)

    def scaler_for(self, user: str | User) -> Scaler:
        """The scaler that turned a user's data units into what `users` holds."""
        return self.schema.scaler_for(self.raw[self._index(user if isinstance(user, str) else user.name)])

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def _index(self, name: str) -> int:
        try:
            return self._indices[name]
        except KeyError:
            raise DataError(f"there is no user {name!r}; {nearest(name, self.names)}") from None

    def __getitem__(self, name: str) -> User:
        return self.users[self._index(str(name))]

    def __contains__(self, name: object) -> bool:
        return name in self._indices

    def __iter__(self) -> Iterator[User]:
        return iter(self.users)

    def __len__(self) -> int:
        return len(self.raw)

    def read(self, rows: Any, *, batching: Batching | None = None) -> Cohort:
        """Another table, read as this one was and scaled with this cohort's scaler; batches may be cut otherwise."""
        return Cohort.from_schema(self.schema, rows, batching=batching)

    def subset(self, names: Iterable[str]) -> Cohort:
        """Some of the users, in the order asked for, scaled as before."""
        return replace(self, raw=tuple(self.raw[self._index(str(name))] for name in names))

    def split(self, *, test: Iterable[str]) -> tuple[Cohort, Cohort]:
        """(training, test) cohorts. Under ``group`` scaling both use the scaler of the training users alone."""
        test_names = [str(name) for name in test]
        if not test_names or len(set(test_names)) == len(self):
            raise DataError("a split needs users on both sides")
        apart = set(test_names)
        train = [name for name in self.names if name not in apart]
        schema = self.schema.fitted(self.subset(train).raw)
        return replace(self.subset(train), schema=schema), replace(self.subset(test_names), schema=schema)

    def rescaled(self, scaling: Scaling, target_scaling: TargetScaling | None = None) -> Cohort:
        """The same users scaled otherwise, from data units: nothing is scaled twice."""
        schema = replace(self.schema, scaling=scaling, target_scaling=target_scaling or self.schema.target_scaling)
        return replace(self, schema=schema.fitted(self.raw))

    def check(self, table: Any = None, *, pilot: PilotSummary | None = None) -> DataCheck:
        """A look at the data before fitting: columns in numbers, and what is probably a mistake; nothing is changed.

        With the `table` that the cohort was read from, rows are named as they stand there. With `model.pilot`, new
        users are compared with the pilot users.
        """
        return check(self, table, pilot=pilot)

    def summary(self) -> list[dict[str, Any]]:
        """One row per user, in data units: rows, batches, mean and spread of the target, share of actions."""
        return [
            {
                "user": user.name,
                "rows": user.rows,
                "batches": user.batches,
                "mean": float(user.y.mean()) if user.rows else None,
                "sd": float(user.y.std(ddof=1)) if user.rows > 1 else None,
                "action": float(user.action.mean()) if user.action is not None and user.rows else None,
            }
            for user in self.raw
        ]

    def to_rows(self) -> dict[str, list[Any]]:
        """The cohort as a dict of columns in data units, levels as texts, with a column of batch numbers.

        The order column holds the order values, or 1, 2, … for users without; the batch column is named as in the
        schema, or ``batch``, and is left out where another column has that name.
        """
        schema = self.schema
        columns: dict[str, list[Any]] = {schema.user: [], schema.order: []}
        batch = schema.batching.column or "batch"
        named = batch not in (schema.user, schema.order, *schema.values)
        for user in self.raw:
            columns[schema.user] += [user.name] * user.rows
            order = np.arange(1, user.rows + 1) if user.order is None else user.order
            timed = order.dtype.kind == "M"
            columns[schema.order] += write_times(order, schema.time_format) if timed else order.tolist()
            starts = (0, *user.ends)
            numbers = [n for n, (a, b) in enumerate(zip(starts, user.ends, strict=False), 1) for _ in range(b - a)]
            if named:
                columns.setdefault(batch, []).extend(numbers)
            for index, name in enumerate(schema.covariates):
                if name == schema.order:
                    continue
                values = user.X[:, index].tolist()
                levels = schema.levels.get(name)
                columns.setdefault(name, []).extend([levels[int(v)] for v in values] if levels else values)
            columns.setdefault(schema.target, []).extend(user.y.tolist())
            for label in ("action", "availability", "probability"):
                column, entries = getattr(schema, label), getattr(user, label)
                if column is not None and column not in schema.covariates:
                    columns.setdefault(column, []).extend([None] * user.rows if entries is None else entries.tolist())
        return columns

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `to_rows` as CSV, with the delimiter and the decimal sign of the schema, so that it reads it back."""
        columns = self.to_rows()
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter_of(self.schema.delimiter))
        writer.writerow(columns)
        if self.schema.decimal == ",":
            columns = {
                name: [str(v).replace(".", ",") if isinstance(v, float) else v for v in values]
                for name, values in columns.items()
            }
        writer.writerows(zip(*columns.values(), strict=True))
        write(path, text.getvalue())

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the users, and of how they are scaled."""
        return digest(self.schema.to_json(), self.raw)

    def __repr__(self) -> str:
        users, rows = counted(len(self), "user"), counted(self.rows, "row")
        return f"Cohort: {users}, {rows}, {self.target} from {shortened(self.covariates)}"

    def _repr_html_(self) -> str:
        return show("cohort.html", self)


def _scaling_problem(schema: Schema, user: User) -> str:
    """Why a user's rows cannot be scaled; empty if they can."""
    try:
        schema.scaler_for(user).apply(user)
    except DataError as problem:
        return str(problem)
    return ""

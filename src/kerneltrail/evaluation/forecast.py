"""Predictions of rows whose outcome nobody knows yet, from what was seen of their users before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Batching, Cohort, Finding, IntakeReport, Schema, UnlabelledRows, User, read_unlabelled
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.checks import against_pilot, rows_against_pilot
from kerneltrail.data.columns import text_of
from kerneltrail.data.frames import frame_like
from kerneltrail.data.intake_report import counted, listed, row_count
from kerneltrail.data.schema import Policy
from kerneltrail.data.table import Table, read_table
from kerneltrail.errors import DataError
from kerneltrail.evaluation.follow import BAD_ROWS, follow, left_out
from kerneltrail.evaluation.predicted import (
    ACTED,
    OF_ENDS,
    OUTCOME,
    OUTSIDE,
    PREDICTED,
    TABLE_ROW,
    acted_columns,
    before_draw,
    predicted_columns,
    under_both,
)
from kerneltrail.kernels import Array
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.names import nearest, unused
from kerneltrail.trajectory.beyond import judged
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser

SEEN = "rows_seen"
"""Column of how many rows of its user were learnt from before a row was predicted."""


@dataclass(frozen=True)
class Forecast:
    """Predictions of a table's rows, in the table's order.

    Attributes:
        keys: the caller's columns that are carried along, values as they stand in the table.
        table_row: each row's number in the table, counted from 1: it joins back, and a row left out is a gap.
        rows_seen: how many rows of its user were learnt from before; 0 for a new user.
        numbers: the predictions, by column (`PREDICTED`, `OF_ENDS`, `ACTED` of `evaluation.predicted`), and the outcome
            where the table has one; NaN where a number does not apply.
        outside: for each row the covariates with a value beyond the pilot users' range.
        reports: what happened to the rows of each table, by the table's name.
        notes: what else is worth knowing, a sentence each.
        left_out: users who were left out, a sentence each.
        odd: what is odd about the tables beside the pilot users, such as a column in another unit.
        given: the caller's frame, if it was one.
    """

    keys: Mapping[str, list[Any]]
    table_row: NDArray[np.int64]
    rows_seen: NDArray[np.int64]
    numbers: Mapping[str, Array]
    outside: tuple[tuple[str, ...], ...]
    reports: Mapping[str, IntakeReport]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    odd: tuple[Finding, ...] = ()
    given: Any = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.table_row)

    def to_rows(self) -> dict[str, list[Any]]:
        """A dict of columns; a number that does not apply is None, covariates outside the range are a list."""
        numbers = {name: [None if v != v else v for v in values.tolist()] for name, values in self.numbers.items()}
        return self._columns(numbers, [list(names) for names in self.outside])

    def to_frame(self) -> Any:
        """A frame with the same columns, of the kind of the caller's table and with its index, if it was a frame.

        Covariates outside the range are one text, with semicolons between.
        """
        columns = self._columns(self.numbers, [";".join(names) for names in self.outside])
        return frame_like(self.given, columns, self.table_row - 1)

    def _columns(self, numbers: Mapping[str, Any], outside: list[Any]) -> dict[str, Any]:
        first = {TABLE_ROW: self.table_row.tolist(), **self.keys, SEEN: self.rows_seen.tolist()}
        return {**first, **numbers, OUTSIDE: outside}


def forecast(
    model: TrajectoryModel,
    history: Any,
    future: Any,
    *,
    users: Iterable[NewUser] = (),
    keep: Sequence[str] = (),
    batching: Batching | None = None,
    missing: Policy | None = None,
    schema: Schema | None = None,
    changes: Mapping[str, Any] | None = None,
    skip_refused: bool = False,
    tell: Callable[[str], None] = lambda name: None,
) -> Forecast:
    """Predict rows without an outcome, after following each of their users through the rows so far.

    With a reward model, the action of a row need not be known: then mean and variance are those over both actions, with
    their probability. That is the row's, or the pilot users' typical one.

    Args:
        model: what was learnt from pilot users.
        history: their rows so far, with outcomes: what `Cohort.from_table` takes; None if nobody has any.
        future: rows to be predicted, the same kind of table; neither outcome nor action have to be there.
        users: users that were followed before, in place of their history.
        keep: columns of `future` to carry along, besides those of user, order, batch and action.
        batching: how the history is cut into batches, if otherwise than the pilot users' rows.
        missing: what to do about missing values in columns for which the model does not say.
        schema: how the tables are read, if otherwise than the pilot users' was.
        changes: of how users are followed, such as ``{"selection": "greedy"}``.
        skip_refused: leave out a user with rows that cannot be used, and say so, in place of refusing everybody.
        tell: hears each user's name.
    """
    schema = schema or model.schema
    schema = schema if missing is None else schema.with_missing(missing)
    table = read_table(future, delimiter=schema.delimiter, decimal=schema.decimal)
    batch = (batching or schema.batching).column
    optional = [name for name in (batch, schema.action) if name is not None and name in table]
    keys = _keys(table, [schema.user, schema.order, *optional, *keep])
    rows, report = read_unlabelled(schema, table, skip_refused=skip_refused)
    refused = list(report.left_out)
    reports = {table.source: report}
    saved = _saved(users, rows, table, report)
    past: dict[str, User] | None = None
    strangers = False
    unusable: dict[str, str] = {}
    odd: tuple[Finding, ...] = ()
    if history is not None:
        before = read_table(history, delimiter=schema.delimiter, decimal=schema.decimal)
        cohort = Cohort.from_schema(schema, before, batching=batching, skip_refused=skip_refused)
        past = {user.name: user for user in cohort.raw}
        odd = against_pilot(cohort, model.pilot)
        strangers = not saved and _names(schema, table).isdisjoint(_names(schema, before))
        unusable = {name: cohort.report.why(name) for name in cohort.report.refused}
        label = before.source if before.source != table.source else f"{before.source} (so far)"
        reports = {label: cohort.report, **reports}
        if twice := [name for name in saved if name in past]:
            raise DataError(
                f"user {twice[0]!r} was followed before and has rows in {before.source}, too, which would count twice: "
                "give one of the two"
            )
    predicted: list[_Predicted] = []
    catch = BAD_ROWS if skip_refused else ()
    method = TrajectoryMethod(model, changes or {})
    with np.errstate(all="ignore"):  # what is not finite is said by name
        for each in rows:
            tell(each.name)
            try:
                known = (past or {}).get(each.name)
                user = saved.get(each.name) or unusable.get(each.name) or _followed(method, each.name, known, catch)
                if isinstance(user, str):
                    refused.append(user)
                else:
                    predicted.append(_predict(model, user, each))
            except catch as problem:
                refused.append(f"user {each.name!r} is left out, rows cannot be predicted: {problem}")
    if not predicted:
        raise DataError("\n".join([f"no row of {table.source} can be predicted", *refused]))
    notes = _renamed(keys)
    if strangers:
        notes.append(f"suspicious, nobody in {table.source} has rows so far: are users named alike in both tables?")
    notes += _notes(model, past, predicted)
    told = {name for finding in odd for name in finding.columns}
    ahead = rows_against_pilot(schema, rows, model.pilot, table.source)
    odd += tuple(finding for finding in ahead if told.isdisjoint(finding.columns))
    return _gathered(keys, predicted, reports, notes, refused, odd, future)


@dataclass(frozen=True)
class _Predicted:
    """One user's rows with their predictions."""

    rows: UnlabelledRows
    seen: int
    numbers: Mapping[str, Array]
    outside: Sequence[tuple[str, ...]]
    undrawn: int
    """Rows at which somebody could act, but it is not known whether anybody will."""


@dataclass(frozen=True)
class _Key:
    """A column of the caller's that is carried along: its name, the name under which it is written, and its values."""

    name: str
    written: str
    values: list[Any]


def _keys(table: Table, names: Sequence[str]) -> list[_Key]:
    names = list(dict.fromkeys(names))
    ours = {TABLE_ROW, SEEN, OUTSIDE, OUTCOME, *PREDICTED, *OF_ENDS, *ACTED}
    # A name that is not ours stays as it is, so others have to keep clear of it.
    taken = ours | set(names)
    return [_Key(name, unused(name, taken) if name in ours else name, table.column(name)) for name in names]


def _renamed(keys: Sequence[_Key]) -> list[str]:
    renamed = [f"{key.name} as {key.written}" for key in keys if key.name != key.written]
    return (
        [f"written under another name, since a column of the forecast has it: {', '.join(renamed)}"] if renamed else []
    )


def _names(schema: Schema, table: Table) -> set[str]:
    """Everybody in a table, those too whose rows cannot be used: who is left out is no stranger."""
    return {text_of(name) for name in table.column(schema.user)}


def _saved(
    users: Iterable[NewUser], rows: Sequence[UnlabelledRows], table: Table, report: IntakeReport
) -> dict[str, NewUser]:
    saved: dict[str, NewUser] = {}
    names = [*(each.name for each in rows), *report.refused, *report.empty]
    for user in users:
        if user.name in saved:
            raise DataError(f"user {user.name!r} is given twice")
        if user.name not in names:
            raise DataError(f"{table.source} has no rows of user {user.name!r}; {nearest(user.name, names, 'it has')}")
        saved[user.name] = user
    return saved


def _followed(
    method: TrajectoryMethod, name: str, known: User | None, catch: tuple[type[Exception], ...]
) -> NewUser | str:
    """The user after all rows so far, or why that cannot be; a new one without rows."""
    if known is None:
        return method(name)
    states: list[NewUser] = []
    followed = follow(method, known, catch=catch, after_update=lambda state, step: states.append(state))
    for failure in followed.failures:
        if failure.stage == "update":  # that an earlier batch was hard to predict does not matter here
            return left_out(known, failure)
    return states[-1]


@judged()
def _predict(model: TrajectoryModel, user: NewUser, rows: UnlabelledRows) -> _Predicted:
    numbers: dict[str, Array] = {}
    undrawn = 0
    if model.takes_action:
        assignment, chance = _assignment(model, rows)
        both = under_both(user, rows.X, assignment)
        numbers = predicted_columns(before_draw(both, chance))
        numbers |= acted_columns(both, user.advantage(rows.X), assignment.available)
        undrawn = int(np.sum(np.isnan(assignment.action) & (assignment.available != 0.0)))
    else:
        numbers = predicted_columns(user.predict(rows.X))
    if rows.y is not None:
        numbers[OUTCOME] = rows.y
    return _Predicted(rows, user.rows, numbers, model.schema.outside(rows.X), undrawn)


def _assignment(model: TrajectoryModel, rows: UnlabelledRows) -> tuple[Assignment, Array]:
    """What is known of the action, NaN where it is not, and how probable it is: 0 or 1 where it is known."""
    typical = None if model.reward is None else model.reward.typical
    unknown = np.full(len(rows.X), np.nan)
    action, probability, available = (
        unknown if column is None else column for column in (rows.action, rows.probability, rows.availability)
    )
    available = np.where(np.isnan(available), 1.0, available)
    if typical is not None:
        probability = np.where(np.isnan(probability), typical, probability)
    chance = np.where(available == 0.0, 0.0, np.where(np.isnan(action), probability, action))
    return Assignment(action, None if typical is None else probability, available), chance


def _gathered(
    keys: Sequence[_Key],
    predicted: Sequence[_Predicted],
    reports: Mapping[str, IntakeReport],
    notes: Sequence[str],
    refused: Sequence[str],
    odd: tuple[Finding, ...],
    future: Any,
) -> Forecast:
    """All users' predictions in the table's order."""
    rows = np.concatenate([each.rows.rows for each in predicted])
    order = np.argsort(rows)
    outside = [names for each in predicted for names in each.outside]
    seen = np.concatenate([np.full(len(each.rows.rows), each.seen, dtype=np.int64) for each in predicted])
    numbers = {name: np.concatenate([each.numbers[name] for each in predicted])[order] for name in predicted[0].numbers}
    return Forecast(
        {key.written: [key.values[row] for row in rows[order]] for key in keys},
        rows[order] + 1,
        seen[order],
        numbers,
        tuple(outside[place] for place in order),
        reports,
        tuple(notes),
        tuple(refused),
        odd,
        None if isinstance(future, str | os.PathLike | Table) else future,
    )


def _notes(model: TrajectoryModel, past: Mapping[str, User] | None, predicted: Sequence[_Predicted]) -> list[str]:
    """What is worth knowing of the users and rows that were predicted, a sentence each."""
    notes: list[str] = []
    new = tuple(each.rows.name for each in predicted if not each.seen)
    if new:
        how = "a new user" if len(new) == 1 else "new users"
        notes.append(f"no rows so far, predicted as {how}: {listed(new)}")
    late = {each.rows.name: n for each in predicted if (n := _not_later((past or {}).get(each.rows.name), each.rows))}
    if late:
        notes.append(f"suspicious, not later than the user's last row so far: {counted(late)}")
    notes += _undrawn(model, predicted)
    if not model.schema.knows_ranges:
        notes.append("the pilot users' ranges are not known (scaling none), so no value is said to be outside")
    beyond: dict[str, int] = {}
    for name in (name for each in predicted for names in each.outside for name in names):
        beyond[name] = beyond.get(name, 0) + 1
    if beyond:
        rows = sum(bool(names) for each in predicted for names in each.outside)
        notes.append(
            f"outside the pilot users' range: {row_count(rows)} "
            f"({', '.join(f'{name} {count}' for name, count in beyond.items())})"
        )
    return notes


def _undrawn(model: TrajectoryModel, predicted: Sequence[_Predicted]) -> list[str]:
    """What a prediction is where the action is not known."""
    action, typical = model.schema.action, None if model.reward is None else model.reward.typical
    empty = sum(int(np.isnan(each.numbers["mean"]).sum()) for each in predicted)
    averaged = sum(each.undrawn for each in predicted) - empty
    notes = []
    if averaged:
        usual = "" if typical is None else f" ({typical:.2f} where it is not given)"
        notes.append(
            f"{action} not known: {row_count(averaged)}; mean, sd and intervals are over both actions, with the "
            f"probability of {action}{usual}"
        )
    if empty:
        notes.append(
            f"{action} not known, nor its probability: {row_count(empty)}; mean, sd and intervals are empty, "
            "mean_action_0 and mean_action_1 are given"
        )
    return notes


def _not_later(known: User | None, rows: UnlabelledRows) -> int:
    """How many rows are not later than the last one of the same user so far."""
    if known is None or known.order is None or (known.order.dtype.kind == "M") != (rows.order.dtype.kind == "M"):
        return 0
    return int(np.sum(rows.order <= known.order[-1]))

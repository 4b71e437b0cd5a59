"""Users followed on a learnt graph as two tables: what was selected after each batch, and what was predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kerneltrail.data import User
from kerneltrail.evaluation.follow import BAD_ROWS, Failure, follow
from kerneltrail.evaluation.predicted import (
    ACTED,
    OF_ENDS,
    OUTCOME,
    OUTSIDE,
    PREDICTED,
    TABLE_ROW,
    acted_columns,
    cells,
    ends_of,
    predicted_columns,
    under_both,
)
from kerneltrail.kernels import NOTHING
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.names import unused
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_state import SelectionStep

KEY = ("user", "batch", TABLE_ROW)
"""Columns of both tables: who, which batch, counted from 1, and which row of the table that was read. It is the row
predicted, or the last one of the batch."""

STEP = ("rows", "composition", "probability", "next_rows", "next_rmse", "next_log_density")
"""Columns of a selection; one for each node's log evidence follows, empty where the node was no candidate."""

ROW = "row"
"""Column of a prediction: its row counted over the user's rows that were kept, from 1."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class SelectionTables:
    """The two tables, which grow with each user who is followed.

    Attributes:
        method: the model, and how users are followed.
        times: values of the column that orders rows, as they stand in the table that the users were read from.
        steps: a row for each user and batch.
        predicted: a row for each row, predicted before its batch was seen.
        limited: from which of its rows on the work of a user's updates was limited.
    """

    method: TrajectoryMethod
    times: Sequence[Any]
    steps: Rows = field(default_factory=list)
    predicted: Rows = field(default_factory=list)
    limited: dict[str, int] = field(default_factory=dict)

    @cached_property
    def _evidences(self) -> tuple[str, ...]:
        return tuple(_evidence(node.composition.text) for node in self.method.model.selectable)

    @cached_property
    def time(self) -> str:
        """What the column that orders rows is called here: as in the model, unless another column has that name."""
        taken = {*KEY, *STEP, *self._evidences, ROW, *PREDICTED, *OF_ENDS, *ACTED, OUTCOME, OUTSIDE}
        return unused(self.method.model.schema.order, taken)

    @property
    def step_names(self) -> tuple[str, ...]:
        """Columns of `steps`."""
        return (*KEY[:2], self.time, *KEY[2:], *STEP, *self._evidences)

    @property
    def predicted_names(self) -> tuple[str, ...]:
        """Columns of `predicted`."""
        acted = ACTED if self.method.takes_action else ()
        ends = ends_of(self.method.model.shape)
        return (*KEY[:2], self.time, *KEY[2:], ROW, *PREDICTED, *ends, OUTCOME, *acted, OUTSIDE)

    def follow(self, user: User, tell: Callable[[int], None] = lambda batch: None) -> Failure | None:
        """Follow a user in data units and add rows to both tables; where that fails, add none and say why.

        `tell` hears the number of every batch that was taken in.
        """
        acted: Rows = []
        steps: Rows = []

        def look_ahead(state: NewUser, batch: User) -> None:
            assert batch.assignment is not None  # the prediction of this batch has refused a user without
            both = under_both(state, batch.X, batch.assignment)
            acted.extend(cells(acted_columns(both, state.advantage(batch.X), batch.availability)))

        def look_back(state: NewUser, step: SelectionStep) -> None:
            steps.append(
                {
                    **self._key(user, step.batch, step.rows - 1),
                    "rows": step.rows,
                    **dict(zip(("composition", "probability"), step.selected, strict=True)),
                    **{_evidence(candidate.text): value for candidate, value in step.log_evidence.items()},
                }
            )
            if state.limited:
                self.limited.setdefault(user.name, step.rows)
            tell(step.batch)

        takes_action, schema = self.method.takes_action, self.method.model.schema
        followed = follow(
            self.method,
            user,
            catch=BAD_ROWS,
            before_update=look_ahead if takes_action else None,
            after_update=look_back,
        )
        if followed.failures:
            return followed.failures[0]
        for entry, after in zip(
            steps, followed.steps[1:-1], strict=False
        ):  # of a batch after the last nothing is known
            entry |= {"next_rows": after.predicted, "next_rmse": after.rmse, "next_log_density": after.log_density}
        self.steps.extend(steps)
        outside, added = schema.outside(user.X), iter(acted)
        for t, prediction in enumerate(followed.predictions, start=1):
            assert prediction is not None  # there was no failure
            for row, numbers in enumerate(cells(predicted_columns(prediction)), start=user.upto(t - 1).rows):
                known = {ROW: row + 1, OUTCOME: float(user.y[row]), OUTSIDE: list(outside[row])}
                self.predicted.append({**self._key(user, t, row), **known, **numbers, **next(added, {})})
        return None

    def _key(self, user: User, t: int, row: int) -> dict[str, Any]:
        """What identifies a user's row, counted from 0, of batch t."""
        assert user.index is not None  # users who were read from a table have one
        number = int(user.index[row])
        return {**dict(zip(KEY, (user.name, t, number + 1), strict=True)), self.time: self.times[number]}


def _evidence(text: str) -> str:
    return f"log_evidence {text or NOTHING}"

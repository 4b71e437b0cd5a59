"""Weighted and centred least squares: causal excursion effects of a trial whose probabilities are known (method §16.1).

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> people, chance = np.repeat(np.arange(30), 40), rng.uniform(0.2, 0.8, 1200)
>>> acted = (rng.random(1200) < chance).astype(int)
>>> steps = rng.normal(5, 1, 30)[people] + chance + 0.4 * acted + rng.normal(0, 1, 1200)
>>> found = wcls({"id": people, "outcome": steps, "treatment": acted, "rand_prob": chance})
>>> print(found.words("steps")[0])
Acting changed steps by 0.36 (95 % interval 0.14 to 0.58; p 0.002), on average over decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.columns import numbers, text_of
from kerneltrail.data.frames import NamedRows
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import counted
from kerneltrail.trial.analysis.excursion import BASELINE, INTERCEPT, ExcursionEffects

DEPENDENT = 1e-9
"""A column of which so little is left after the columns before it is taken for a sum of them."""


def wcls(
    rows: Any,
    moderators: Sequence[str] = (),
    controls: Sequence[str] = (),
    *,
    id: str = "id",
    outcome: str = "outcome",
    treatment: str = "treatment",
    rand_prob: str | float = "rand_prob",
    availability: str | None = "availability",
    numerator: float | str | None = None,
    level: float = 0.95,
    correction: bool = True,
) -> ExcursionEffects:
    """Estimate causal excursion effects from rows with these columns, such as those of `export/mrt.csv`.

    Args:
        rows: a frame of any library, or a dict of columns; the order of the rows does not matter.
        moderators: columns with which the effect of acting may change. None: the effect over everybody and all time.
        controls: columns that explain the outcome without acting. They make intervals narrower; the moderators are
            always among them.
        id: column of the participants.
        outcome: column of what was observed after the decision; rows in which it is missing are left out and counted.
        treatment: column of what was assigned, 1 or 0.
        rand_prob: column of the probability that it was 1; or one number.
        availability: column that is 1 where somebody could act; if it is None, or the default and not there, always.
        numerator: the probability p̃ of (63), a number or a column; the share of rows with treatment if None. A column
            may depend on the moderators only.
        level: of intervals.
        correction: whether errors are corrected for few participants, by (66).

    Raises:
        DataError: for a column that is not there, a probability of 0 or 1 where somebody could act, one participant, a
            moderator that is a sum of others, or more coefficients than participants.
    """
    read = _Reader(rows)
    if availability == "availability" and availability not in read:
        availability = None
    wanted = tuple(dict.fromkeys((*moderators, *controls)))
    return excursion_effects(
        read.labels(id),
        read.numbers(outcome),
        read.numbers(treatment),
        rand_prob if isinstance(rand_prob, int | float) else read.numbers(rand_prob),
        None if availability is None else read.numbers(availability),
        moderators={name: read.numbers(name) for name in moderators},
        controls={name: read.numbers(name) for name in wanted},
        numerator=read.numbers(numerator) if isinstance(numerator, str) else numerator,
        level=level,
        correction=correction,
        outcome_name=outcome,
    )


class _Reader:
    """Columns by name; a dict of arrays of numbers, as simulators have, is taken as it is."""

    def __init__(self, rows: Any) -> None:
        self.arrays = rows if isinstance(rows, Mapping) else {}
        self.named: NamedRows | None = None
        self.rows = rows

    def _table(self) -> NamedRows:
        if self.named is None:
            self.named = NamedRows.read(self.rows)
            if self.named is None:
                raise DataError("rows are a frame, or a dict of columns; an array has no names of columns")
        return self.named

    def __contains__(self, name: str) -> bool:
        return name in self.arrays or name in self._table().table

    def numbers(self, name: str) -> Array:
        column = self.arrays.get(name)
        if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "fiub":
            return column.astype(np.float64)
        return numbers(self._table().table, name)

    def labels(self, name: str) -> NDArray[Any]:
        column = self.arrays.get(name)
        if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iuU":
            return column
        values = self._table().table.column(name)
        for row, value in enumerate(values):
            if value is None:
                raise DataError(f"column {name!r} is missing in row {row + 1}: nobody knows whose row it is")
        return np.array([text_of(value) for value in values])


def excursion_effects(
    ids: ArrayLike,
    outcome: ArrayLike,
    treatment: ArrayLike,
    rand_prob: ArrayLike | float,
    available: ArrayLike | None = None,
    *,
    moderators: Mapping[str, ArrayLike] | None = None,
    controls: Mapping[str, ArrayLike] | None = None,
    numerator: ArrayLike | float | None = None,
    level: float = 0.95,
    correction: bool = True,
    outcome_name: str = "outcome",
) -> ExcursionEffects:
    """The same from arrays, one value for each row; NaN is missing. `wcls` says what each is.

    Controls are taken as they are given; the moderators should be among them.
    """
    whose, y, a = np.asarray(ids), _floats(outcome), _floats(treatment)
    probability = np.broadcast_to(_floats(rand_prob), y.shape)
    open_ = np.ones(len(y), dtype=bool) if available is None else _flags(_floats(available))
    effects = {INTERCEPT: np.ones(len(y)), **{name: _floats(each) for name, each in (moderators or {}).items()}}
    base = {BASELINE: np.ones(len(y)), **{name: _floats(each) for name, each in (controls or {}).items()}}
    if not 0.0 < level < 1.0:
        raise DataError(f"the level of an interval is between 0 and 1, not {level:g}")

    missing = {
        name: int(np.sum(open_ & np.isnan(column))) for name, column in {outcome_name: y, **effects, **base}.items()
    }
    used = open_.copy()
    for name, column in {outcome_name: y, **effects, **base}.items():
        if np.isinf(column).any():
            raise DataError(f"column {name!r} is infinite in row {int(np.flatnonzero(np.isinf(column))[0]) + 1}")
        used &= ~np.isnan(column)
    _check_assignment(whose, a, probability, open_)
    rows = np.flatnonzero(used)
    if not len(rows):
        raise DataError("no row is left: somebody could act, and its outcome and covariates are there, in none of them")
    share = float(a[rows].mean()) if numerator is None else None
    if share is not None and share in (0.0, 1.0):
        raise DataError(f"all {len(rows)} rows have treatment {share:.0f}: there is nothing to compare them with")
    target = np.broadcast_to(_floats(numerator if share is None else share), y.shape)[rows]
    if not np.all((target > 0) & (target < 1)):
        raise DataError("the numerator's probability must lie between 0 and 1, and be neither")

    a, y, probability = a[rows], y[rows], probability[rows]
    # method (63): rows count as if everybody had been treated with probability p̃, whatever the policy did.
    weight = np.where(a == 1, target / probability, (1 - target) / (1 - probability))
    design = np.column_stack(
        [*(each[rows] for each in base.values()), *((a - target) * each[rows] for each in effects.values())]
    )
    names = (*base, *(f"the effect of {name}" for name in effects))
    people, member = np.unique(whose[rows], return_inverse=True)
    solution, covariance = _solve(design, y, weight, member, people, names, correction)
    q = len(base)
    return ExcursionEffects(
        names=tuple(effects),
        estimates=solution[q:],
        covariance=covariance[q:, q:],
        degrees=len(people) - len(solution),
        level=level,
        n=len(people),
        rows=len(rows),
        unavailable=int(np.sum(~open_)),
        missing={name: count for name, count in missing.items() if count},
        numerator=float(target[0]) if np.ptp(target) == 0 else None,
        controls=dict(zip(base, solution[:q].tolist(), strict=True)),
    )


def _solve(
    design: Array,
    y: Array,
    weight: Array,
    member: NDArray[np.int64],
    people: NDArray[Any],
    names: Sequence[str],
    correction: bool,
) -> tuple[Array, Array]:
    """Coefficients and their covariance over participants: method (64), (65) and (66)."""
    n, k = len(people), design.shape[1]
    if n == 1:
        raise DataError(f"all rows are of one participant, {people[0]}: errors are told from how participants differ")
    if n <= k:
        raise DataError(f"{counted(n, 'participant')} cannot tell {k} coefficients ({', '.join(names)}); name fewer")
    root = np.sqrt(weight)
    scaled = design * root[:, None]
    lengths = np.sqrt(np.sum(scaled**2, axis=0))
    # An orthonormal basis: the sums over rows of (64) are then the identity, whatever the units of the columns.
    basis, upper = np.linalg.qr(scaled / np.where(lengths > 0, lengths, 1.0))
    left = np.abs(np.diag(upper))
    for place, name in enumerate(names):
        if left[place] < DEPENDENT:
            raise DataError(f"{name!r} is a sum of the columns before it ({', '.join(names[:place])}); leave it out")
    inside = basis.T @ (root * y)
    residual = root * y - basis @ inside

    order = np.argsort(member, kind="stable")
    starts = np.flatnonzero(np.diff(member[order], prepend=-1))
    scores = np.add.reduceat(basis[order] * residual[order, None], starts, axis=0)  # method (65)
    if correction:
        own = np.add.reduceat(basis[order, :, None] * basis[order, None, :], starts, axis=0)
        rest = np.eye(k) - own
        smallest = np.linalg.eigvalsh(rest)[:, 0]
        if np.any(smallest < DEPENDENT):
            who = people[int(np.argmin(smallest))]
            raise DataError(
                f"without participant {who} the coefficients ({', '.join(names)}) cannot be told: a column says "
                "something of this participant only; leave it out"
            )
        scores = np.linalg.solve(rest, scores[:, :, None])[:, :, 0]  # method (66)
    back = np.linalg.inv(upper) / np.where(lengths > 0, lengths, 1.0)[:, None]
    moved = scores @ back.T
    return back @ inside, moved.T @ moved


def _check_assignment(whose: NDArray[Any], a: Array, probability: Array, open_: NDArray[np.bool_]) -> None:
    def refuse(wrong: NDArray[np.bool_], problem: str) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            row = int(rows[0])
            values = f"treatment {a[row]:g}, probability {probability[row]:g}"
            more = f"; {len(rows)} rows are like that" if len(rows) > 1 else ""
            raise DataError(f"row {row + 1} (participant {whose[row]}, {values}) {problem}{more}")

    refuse(open_ & ~((a == 0) | (a == 1)), "has a treatment that is neither 0 nor 1")
    refuse(~open_ & (a == 1), "was treated although nobody could act")
    refuse(
        open_ & ~((probability > 0) & (probability < 1)),
        "could be acted on, so its probability must lie between 0 and 1 and be neither: such a row compares nothing",
    )


def _floats(values: ArrayLike | float | None) -> Array:
    return np.asarray(values, dtype=np.float64)


def _flags(values: Array) -> NDArray[np.bool_]:
    wrong = np.flatnonzero(~((values == 0) | (values == 1)))
    if len(wrong):
        raise DataError(f"availability is 1 or 0; in row {int(wrong[0]) + 1} it is {values[wrong[0]]:g}")
    return values == 1

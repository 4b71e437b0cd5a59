"""One user's rows in time order, cut into batches: the value that every fit, selection and evaluation starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data.arrays import check_size, read_numbers, usable
from kerneltrail.data.assignment import Assignment, check_shares
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array
from kerneltrail.names import index_of, unique
from kerneltrail.store.digest import blake, described

_TIME = "M"
"""NumPy's letter for a type of times."""


@dataclass(frozen=True, eq=False)
class User:
    """A user's rows, oldest first, and where each batch ends (method (1)).

    Arrays are copied and read-only, so a user is a value: equal if all its contents are, hashable, safe to share and to
    send to another process. A user without rows is legal: somebody new, before the first batch.

    >>> user = User("ann", ("hour",), [[8.0], [12.0], [18.0]], [1.0, 2.0, 0.5], ends=(2, 3))
    >>> user.rows, user.batches, user.upto(1).y.tolist(), user.batch(2).y.tolist()
    (3, 2, [1.0, 2.0], [0.5])

    Attributes:
        name: what the user is called in tables and reports.
        covariates: names of the columns of X, each once.
        X: covariates, float64, shape (n, d).
        y: target, float64, shape (n,).
        ends: rows seen after each batch, strictly increasing; the last is n. Empty if there are no rows.
        action: 0 or 1 for each row, or None where nothing was randomised.
        availability: 0 or 1 for each row, or None.
        probability: the chance with which the action was 1, or None.
        order: the order values as given (numbers, times or texts), or None.
        index: for each row its row in the table that it was read from, counted from 0, or None. It says where a user
            came from, not who it is: users that differ in it alone are equal, and have the same fingerprint.
    """

    name: str
    covariates: tuple[str, ...]
    X: Array
    y: Array
    ends: tuple[int, ...]
    action: Array | None = None
    availability: Array | None = None
    probability: Array | None = None
    order: NDArray[Any] | None = None
    index: NDArray[np.int64] | None = field(default=None, compare=False)

    def __init__(
        self,
        name: str,
        covariates: Sequence[str],
        X: ArrayLike,
        y: ArrayLike,
        ends: Sequence[int],
        action: ArrayLike | None = None,
        availability: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        order: ArrayLike | None = None,
        index: ArrayLike | None = None,
    ) -> None:
        put = object.__setattr__
        who = f"user {name!r}"
        if isinstance(covariates, str):
            raise DataError(f"{who}: covariates must be a list of names, such as [{covariates!r}]")
        names = tuple(covariates)
        if not names:
            raise DataError(f"{who} needs at least one covariate")
        unique(names, who)
        put(self, "name", str(name))
        put(self, "covariates", names)
        put(self, "X", _inputs(X, names, who))
        rows = len(self.X)
        put(self, "y", _target(y, rows, who))
        put(self, "ends", _checked_ends(ends, rows, who))
        for label, column in (("action", action), ("availability", availability), ("probability", probability)):
            put(self, label, None if column is None else _shares(column, rows, who, label))
        put(self, "order", None if order is None else _ordered(order, rows, who))
        put(self, "index", None if index is None else _indices(index, rows, who))

    @property
    def rows(self) -> int:
        """Number of rows, n."""
        return len(self.y)

    @property
    def batches(self) -> int:
        """Number of batches, T."""
        return len(self.ends)

    @property
    def assignment(self) -> Assignment | None:
        """The actions with what is known of how they came about; None where there was no action."""
        return None if self.action is None else Assignment(self.action, self.probability, self.availability)

    def upto(self, t: int) -> User:
        """The user after the first `t` batches: D[m,t] of method (1). t = 0 is the user before any row."""
        if not 0 <= t <= self.batches:
            raise DataError(f"user {self.name!r} has {self.batches} batches; there is no state after {t}")
        return self._slice(0, self.ends[t - 1] if t else 0, self.ends[:t])

    def batch(self, t: int) -> User:
        """Batch t alone, counted from 1 as in method §1: what joins `upto(t - 1)` to make `upto(t)`."""
        if not 1 <= t <= self.batches:
            raise DataError(f"user {self.name!r} has batches 1 to {self.batches}; there is no batch {t}")
        start, stop = (self.ends[t - 2] if t > 1 else 0), self.ends[t - 1]
        return self._slice(start, stop, (stop - start,))

    def newest(self, count: int) -> User:
        """The newest rows, at most so many, as one batch."""
        first = max(self.rows - count, 0)
        return self._slice(first, self.rows, (self.rows - first,) if self.rows > first else ())

    def extend(self, newer: User) -> User:
        """This user with another's batches added at the end; `user.upto(t-1).extend(user.batch(t))` is `user.upto(t)`.

        A column that only one of the two has (action, order, …) is refused, unless that one has no rows.
        """
        if newer.covariates != self.covariates:
            raise DataError(
                f"user {self.name!r} has covariates {', '.join(self.covariates)}; the new rows have "
                f"{', '.join(newer.covariates)}"
            )
        if not self.rows:
            return newer.with_name(self.name)
        if not newer.rows:
            return self
        optional: dict[str, NDArray[Any] | None] = {}
        for label in ("action", "availability", "probability", "order"):
            old, new = getattr(self, label), getattr(newer, label)
            if (old is None) != (new is None):
                raise DataError(f"user {self.name!r}: {label} is known for only some of the rows")
            if label == "order" and old is not None and (old.dtype.kind in _TIME) != (new.dtype.kind in _TIME):
                raise DataError(f"user {self.name!r} is ordered by {old.dtype}, the new rows by {new.dtype}")
            optional[label] = None if old is None else np.concatenate([old, new])
        if optional["order"] is not None:
            _ordered(optional["order"], self.rows + newer.rows, f"user {self.name!r}")
        known = None if self.index is None or newer.index is None else np.concatenate([self.index, newer.index])
        return self._having(
            X=np.concatenate([self.X, newer.X]),
            y=np.concatenate([self.y, newer.y]),
            ends=self.ends + tuple(self.rows + end for end in newer.ends),
            **optional,
            index=known,
        )

    def column_index(self, name: str) -> int:
        """The column of X that holds a covariate."""
        return index_of(name, self.covariates, f"user {self.name!r}")

    def columns(self, names: Iterable[str]) -> Array:
        """Some covariates in the order asked for, shape (n, k)."""
        places = {name: index for index, name in enumerate(self.covariates)}
        return self.X[:, [places[name] if name in places else self.column_index(name) for name in names]]

    def with_X(self, X: ArrayLike, covariates: Sequence[str] | None = None) -> User:
        """The same rows with other covariate values (and names, if given)."""
        if covariates is not None:
            return replace(self, X=np.asarray(X), covariates=tuple(covariates))
        who, inputs = f"user {self.name!r}", _inputs(X, self.covariates, f"user {self.name!r}")
        if len(inputs) != self.rows:
            raise DataError(f"{who}: X must have {self.rows} rows like the target, got {len(inputs)}")
        return self._having(X=inputs)

    def with_y(self, y: ArrayLike) -> User:
        """The same rows with another target."""
        return self._having(y=_target(y, self.rows, f"user {self.name!r}"))

    def with_name(self, name: str) -> User:
        """The same rows under another name."""
        return self._having(name=str(name))

    def with_ends(self, ends: Sequence[int]) -> User:
        """The same rows cut into other batches."""
        return self._having(ends=_checked_ends(ends, self.rows, f"user {self.name!r}"))

    def _slice(self, start: int, stop: int, ends: tuple[int, ...]) -> User:
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return self._having(**{name: value[start:stop] for name, value in arrays.items()}, ends=ends)

    def _having(self, **contents: Any) -> User:
        """The user with some contents replaced, which have been checked: an update makes a dozen users of one.

        Arrays are sealed here; those that stay are read-only already, so that users may share them.
        """
        for value in contents.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        other = object.__new__(User)
        mine = vars(other)
        mine.update(vars(self), **contents)
        for name in _DERIVED:
            mine.pop(name, None)
        return other

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all contents, the same in every process and session."""
        parts: list[Any] = []
        for name, value in self._contents():
            if isinstance(value, np.ndarray):
                parts += [
                    f"{name}{value.shape}{value.dtype}",
                    repr(value.tolist()) if value.dtype == object else value,
                ]
            else:
                parts.append(f"{name}{value!r}")
        return blake(*parts).hex()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, User):
            return NotImplemented
        pairs = zip(self._contents(), other._contents(), strict=True)
        return all(_same(mine, theirs) for (_, mine), (_, theirs) in pairs)

    def _contents(self) -> list[tuple[str, Any]]:
        """What the user is, by name: all but where its rows were read."""
        return [(each.name, getattr(self, each.name)) for each in fields(self) if each.compare]

    @cached_property
    def rows_digest(self) -> str:
        """A digest of what a fit reads, name and order aside: covariates, X, y, batches, actions."""
        return self._digest(self.X, self.y)

    @cached_property
    def gist(self) -> str:
        """`rows_digest` of values in six digits: random starts are seeded by it.

        Scaled and simulated values differ between machines in the last digit, which must not change what is found.
        """
        with np.errstate(over="ignore"):
            return self._digest(*((np.round(values, 6) + 0.0).astype(np.float32) for values in (self.X, self.y)))

    def _digest(self, X: NDArray[Any], y: NDArray[Any]) -> str:
        action = "none" if self.action is None else self.action
        return blake(repr((self.covariates, tuple(self.ends))), X, y, action).hex()

    def __hash__(self) -> int:
        # Not the fingerprint: equal arrays of different types (order as integers or floats) are equal users.
        return hash((self.name, self.covariates, self.ends))

    def __reduce__(self) -> tuple[type[User], tuple[Any, ...]]:
        # Through the constructor: unpickled arrays would be writable again.
        return User, tuple(getattr(self, each.name) for each in fields(self))

    def __repr__(self) -> str:
        return (
            f"User({self.name!r}: {self.rows} rows in {self.batches} batches, covariates {', '.join(self.covariates)})"
        )


_DERIVED = tuple(name for name, value in vars(User).items() if isinstance(value, cached_property))

described.register(User, lambda user: {"user": user.fingerprint})


def _same(mine: object, theirs: object) -> bool:
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        # Numbers and times do not compare; arrays without rows are equal whatever they would hold.
        same_kind = (mine.dtype.kind in _TIME) == (theirs.dtype.kind in _TIME)
        return mine.shape == theirs.shape and (not mine.size or (same_kind and np.array_equal(mine, theirs)))
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return False
    return mine == theirs


def _sealed(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _numbers(values: ArrayLike, what: str, columns: Sequence[str] = ()) -> Array:
    """A new array, or the one of another user, which nobody writes to: thousands of users are held scaled and centred.

    A view is copied, since what it is a view of would live on with it.
    """
    if (
        type(values) is np.ndarray
        and values.dtype == np.float64
        and values.base is None
        and values.flags.c_contiguous
        and not values.flags.writeable
    ):
        return values
    return read_numbers(values, what, columns)


def _inputs(X: ArrayLike, names: tuple[str, ...], who: str) -> Array:
    inputs = _numbers(X, f"{who}: X", names)
    if inputs.size == 0 and inputs.ndim == 1:
        inputs = inputs.reshape(0, len(names))
    if inputs.ndim != 2 or inputs.shape[1] != len(names):
        raise DataError(f"{who}: X must have shape (rows, {len(names)}) for {', '.join(names)}, got {inputs.shape}")
    if not usable(inputs).all():
        for column, covariate in zip(inputs.T, names, strict=True):
            check_size(column, f"{who}: covariate {covariate!r}")
    return _sealed(inputs)


def _target(y: ArrayLike, rows: int, who: str) -> Array:
    target = _column(y, rows, who, "the target")
    check_size(target, f"{who}: the target", np.inf)  # one that is far out of scale is refused by what fits it
    return _sealed(target)


def _column(values: ArrayLike, rows: int, who: str, what: str) -> Array:
    column = _numbers(values, f"{who}: {what}")
    if column.shape != (rows,):
        raise DataError(f"{who}: {what} must have shape ({rows},) like X, got {column.shape}")
    return column


def _shares(values: ArrayLike, rows: int, who: str, what: str) -> Array:
    column = _column(values, rows, who, what)
    check_shares(column, who, what)
    return _sealed(column)


def _ordered(values: ArrayLike, rows: int, who: str) -> NDArray[Any]:
    order = np.array(values)
    if order.dtype.kind in "cm":
        raise DataError(f"{who}: order must hold numbers, times or texts, not {order.dtype}")
    if order.shape != (rows,):
        raise DataError(f"{who}: order must have shape ({rows},), got {order.shape}")
    if order.dtype.kind in "iuf" + _TIME:  # texts are kept as they are: how they sort is the reader's business
        back = np.flatnonzero(~(order[1:] >= order[:-1]))
        if back.size:
            row = int(back[0]) + 1
            raise DataError(f"{who}: rows must be oldest first, but order goes from {order[row - 1]} to {order[row]}")
    order.setflags(write=False)
    return order


def _indices(values: ArrayLike, rows: int, who: str) -> NDArray[np.int64]:
    index = np.array(values)
    if index.shape != (rows,) or (index.size and (index.dtype.kind not in "iu" or index.min() < 0)):
        raise DataError(f"{who}: index must hold a table's row, counted from 0, for each of {rows} rows")
    index = index.astype(np.int64)
    index.setflags(write=False)
    return index


def _checked_ends(ends: Sequence[int], rows: int, who: str) -> tuple[int, ...]:
    checked = tuple(int(end) for end in ends)
    if any(given != end for given, end in zip(ends, checked, strict=True)):
        raise DataError(f"{who}: batch ends must be whole numbers, got {list(ends)}")
    if any(b <= a for a, b in zip((0, *checked), checked, strict=False)):
        raise DataError(f"{who}: batch ends must increase from above 0, got {list(checked)}")
    if (checked[-1] if checked else 0) != rows:
        raise DataError(f"{who}: the last batch must end at the last row, {rows}; the ends are {list(checked)}")
    return checked

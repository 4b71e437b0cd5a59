"""Whatever the columns hold, a look at them ends in an answer: a check, or a refusal in words."""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError

from .study import look, one

NUMBERS = st.one_of(
    st.floats(-1e50, 1e50),
    st.floats(-5, 5),
    st.integers(-3, 3).map(float),
    st.sampled_from([9999.0, -99.0, 1e9, 1e50, -1e50, 1e-300, "4.5", True]),
)
CELLS = st.one_of(NUMBERS, st.none(), st.just(float("nan")))
WILD = st.one_of(CELLS, st.floats(allow_infinity=True), st.sampled_from(["warm", "3,5"]))


def column(cells: Any, rows: int) -> Any:
    return st.one_of(st.lists(cells, min_size=rows, max_size=rows), cells.map(lambda cell: [cell] * rows))


@st.composite
def tables(draw: Any) -> dict[str, list[Any]]:
    rows = draw(st.integers(1, 40))
    times = st.one_of(st.integers(0, 5), st.integers(1_600_000_000, 1_600_010_000), st.floats(0, 9))
    moments = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1))
    order = draw(st.one_of(column(times, rows), column(moments, rows)))
    cells = draw(st.sampled_from([NUMBERS, NUMBERS, CELLS, WILD]))
    numbers = {name: draw(column(cells, rows)) for name in ("hour", "temp", "pulse", "mood")}
    shares = {name: draw(column(st.sampled_from([0.0, 1.0]), rows)) for name in ("sent", "free")}
    return {
        "who": draw(column(st.sampled_from(["a", "b", "c", 1]), rows)),
        "when": order,
        **numbers,
        **shares,
        "chance": draw(column(st.sampled_from([0.0, 0.3, 1.0]), rows)),
    }


@settings(max_examples=150)
@given(tables(), st.booleans())
def test_no_table_is_too_odd(rows: dict[str, list[Any]], available: bool) -> None:
    with suppress(DataError):
        check = look(rows, candidates=tuple(rows), available_only=available)
        assert str(check)
        json.dumps(check.to_json(), allow_nan=False)
        again = Cohort.from_table(
            rows, user="who", order="when", target="mood", covariates=["hour", "temp", "pulse"], action="sent",
            batch_size=7, missing="drop", skip_refused=True,
        )  # fmt: skip
        assert str(again.check())
        assert str(again.check(rows))


def test_users_without_rows_or_with_one() -> None:
    nobody = User("nobody", ("x",), [], [], ())
    single = User("single", ("x",), [[1.0]], [2.0], (1,), order=[1])
    check = Cohort.from_users([nobody, single], scaling="none").check()
    assert (check.users, check.rows) == (2, 1)
    assert str(check)


def test_orders_that_are_texts() -> None:
    users = [
        User(
            name,
            ("x",),
            np.arange(12.0)[:, None] ** 2 % 7,
            np.arange(12.0) ** 2 % 5,
            (6, 12),
            order=[str(i) for i in range(12)],
        )
        for name in "abcdef"
    ]
    found = one(Cohort.from_users(users).check(), "order")
    assert (found.severity, found.columns, found.users) == ("warning", ("order",), tuple("abcdef"))
    assert found.message == "order values are texts that do not increase: '10' in row 11 of user 'a'"


def test_a_table_of_somebody_else_is_refused() -> None:
    rows = {"who": ["a", "b"], "when": [1, 2], "x": [1.0, 2.0], "y": [1.0, 2.0]}
    cohort = Cohort.from_table(rows, user="who", order="when", target="y", covariates=["x"], batch_size=1)
    with pytest.raises(DataError, match="is not what the cohort was read from: it has no user 'b'"):
        cohort.check({**rows, "who": ["a", "a"]})

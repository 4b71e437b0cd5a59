"""Rows by name: frames of every library, dicts, one row; what is missing is named; answers come in the same kind."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kerneltrail.data.assignment import Assignment
from kerneltrail.data.batching import Batching
from kerneltrail.data.frames import NamedRows, check_same_index, frame_like, positional_rows, read_rows
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import read_table
from kerneltrail.errors import DataError

COLUMNS = {
    "place": ["home", "work"],
    "hour": [8.0, 20.5],
    "y": [1.0, 2.0],
    "send": [0, 1],
    "p": [0.5, 0.25],
    "note": ["a", "b"],
}
SCHEMA = Schema("who", "when", "y", ("hour", "place"), Batching(size=1), levels={"place": ("home", "work")})
DRAWN = replace(SCHEMA, action="send", probability="p", availability="free")
KINDS = [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda rows: pl.DataFrame(rows).lazy()]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_matched_by_name_whatever_their_order(kind):
    for names in (list(COLUMNS), list(reversed(COLUMNS))):
        rows = NamedRows.read(kind({name: COLUMNS[name] for name in names}))
        np.testing.assert_array_equal(rows.covariates(("hour", "place"), SCHEMA), [[8.0, 0.0], [20.5, 1.0]])
        np.testing.assert_array_equal(rows.covariates(("hour",)), [[8.0], [20.5]])
        np.testing.assert_array_equal(rows.target("y"), [1.0, 2.0])
        np.testing.assert_array_equal(rows.action(DRAWN, None), [0.0, 1.0])
        np.testing.assert_array_equal(rows.probability(DRAWN, None), [0.5, 0.25])
        assert rows.availability(DRAWN) is None  # it is not there
        assert rows.action(SCHEMA, None) is None  # nobody named it


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_say_they_are_of_others_are_refused(kind):
    hers, theirs = (NamedRows.read(kind({**COLUMNS, "who": who})) for who in ([7.0, 7.0], ["7", "8"]))
    assert hers.user_of("who", "7") == "7"
    assert hers.user_of("who", 7) == 7
    assert hers.user_of("who", "new") == "7"  # who has no name takes that of the rows
    assert hers.user_of("somebody", "ann") == "ann"
    with pytest.raises(DataError, match="user 'ann': row 1 is 7's, by its column 'who'"):
        hers.user_of("who", "ann")
    for name in ("7", "new"):
        with pytest.raises(
            DataError, match=r"of several users \(who is 7, 8\); an update takes one user's, `update_many`"
        ):
            theirs.user_of("who", name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_in_the_user_column_is_nobody(kind, blank):
    rows = NamedRows.read(kind({**COLUMNS, "who": ["ann", blank]}))
    for name in ("ann", "new"):
        assert rows.user_of("who", name) == "ann"
    with pytest.raises(DataError, match="user 'bob': row 1 is ann's"):
        rows.user_of("who", "bob")


def test_one_row_is_a_dict_of_values_or_a_row_of_a_frame():
    frame = pd.DataFrame(COLUMNS)
    for row in ({name: values[1] for name, values in COLUMNS.items()}, frame.iloc[1]):
        np.testing.assert_array_equal(NamedRows.read(row).covariates(("hour", "place"), SCHEMA), [[20.5, 1.0]])


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], np.zeros((2, 2)), ((1.0, 2.0),)])
def test_arrays_have_no_names(rows):
    assert NamedRows.read(rows) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hour": None}, "no column 'hour'; did you mean 'Hour'"),
        ({"hour": [8.0, np.nan]}, "column 'hour' is missing in row 2, and in 1 of 2 rows"),
        ({"hour": ["8", "late"]}, "column 'hour' of the table is 'late' in row 2, not a number"),
        ({"place": ["home", "pub"]}, "'pub' in row 2, which is not one of its levels"),
    ],
)
def test_what_is_missing_or_renamed_is_refused_by_name(change, message):
    rows = {**COLUMNS, "Hour": [1, 2], **change}
    rows = {name: values for name, values in rows.items() if values is not None}
    with pytest.raises(DataError, match=message):
        NamedRows.read(rows).covariates(("hour", "place"), SCHEMA)


def test_gaps_are_filled_only_as_the_schema_says():
    schema = Schema(
        "who",
        "when",
        "y",
        ("hour", "place"),
        Batching(size=1),
        levels=dict(SCHEMA.levels),
        missing={"hour": 12.0, "place": "work"},
    )
    rows = NamedRows.read({"hour": [None, 3.0], "place": ["home", None]})
    np.testing.assert_array_equal(rows.covariates(("hour", "place"), schema), [[12.0, 0.0], [3.0, 1.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_where_nobody_could_act_is_0(kind):
    columns = {"free": [0, 1], "send": [None, 1.0], "p": [None, 0.25]}
    action, probability, available = NamedRows.read(kind(columns)).assigned(DRAWN, (None, None, None))
    np.testing.assert_array_equal([action, probability, available], [[0.0, 1.0], [0.0, 0.25], [0.0, 1.0]])
    # What the caller gives stands in for columns, and columns go by it.
    given = NamedRows.read(kind(columns | {"free": [1, 1]})).assigned(DRAWN, (None, None, [0, 1]))
    np.testing.assert_array_equal(given, [[0.0, 1.0], [0.0, 0.25], [0.0, 1.0]])
    whole = Assignment(np.ones(2))
    assert NamedRows.read(kind(columns)).assigned(DRAWN, (whole, None, None))[0] is whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"free": [0, 1], "send": [0, None]}, "column 'send' is missing in row 2, and in 1 of 2 rows"),
        ({"free": [1, 0], "p": [None, None]}, "column 'p' is missing in row 1, and in 1 of 2 rows"),
        ({"free": [None, 0]}, "column 'free' is missing in row 1"),
        ({"send": [None, 1]}, "column 'send' is missing in row 1"),
    ],
)
def test_what_is_missing_where_somebody_could_act_is_refused_by_name(change, message):
    with pytest.raises(DataError, match=message):
        NamedRows.read({**COLUMNS, **change}).assigned(DRAWN, (None, None, None))


def test_a_table_is_read_as_it_is_and_is_no_callers_kind():
    table = read_table(COLUMNS)
    rows = NamedRows.read(table)
    assert rows.table is table
    assert rows.given is None


def test_a_dict_is_columns_or_one_row_and_not_both():
    with pytest.raises(DataError, match="'hour' is a single value"):
        NamedRows.read({"hour": 3, "place": ["home"]})


def test_arrays_are_checked_for_width():
    np.testing.assert_array_equal(positional_rows([1, 2], ("a", "b")), [[1.0, 2.0]])
    with pytest.raises(DataError, match="need 2 columns, in the order a, b; got shape \\(1, 3\\)"):
        positional_rows([[1, 2, 3]], ("a", "b"))


@pytest.mark.parametrize("rows", [{}, {"hour": []}, pd.DataFrame(), pl.DataFrame({"hour": []}), [], np.zeros((0, 1))])
def test_an_update_needs_rows(rows):
    with pytest.raises(DataError, match="user 'ann': no rows were given; an update needs at least one"):
        read_rows(rows, ("hour",), None, "ann")


@pytest.mark.parametrize("rows", [{"hour": []}, np.zeros((0, 1))])
def test_no_rows_can_be_predicted(rows):
    assert read_rows(rows, ("hour",), None)[1].shape == (0, 1)


def test_rows_and_outcomes_of_another_order_are_refused():
    frame = pd.DataFrame({"hour": [1.0, 2.0]}, index=[5, 6])
    check_same_index(frame, pd.Series([1.0, 2.0], index=[5, 6]))
    check_same_index(frame, [1.0, 2.0])
    with pytest.raises(DataError, match="different indices"):
        check_same_index(frame, pd.Series([1.0, 2.0], index=[6, 5]))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pd.DataFrame({"a": [1, 2]}, index=["p", "q"]), pd.DataFrame),
        (pl.DataFrame({"a": [1, 2]}), pl.DataFrame),
        (pa.table({"a": [1, 2]}), pa.Table),
        ({"a": [1, 2]}, dict),
        (None, pd.DataFrame),
    ],
)
def test_answers_come_in_the_callers_kind_with_the_callers_index(given, kind):
    frame = frame_like(given, {"mean": np.array([1.0, 2.0])})
    assert isinstance(frame, kind)
    assert list(frame["mean"]) == [1.0, 2.0] or frame["mean"].to_pylist() == [1.0, 2.0]
    if isinstance(given, pd.DataFrame):
        assert list(frame.index) == ["p", "q"]


def test_a_column_with_a_role_is_not_suggested():
    rows = NamedRows.read({"steps": [1.0], "step": [2.0]})
    schema = Schema("who", "when", "step", ("stepp",), Batching(size=1))
    with pytest.raises(DataError, match="has no column 'stepp'; did you mean 'steps'"):
        rows.covariates(("stepp",), schema)

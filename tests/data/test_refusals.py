"""What a table must not be, and what is said of it: column, row, what was expected."""

import pickle
import re
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerneltrail.data import Cohort, Scaler, check_table, read_unlabelled
from kerneltrail.errors import DataError

from .tables import ROWS, read, with_value


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        (ROWS, {"covariates": ["hours"], "categorical": {}}, "no column 'hours'; did you mean 'hour'"),
        (ROWS, {"user": "whom"}, "no column 'whom'; did you mean 'who'"),
        (ROWS, {"order": "time"}, "no column 'time'"),
        (ROWS, {"target": "step"}, "did you mean 'steps'"),
        (ROWS, {"action": "send"}, "did you mean 'sent'"),
        (ROWS, {"batch_size": None, "batch_column": "week"}, "no column 'week'"),
        (ROWS, {"covariates": []}, "at least one covariate"),
        (ROWS, {"covariates": "hour"}, r"list of names, such as \['hour'\]"),
        (ROWS, {"covariates": ["hour", "hour"], "categorical": {}}, "'hour' is named twice"),
        (ROWS, {"covariates": ["steps"], "categorical": {}}, "both the target and a covariate"),
        (ROWS, {"covariates": ["who"], "categorical": {}}, "both the user and a covariate"),
        (ROWS, {"target": "when"}, "cannot be the target and also"),
        (ROWS, {"categorical": {}}, r"'activity' .* is 'still' in row 1, not a number; .* categorical=\{'activity'"),
        (
            ROWS,
            {"categorical": {"activity": ["still", "active"]}},
            "'unknown' in row 4, which is not one of its levels",
        ),
        (ROWS, {"categorical": {"activity": ["still"]}}, "at least two"),
        (ROWS, {"categorical": {"activity": "still"}}, "must be a list"),
        (ROWS, {"categorical": {"activity": ["still", "active", "NA"]}}, "level 'NA'"),
        (ROWS, {"categorical": {"activty": ["a", "b"]}}, "categorical= names 'activty'.*did you mean 'activity'"),
        (ROWS, {"units": {"hous": "h"}}, "units= names 'hous'.*did you mean 'hour'"),
        (ROWS, {"missing": {"hous": "drop"}}, "missing= names 'hous'"),
        (ROWS, {"missing": "zero"}, "'error', 'drop' or a policy by column"),
        (ROWS, {"missing": {"hour": "zero"}}, "missing values of 'hour' must be 'error' or 'drop', or a finite number"),
        (ROWS, {"missing": {"hour": float("nan")}}, "finite number"),
        (ROWS, {"missing": {"steps": 0.0}}, "missing values of 'steps' must be 'error' or 'drop', got 0.0"),
        (ROWS, {"missing": {"activity": "idle"}}, r"one of its levels \(still, active, unknown\), got 'idle'"),
        (ROWS, {"scaling": "max"}, "scaling must be"),
        (ROWS, {"target_scaling": "max"}, "target_scaling must be"),
        (ROWS, {"batch_size": 0}, "at least 1"),
        (with_value("hour", 3, float("inf")), {}, "'hour' of the table is infinite in row 4"),
        (
            with_value("hour", 3, 1e300),
            {},
            r"user 'bob': .* 'hour' of the table is 1e\+300 in row 4; numbers up to 1e\+50",
        ),
        (with_value("steps", 3, -1e300), {}, r"user 'bob': column 'steps' of the table is -1e\+300 in row 4"),
        (with_value("hour", 3, 1j), {}, "user 'bob': column 'hour' .* is 1j in row 4, not a number"),
        ({**ROWS, "hour": np.array(ROWS["hour"], complex)}, {}, "user 'ann': column 'hour' .* in row 1, not a number"),
        ({**ROWS, "hour": np.array([1] * 7, "datetime64[ns]")}, {}, "column 'hour' .* in row 1, not a number"),
        ({**ROWS, "hour": np.array([1] * 7, "timedelta64[ns]")}, {}, "column 'hour' .* in row 1, not a number"),
        (with_value("hour", 3, np.timedelta64(1, "ns")), {}, "column 'hour' .* in row 4, not a number"),
        (with_value("hour", 3, "noon"), {}, "'hour' .* is 'noon' in row 4, not a number"),
        (with_value("hour", 3, datetime(2020, 1, 1)), {}, "not a number"),
        (with_value("hour", 3, [1, 2]), {}, "'hour' .* in row 4, not a number"),
        ({**ROWS, "hour": [[1]] * 7}, {}, "'hour' .* in row 1, not a number"),
        (with_value("steps", 3, "many"), {}, "'steps' .* is 'many' in row 4"),
        (with_value("sent", 3, 2), {}, "action 'sent' .* must be 0 or 1, is 2 in row 4"),
        (with_value("sent", 3, None), {}, "'sent' .* missing in row 4"),
        (with_value("sent", 3, "no"), {}, "is 'no' in row 4, not a number; write 0 or 1, or true or false$"),
        (with_value("free", 3, "yes"), {}, "is 'yes' in row 4, not a number; write 0 or 1, or true or false$"),
        (with_value("free", 3, 0.5), {}, "availability 'free' .* must be 0 or 1"),
        (with_value("chance", 3, 1.5), {}, r"probability 'chance' .* \[0, 1\], is 1.5 in row 4"),
        (with_value("when", 3, None), {}, "order column 'when' .* missing in row 4"),
        (with_value("when", 3, float("inf")), {}, "order column 'when' .* is inf in row 4"),
        (with_value("when", 3, "later"), {}, "order column 'when'"),
        (with_value("when", 3, datetime(2020, 1, 1)), {}, "order column 'when' .* is 3 in row 1"),
        ({**ROWS, "when": ["2020-01-01"] * 6 + ["2020-01-01T08:00Z"]}, {}, "row 7 differs .* time zone"),
        (with_value("who", 3, None), {}, "user column 'who' .* missing in row 4"),
        (with_value("who", 3, " "), {}, "user column 'who' .* missing in row 4"),
    ],
)
def test_what_is_refused_says_where(rows: dict[str, list[Any]], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(rows, **changes)


def test_a_column_that_has_a_role_is_not_suggested_for_another() -> None:
    read(ROWS)
    without = {name: values for name, values in ROWS.items() if name != "chance"}
    for name in ("p_sent", "free_"):
        with pytest.raises(DataError, match=f"no column '{name}'; each of its columns has another role: who, when, h"):
            read(without, probability=name)
    more = {**without, "notes": [""] * 7}
    with pytest.raises(DataError, match="no column 'p_sent'; columns without another role are notes"):
        read(more, probability="p_sent")
    with pytest.raises(DataError, match=r"no column 'note'; did you mean 'notes'\?"):
        read(more, probability="note")
    with pytest.raises(DataError, match="no column 'sents'; columns without another role are chance"):
        read(ROWS, probability=None, batch_size=None, batch_column="sents")


@pytest.mark.parametrize(
    ("rows", "changes", "reason"),
    [
        (with_value("hour", 3, 1e300), {}, r"column 'hour' of the table is 1e\+300 in row 4"),
        (with_value("steps", 3, "many"), {}, "column 'steps' .* is 'many' in row 4"),
        (with_value("activity", 3, "idle"), {}, "column 'activity' .* is 'idle' in row 4"),
        (with_value("sent", 3, 2), {}, "action 'sent' .* is 2 in row 4"),
        (with_value("chance", 3, 1.5), {}, "probability 'chance' .* is 1.5 in row 4"),
        (with_value("hour", 3, None), {}, "column 'hour' .* is missing in row 4, user 'bob'"),
        (ROWS, {"batch_size": None, "ends": {"ann": [2, 4], "bob": [2]}}, "'bob' has 3 rows, but its last batch"),
    ],
)
def test_one_bad_cell_can_be_left_to_its_user(rows: Any, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(rows, **changes)
    cohort = read(rows, **changes, skip_refused=True)
    assert cohort.names == ("ann",)
    assert list(cohort.report.refused) == ["bob"]
    assert re.search(reason, cohort.report.refused["bob"])
    assert (cohort.report.rows_read, cohort.report.rows_kept, cohort.report.empty) == (7, 4, ())
    assert "left out for what cannot be used, not in the cohort: bob" in str(cohort.report)
    assert re.search(reason, str(cohort.report))
    assert cohort.users == read().subset(["ann"]).rescaled("group").users


def test_new_users_are_left_out_alone_and_all_of_them_is_an_error() -> None:
    schema = read().schema
    cohort = Cohort.from_schema(schema, with_value("hour", 0, 1e300), skip_refused=True)
    assert cohort.names == ("bob",)
    assert cohort.scaler == schema.scaler
    narrow = replace(schema, scaler=Scaler(schema.covariates, (9.0, 0.0), (9.0 + 1e-14, 1.0)))
    far = {name: values[1:4:2] for name, values in with_value("hour", 1, 1e45).items()}  # both are bob's
    with pytest.raises(DataError, match=r"no user of the table can be used:\n(.|\n)*user 'bob': covariate 'hour' is"):
        Cohort.from_schema(narrow, far, skip_refused=True)
    both = {**ROWS, "hour": [1e300] * 7}
    with pytest.raises(DataError, match="no row of the table is left"):
        Cohort.from_schema(schema, both, skip_refused=True)


def test_a_level_that_a_model_does_not_know_costs_its_rows_alone_where_gaps_do() -> None:
    schema = read(missing="drop").schema
    rows = with_value("activity", 0, "Still ")
    rows = {**rows, "activity": [*rows["activity"][:4], "gym", *rows["activity"][5:]]}
    with pytest.raises(DataError, match=r"'activity' of the table is 'Still ' in row 1, .*; did you mean 'still'"):
        Cohort.from_schema(schema, rows)  # nothing is left out unasked
    cohort = Cohort.from_schema(schema, rows, skip_refused=True)
    assert [(user.name, user.rows) for user in cohort.raw] == [("ann", 2), ("bob", 3)]
    report = cohort.report
    assert (report.rows_read, report.rows_kept, dict(report.refused), dict(report.dropped)) == (7, 5, {}, {})
    gone = "warning: dropped, 1 row (ann 1): 'activity' is"
    assert str(report).splitlines()[1:3] == [
        f"{gone} 'Still' in row 1, which is not one of its levels; did you mean 'still'?",
        f"{gone} 'gym' in row 5, which is not one of its levels; they are still, active, unknown",
    ]
    assert pickle.loads(pickle.dumps(report)) == report
    everywhere = {**ROWS, "activity": ["gym"] * 7}
    with pytest.raises(
        DataError, match=r"no row of the table is left:\n.*\nwarning: dropped, 7 rows .*'gym' in rows 1, 2"
    ):
        Cohort.from_schema(schema, everywhere, skip_refused=True)
    future = {name: values for name, values in rows.items() if name != "steps"}
    unlabelled, told = read_unlabelled(schema, future, skip_refused=True)
    assert [(each.name, each.rows.tolist()) for each in unlabelled] == [("ann", [2, 6]), ("bob", [1, 3, 5])]
    assert [(each.value, each.rows) for each in told.unknown] == [("Still", (1,)), ("gym", (5,))]
    for other in (replace(schema, missing={}), replace(schema, missing={"activity": "unknown"})):  # nobody said so
        assert Cohort.from_schema(other, rows, skip_refused=True).names == ("bob",)


def test_a_header_of_many_columns_takes_no_time(tmp_path: Path) -> None:
    names = [f"column_{i}" for i in range(40_000)]
    path = tmp_path / "wide.csv"
    lines = [["who", "when", "steps", *names], ["ann", "1", "2.0", *["0.5"] * len(names)]]
    path.write_text("\n".join(",".join(line) for line in lines))
    roles = {"user": "who", "order": "when", "target": "steps", "batch_size": 1}
    begin = time.perf_counter()
    Cohort.from_table(path, covariates=names[-2:], **roles)
    with pytest.raises(DataError, match="no column 'colunm_17'; did you mean 'column_17'"):
        Cohort.from_table(path, covariates=["colunm_17"], **roles)
    with pytest.raises(
        DataError, match=r"no column 'zzz'; columns without another role are column_0, .* and 39950 more$"
    ):
        Cohort.from_table(path, covariates=["zzz"], **roles)
    assert time.perf_counter() - begin < 6.0  # comparing every name with all before it took 19 s
    path.write_text("who,who\na,b\n")
    with pytest.raises(DataError, match="two columns named 'who'"):
        Cohort.from_table(path, covariates=["x"], **roles)


TIMES = ["2024-03-04 08:00", "2024-03-02 08:00", "2024-03-04 09:00", "2024-03-02 09:00", "2024-03-04 10:00"]


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        (
            [*TIMES, "05/03/2024 10:00", "2024-03-05 08:00"],
            "is '05/03/2024 10:00' in row 6, which is not written like '2024-03-04 08:00' in row 1",
        ),
        ([3, "soon", 1, 2, 2, 3, 4], "is 'soon' in row 2, which is not written like 3 in row 1"),
        ([3, 1, 1, None, 2, 3, 4], "is missing in row 4"),
        ([3, float("inf"), 1, 2, 2, 3, 4], "is inf in row 2, which is not written like 3 in row 1"),
        ([*TIMES, "2024-03-05 08:00+01:00", "2024-03-05 08:00"], "is '2024-03-05 08:00+01:00' in row 6, which is not"),
    ],
)
def test_a_time_that_cannot_be_read_leaves_out_its_user_alone(when: list[Any], problem: str) -> None:
    rows, schema = {**ROWS, "when": when}, read().schema
    with pytest.raises(DataError, match="order column 'when' of the table"):
        Cohort.from_schema(schema, rows)
    cohort = Cohort.from_schema(schema, rows, skip_refused=True)
    anns = [i for i, name in enumerate(ROWS["who"]) if name == "ann"]
    alone = Cohort.from_schema(schema, {name: [values[i] for i in anns] for name, values in rows.items()})
    assert cohort.names == ("ann",)
    assert [user.y.tolist() for user in cohort.raw] == [user.y.tolist() for user in alone.raw]
    assert np.array_equal(cohort.raw[0].order, alone.raw[0].order)
    assert cohort.report.left_out[0].startswith(f"user 'bob' is left out: order column 'when' of the table {problem}")
    found = [finding for finding in check_table(schema, rows).findings if finding.severity == "error"]
    assert [(finding.code, finding.users) for finding in found] == [("unusable", ("bob",))]


def test_a_format_that_nobody_s_times_have_is_told_of_the_whole_table() -> None:
    schema = read().schema
    for when in (["05/03/2024"] * 7, [3, None, 1, 2, 2, 3, None], ["later", "soon"] * 3 + ["now"]):
        with pytest.raises(DataError, match=r"^order column 'when' of the table"):
            Cohort.from_schema(schema, {**ROWS, "when": when}, skip_refused=True)

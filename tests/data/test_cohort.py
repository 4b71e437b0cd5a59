import csv
import pickle
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.data import Batching, Cohort, Scaler, User
from kerneltrail.errors import DataError

from .tables import ROLES, ROWS, read, with_value


def test_rows_are_sorted_coded_batched_and_scaled() -> None:
    cohort = read()
    ann = cohort["ann"]
    assert cohort.names == ("ann", "bob")
    assert ann.y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert ann.ends == (2, 4)
    assert cohort["bob"].ends == (2, 3)
    assert cohort.raw[0].X.tolist() == [[10, 0], [12, 1], [8, 0], [18, 0]]
    assert ann.X.tolist() == [[0.2, 0], [0.4, 0.5], [0, 0], [1, 0]]
    assert ann.action is not None
    assert ann.action.tolist() == [0, 1, 1, 1]
    assert ann.order is not None
    assert ann.order.tolist() == [1, 2, 3, 4]
    assert cohort.report.unsorted == ("ann",)
    assert [user.name for user in cohort] == ["ann", "bob"]
    assert len(cohort) == 2
    assert "ann" in cohort
    assert cohort.levels == {"activity": ("still", "active", "unknown")}
    assert repr(cohort) == "Cohort: 2 users, 7 rows, steps from hour, activity"


def test_every_source_gives_the_same_cohort(tmp_path: Path) -> None:
    expected = read()
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pl.DataFrame(ROWS).write_csv(tmp_path / "polars.csv")
    pl.DataFrame(ROWS).write_parquet(tmp_path / "rows.parquet")
    arrays = {name: np.array(values) for name, values in ROWS.items()}
    paths = [tmp_path / "rows.csv", str(tmp_path / "polars.csv"), tmp_path / "rows.parquet"]
    category = frame.astype({"activity": "category", "who": "string"})
    for rows in (frame, category, pl.DataFrame(ROWS), pl.LazyFrame(ROWS), pa.table(ROWS), arrays, *paths):
        assert read(rows) == expected


def test_every_source_orders_by_the_same_times(tmp_path: Path) -> None:
    times = [datetime(2020, 1, day, 8, 30) for day in ROWS["when"]]
    rows = {**ROWS, "when": times}
    expected = read(rows)
    assert expected["ann"].order is not None
    assert expected["ann"].order.dtype == np.dtype("datetime64[us]")
    assert expected["ann"].y.tolist() == [1.0, 2.0, 3.0, 4.0]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    zoned = {**rows, "when": [f"{time.isoformat()}Z" for time in times]}
    aware = pd.DataFrame(rows)
    aware["when"] = aware["when"].dt.tz_localize("UTC").dt.tz_convert("US/Eastern")
    for source in (
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pa.table(rows),
        tmp_path / "rows.csv",
        tmp_path / "rows.parquet",
        zoned,
        aware,
    ):
        assert read(source) == expected
    dates = {**rows, "when": [time.date() for time in times]}
    assert read(dates)["ann"].y.tolist() == [1.0, 2.0, 3.0, 4.0]


@given(shuffle=st.permutations(range(7)))
def test_the_tables_order_does_not_matter_without_ties(shuffle: list[int]) -> None:
    shuffled = {name: [values[i] for i in shuffle] for name, values in ROWS.items()}
    cohort = read(shuffled)
    for name in ("ann", "bob"):
        assert cohort[name] == read()[name]


def test_ties_keep_the_tables_order_and_are_counted() -> None:
    cohort = read({**ROWS, "when": [1, 1, 1, 1, 0, 2, 1]})
    assert cohort["ann"].y.tolist() == [2.0, 3.0, 1.0, 4.0]
    assert cohort.report.repeated == {"ann": 2, "bob": 1}
    assert "order value repeated (table order kept): 3 rows (ann 2, bob 1)" in str(cohort.report)


def test_many_ties_keep_the_tables_order() -> None:
    rows = {"u": ["a"] * 300, "t": [row % 3 for row in range(300)], "x": [0.0] * 300, "y": list(range(300))}
    cohort = Cohort.from_table(
        rows, user="u", order="t", target="y", covariates=["x"], batch_size=40, target_scaling="none"
    )
    assert cohort["a"].y.tolist() == sorted(range(300), key=lambda row: row % 3)


def test_large_integers_order_exactly() -> None:
    base = 1_700_000_000_000_000_000
    assert read({**ROWS, "when": [base + v for v in ROWS["when"]]})["ann"].y.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_batches_by_column_and_by_ends() -> None:
    rows = {**ROWS, "week": [2, "a", 1, "b", 1, "b", 2]}
    assert [user.ends for user in read(rows, batch_size=None, batch_column="week")] == [(2, 4), (1, 3)]
    assert [user.ends for user in read(batch_size=None, ends=[1, 3])] == [(1, 3, 4), (1, 3)]
    by_user = read(batch_size=None, ends={"ann": [3, 4], "bob": [3]})
    assert [user.ends for user in by_user] == [(3, 4), (3,)]
    assert [user.ends for user in read(batch_size=100)] == [(4,), (3,)]
    with pytest.raises(DataError, match="no batch ends are given for user 'bob'"):
        read(batch_size=None, ends={"ann": [4]})
    with pytest.raises(DataError, match="batch_size=, batch_column= or ends="):
        read(batch_size=None)
    with pytest.raises(DataError, match="batch column 'week' of the table is missing in row 2"):
        read({**rows, "week": [1, None, 1, 1, 1, 1, 1]}, batch_size=None, batch_column="week")


def test_missing_values_follow_the_declared_policy_only() -> None:
    rows = with_value("hour", 2, None)
    with pytest.raises(DataError, match=r"'hour' of the table is missing in row 3, user 'ann', and in 1 row alto"):
        read(rows)
    dropped = read(rows, missing="drop")
    assert dropped["ann"].y.tolist() == [2.0, 3.0, 4.0]
    assert dropped["ann"].ends == (2, 3), "batches by size count the rows that are kept"
    assert dropped.report.dropped == {"hour": {"ann": 1}}
    assert dropped.report.missing("hour") == 1
    assert dropped.report.missing("steps") == 0
    assert (dropped.report.rows_read, dropped.report.rows_kept) == (7, 6)
    filled = read(rows, missing={"hour": 10})
    assert filled.users == read().users
    assert filled.report.filled == {"hour": {"ann": 1}}
    assert "filled, hour missing: 1 row (ann 1)" in str(filled.report)
    level = read(with_value("activity", 0, None), missing={"activity": "unknown"})
    assert level.raw[0].X[2].tolist() == [8.0, 2.0]
    with pytest.raises(DataError, match=r"'steps' .* missing"):
        read(with_value("steps", 0, float("nan")), missing={"hour": "drop"})
    ends = read(rows, missing="drop", batch_size=None, ends=[2, 4])
    assert ends["ann"].ends == (1, 3), "explicit ends count the table's rows"


def test_a_row_with_two_gaps_counts_under_both_and_is_dropped_once() -> None:
    rows = {**with_value("hour", 2, None), "steps": with_value("steps", 2, None)["steps"]}
    report = read(rows, missing="drop").report
    assert report.dropped == {"hour": {"ann": 1}, "steps": {"ann": 1}}
    assert report.rows_read - report.rows_kept == 1


def test_users_without_rows_left_are_named() -> None:
    rows = {**ROWS, "hour": [None if who == "bob" else h for who, h in zip(ROWS["who"], ROWS["hour"], strict=True)]}
    cohort = read(rows, missing="drop")
    assert cohort.names == ("ann",)
    assert cohort.report.empty == ("bob",)
    assert "no rows left, not in the cohort: bob" in str(cohort.report)
    with pytest.raises(DataError, match="no row of the table is left"):
        read({**ROWS, "hour": [None] * 7}, missing="drop")


def test_unavailable_rows_stay_unless_asked() -> None:
    assert read().rows == 7
    cohort = read(available_only=True)
    assert cohort["ann"].y.tolist() == [2.0, 3.0, 4.0]
    assert cohort.report.unavailable == {"ann": 1}
    assert "dropped, user not available: 1 row (ann 1)" in str(cohort.report)
    assert read(with_value("hour", 2, None), available_only=True).rows == 6, "gaps in unwanted rows are no error"
    with pytest.raises(DataError, match="needs the availability column"):
        read(available_only=True, availability=None)


def test_no_action_is_missing_where_nobody_could_act() -> None:
    gaps = with_value("chance", 2, None) | {"sent": [1, 0, None, 1, 1, 0, 1]}  # ann was not free in row 3
    cohort = read(gaps)
    ann = cohort.raw[0]
    assert ann.probability is not None
    assert ann.action is not None
    assert (ann.probability[0], ann.action[0]) == (0.0, 0.0)  # the oldest of hers
    assert cohort.report.idle == {"sent": {"ann": 1}, "chance": {"ann": 1}}
    assert cohort.rows == 7
    for column in ("chance", "sent"):
        with pytest.raises(DataError, match=f"column '{column}' of the table is missing in row 1"):
            read(with_value(column, 0, None))
    assert not read(gaps, available_only=True).report.idle  # the row is dropped for another reason


def test_an_assignment_that_cannot_be_is_counted() -> None:
    assert not read().report.certain
    assert not read().report.impossible
    assert read(with_value("chance", 0, 1.0)).report.certain == {"ann": 1}
    assert read(with_value("chance", 1, 0.0), availability=None).report.certain == {"ann": 1, "bob": 1}
    assert read(with_value("sent", 2, 1)).report.impossible == {"ann": 1}
    assert not read(with_value("sent", 2, 1), available_only=True).report.impossible


def test_users_know_the_rows_that_they_were_read_from() -> None:
    cohort = read(with_value("hour", 4, None), missing="drop")
    indices = {user.name: None if user.index is None else user.index.tolist() for user in cohort.raw}
    assert indices == {"ann": [2, 0, 6], "bob": [1, 3, 5]}  # in time order, row 5 of the table is dropped
    for user in (*cohort.raw, *cohort.users):
        assert user.index is not None
        assert user.action is not None
        assert user.action.tolist() == [ROWS["sent"][row] for row in user.index]


def test_a_table_without_outcomes_is_one_of_rows_to_predict() -> None:
    schema = read().schema
    lacking = {name: values for name, values in ROWS.items() if name != "steps"}
    with pytest.raises(DataError, match=r"has no column 'steps', so nobody .* kerneltrail\.evaluation\.forecast"):
        Cohort.from_schema(schema, lacking)
    with pytest.raises(DataError, match="has no outcome in its column 'steps'"):
        Cohort.from_schema(schema, {**ROWS, "steps": [None] * 7})
    with pytest.raises(DataError, match="has no column 'who'"):
        Cohort.from_schema(schema, {"steps": [1.0]})
    with pytest.raises(
        DataError, match="has no column 'steps'; each of its columns has another role"
    ):  # nothing was learnt yet
        read(lacking)


def test_user_names_of_numbers_are_whole() -> None:
    for names in (
        [1, 2, 1, 2, 1, 2, 1],
        [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0],
        list("1212121"),
        ["1.0", "2"] * 3 + ["1"],
    ):
        assert read({**ROWS, "who": names}).names == ("1", "2")


def test_texts_true_and_false_are_flags(tmp_path: Path) -> None:
    rows = {**ROWS, "free": ["TRUE" if flag else "FALSE" for flag in ROWS["free"]]}
    assert read(rows) == read()


def test_the_order_column_may_be_a_covariate(tmp_path: Path) -> None:
    cohort = read(covariates=["when", "hour"], categorical={})
    cohort.write_csv(tmp_path / "rows.csv")
    assert Cohort.from_schema(cohort.schema, tmp_path / "rows.csv").users == cohort.users


def test_scaling_by_group_by_user_and_not_at_all() -> None:
    group, own, none = read(), read(scaling="user"), read(scaling="none")
    assert group.scaler.low == (8.0, 0.0)
    assert group.scaler.high == (18.0, 2.0)
    assert own.scaler_for("ann").high == (18.0, 2.0), "levels scale by what is declared, not by what was seen"
    assert group.scaler_for("bob") == group.scaler == group.scaler_for(group["bob"])
    assert own.scaler_for("bob").low == (9.0, 0.0)
    assert own["bob"].X[:, 0].tolist() == [0.0, 0.5, 1.0]
    assert none.users == none.raw == group.raw
    assert none.scaler == Scaler.identity(("hour", "activity"))
    assert group.rescaled("user") == own
    assert own.rescaled("group") == group
    with pytest.raises(DataError, match="ask scaler_for"):
        _ = own.scaler
    with pytest.raises(DataError, match="no user 'bop'; did you mean 'bob'"):
        group.scaler_for("bop")
    standard = read(target_scaling="standard", scaling="none")
    assert np.concatenate([user.y for user in standard]).mean() == pytest.approx(0.0, abs=1e-15)
    assert standard.users[0].X.tolist() == standard.raw[0].X.tolist()
    np.testing.assert_allclose(standard.scaler.inverse_target(standard["ann"].y), [1, 2, 3, 4], rtol=1e-14)


def test_split_scales_by_the_training_users_alone() -> None:
    train, test = read().split(test=["ann"])
    assert (train.names, test.names) == (("bob",), ("ann",))
    assert train.scaler == test.scaler
    assert train.scaler.low == (9.0, 0.0)
    assert test["ann"].X[:, 0].tolist() == [0.25, 0.75, -0.25, 2.25]
    assert read(scaling="user").split(test=["ann"])[1].users == read(scaling="user").subset(["ann"]).users
    assert read().subset(["bob"])["bob"] == read()["bob"]
    assert read().subset(["bob", "ann"]).names == ("bob", "ann")
    for names in ([], ["ann", "bob"]):
        with pytest.raises(DataError, match="both sides"):
            read().split(test=names)
    with pytest.raises(DataError, match="no user 'anne'; did you mean 'ann'"):
        read().split(test=["anne"])


def test_written_and_read_again_it_is_equal(tmp_path: Path) -> None:
    for cohort in (read(), read(scaling="user"), read({**ROWS, "when": [datetime(2020, 1, d) for d in ROWS["when"]]})):
        path = tmp_path / "out.csv"
        cohort.write_csv(path)
        assert [item.name for item in tmp_path.iterdir()] == ["out.csv"]
        again = Cohort.from_schema(cohort.schema, path)
        assert again.users == cohort.users
        assert again.schema == cohort.schema
        assert read(cohort.to_rows(), scaling=cohort.schema.scaling).users == cohort.users
        with path.open(newline="") as file:
            assert next(csv.reader(file)) == [
                "who",
                "when",
                "batch",
                "hour",
                "activity",
                "steps",
                "sent",
                "free",
                "chance",
            ]
    by_batch = {**ROLES, "batch_size": None, "batch_column": "batch"}
    assert Cohort.from_table(tmp_path / "out.csv", **by_batch)["ann"].ends == (2, 4)
    with pytest.raises(DataError, match="cannot be written"):
        cohort.write_csv(tmp_path / "out.csv" / "out.csv")


def test_summary_is_in_data_units() -> None:
    first = read(target_scaling="standard").summary()[0]
    assert first == {
        "user": "ann",
        "rows": 4,
        "batches": 2,
        "mean": 2.5,
        "sd": np.std([1, 2, 3, 4], ddof=1),
        "action": 0.75,
    }


def test_it_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(read())) == read()
    assert hash(read()) == hash(read())
    assert read() != read(scaling="user")


def test_names_that_collide_are_written_apart(tmp_path: Path) -> None:
    X = [[1.0, 5.0, 7.0], [2.0, 6.0, 8.0]]
    cohort = Cohort.from_users([User("a", ("order", "user", "batch"), X, [1.0, 2.0], (1, 2))], scaling="none")
    cohort.write_csv(tmp_path / "out.csv")
    again = Cohort.from_schema(cohort.schema, tmp_path / "out.csv")["a"]
    assert (again.X.tolist(), again.ends) == (X, (1, 2))
    named = read({**ROWS, "batch": [2, 1, 1, 1, 1, 2, 2]}, covariates=["hour", "batch"], categorical={})
    assert Cohort.from_schema(named.schema, named.to_rows()).users == named.users


def test_times_finer_than_a_microsecond_are_cut() -> None:
    times = pd.to_datetime([f"2020-01-0{day} 08:00:00.123456789" for day in ROWS["when"]])
    cohort = read(pd.DataFrame({**ROWS, "when": times}))
    assert cohort["ann"].y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert cohort["ann"].order is not None
    assert str(cohort["ann"].order[0]) == "2020-01-01T08:00:00.123456"


def test_from_users(tmp_path: Path) -> None:
    users = [User("a", ("x",), [[1.0], [3.0]], [1.0, 2.0], (1, 2)), User("b", ("x",), [[2.0]], [1.0], (1,))]
    cohort = Cohort.from_users(users, units={"x": "m"})
    assert cohort["a"].X[:, 0].tolist() == [0.0, 1.0]
    assert cohort.units == {"x": "m"}
    cohort.write_csv(tmp_path / "out.csv")
    again = Cohort.from_schema(cohort.schema, tmp_path / "out.csv")
    assert [user.ends for user in again] == [(1, 2), (1,)]
    assert [user.X.tolist() for user in again] == [user.X.tolist() for user in cohort]
    with pytest.raises(DataError, match="two users are named 'a'"):
        Cohort.from_users([users[0], users[0]])
    with pytest.raises(DataError, match="different covariates"):
        Cohort.from_users([users[0], User("c", ("z",), [[2.0]], [1.0], (1,))])
    with pytest.raises(DataError, match="user 'c' has covariates z, the cohort x"):
        Cohort.from_users([users[0], User("c", ("z",), [[2.0]], [1.0], (1,))], scaling="user")
    with pytest.raises(DataError, match="at least one user"):
        Cohort.from_users([])


def test_new_users_are_read_with_the_groups_scaler() -> None:
    pilot = read()
    new = {**{name: values[:3] for name, values in ROWS.items()}, "who": ["eve"] * 3, "hour": [28.0, 13.0, -2.0]}
    cohort = pilot.read(new)
    assert sorted(cohort["eve"].X[:, 0].tolist()) == [-1.0, 0.5, 2.0]
    assert cohort.scaler == pilot.scaler
    assert pilot.read(new, batching=Batching())["eve"].ends == (3,)

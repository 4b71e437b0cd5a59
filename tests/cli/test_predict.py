"""`kerneltrail predict`: rows without an outcome, as a table that joins back."""

import csv

import numpy as np
import pytest

from cli.invoke import refused, run, table
from kerneltrail.data import Cohort
from kerneltrail.evaluation import forecast
from kerneltrail.trajectory.model import load, save
from trajectory.small import rewarded_model, rows


@pytest.fixture
def future(fitted, tmp_path):
    """The rows of the new users after their first 15, without outcome, their order mixed; and the first 15."""
    with (fitted / "new.csv").open(newline="") as file:
        every = list(csv.DictReader(file))
    first = [row for row in every if row["batch"] != "3"]
    later = [{name: row[name] for name in ("order", "x", "user", "batch")} for row in every if row["batch"] == "3"]
    later = [later[i] for i in np.random.default_rng(0).permutation(len(later))]
    write(tmp_path / "history.csv", first)
    write(tmp_path / "future.csv", later)
    return later


def write(path, lines):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def predict(fitted, tmp_path, *more, history=True, data="future.csv", model="m.trail"):
    words = [tmp_path / "history.csv"] if history else []
    return run(
        "predict", fitted / model, *words, "--rows", tmp_path / data, "--out", tmp_path / "p.csv", *more
    )  # fmt: skip


def test_a_row_for_each_row_with_numbers_of_the_followed_user(fitted, future, tmp_path):
    result = predict(fitted, tmp_path)
    assert result.exit_code == 0, result.output
    assert "history.csv: 45 rows read, 45 kept" in result.stdout
    assert "future.csv: 30 rows read, 30 kept" in result.stdout
    assert f"30 rows predicted: {tmp_path / 'p.csv'}" in result.stdout
    predicted = table(tmp_path / "p.csv")
    assert [int(row["table_row"]) for row in predicted] == list(range(1, 31))
    for name in ("user", "order", "batch"):
        assert [row[name] for row in predicted] == [row[name] for row in future]
    model = load(fitted / "m.trail")
    for person in Cohort.from_schema(model.schema, tmp_path / "history.csv").raw:
        user = model.new_user(person.name)
        for t in (1, 2):
            user.update(person.batch(t).X, person.batch(t).y)
        of = [i for i, row in enumerate(future) if row["user"] == person.name]
        ahead = user.predict([[float(future[i]["x"])] for i in of])
        low, high = ahead.interval(0.9)
        for column, values in (("mean", ahead.mean), ("sd", ahead.sd), ("lower_90", low), ("upper_90", high)):
            assert [float(predicted[i][column]) for i in of] == pytest.approx(values.tolist(), rel=1e-12)


def test_a_parquet_file_says_the_same(fitted, future, tmp_path):
    polars = pytest.importorskip("polars")
    assert predict(fitted, tmp_path).exit_code == 0
    by_csv = table(tmp_path / "p.csv")
    polars.read_csv(tmp_path / "future.csv").write_parquet(tmp_path / "future.parquet")
    assert predict(fitted, tmp_path, data="future.parquet").exit_code == 0
    assert table(tmp_path / "p.csv") == by_csv


def test_everybody_is_new_without_a_history(fitted, future, tmp_path):
    result = predict(fitted, tmp_path, history=False)
    assert result.exit_code == 0, result.output
    assert "no rows so far, predicted as new users: " in result.stdout
    assert {row["rows_seen"] for row in table(tmp_path / "p.csv")} == {"0"}


def test_a_saved_user_in_place_of_its_rows(fitted, future, tmp_path):
    model = load(fitted / "m.trail")
    person = Cohort.from_schema(model.schema, tmp_path / "history.csv").raw[1]
    user = model.new_user(person.name)
    for t in (1, 2):
        user.update(person.batch(t).X, person.batch(t).y)
    user.save(tmp_path / "one.user")
    result = predict(fitted, tmp_path, "--user", tmp_path / "one.user", history=False)
    assert result.exit_code == 0, result.output
    seen = {row["user"]: row["rows_seen"] for row in table(tmp_path / "p.csv")}
    assert {name for name, rows in seen.items() if rows == "15"} == {person.name}
    refused(predict(fitted, tmp_path, "--user", tmp_path / "one.user"), "would count twice")
    refused(predict(fitted, tmp_path, "--user", tmp_path / "two.user"), "two.user")
    refused(predict(fitted, tmp_path, "--user", tmp_path / "future.csv"), "not a file that kerneltrail wrote")


def test_further_columns_are_carried_along_and_are_no_formulas(fitted, future, tmp_path):
    write(tmp_path / "more.csv", [{**row, "site": "=1+1", "mean": "x"} for row in future])
    assert predict(fitted, tmp_path, "--keep", "site,mean", data="more.csv").exit_code == 0
    predicted = table(tmp_path / "p.csv")
    assert {(row["site"], row["mean_"]) for row in predicted} == {("'=1+1", "x")}
    assert all(float(row["mean"]) for row in predicted)


def test_with_an_action_the_advantage_and_both_means(tmp_path):
    model = rewarded_model()
    save(model, tmp_path / "m.trail")
    past = Cohort.from_users([rows("ann", seed=5), rows("bob", seed=6)], target="mood")
    past.write_csv(tmp_path / "history.csv")
    ahead = [{"user": "bob", "order": 20 + i, "hour": 4.0 * i, "steps": 90.0 * i, "action": i % 2} for i in range(4)]
    write(tmp_path / "future.csv", ahead)
    result = predict(tmp_path, tmp_path)
    assert result.exit_code == 0, result.output
    by_hand = forecast(model, past.to_rows(), {name: [row[name] for row in ahead] for name in ahead[0]}).to_rows()
    predicted = table(tmp_path / "p.csv")
    assert [row["action"] for row in predicted] == ["0", "1", "0", "1"]
    for column in ("mean", "mean_action_0", "mean_action_1", "advantage", "advantage_lower_90", "advantage_positive"):
        assert [float(row[column]) for row in predicted] == pytest.approx(by_hand[column], rel=1e-9)
    write(tmp_path / "future.csv", [{name: row[name] for name in row if name != "action"} for row in ahead])
    result = predict(tmp_path, tmp_path)
    assert "mean, sd and intervals are empty" in result.stdout
    assert table(tmp_path / "p.csv")[0]["mean"] == ""


def test_rows_with_a_missing_covariate_are_refused_or_dropped_as_asked(fitted, future, tmp_path):
    name = future[3]["user"]
    future[3]["x"] = ""
    write(tmp_path / "gap.csv", future)
    result = predict(fitted, tmp_path, data="gap.csv")
    assert result.exit_code == 2
    assert f"user {name!r} is left out: column 'x' of gap.csv is missing in row 4 (line 5)" in result.stderr
    assert "--missing drop" in result.stderr
    assert {row["user"] for row in table(tmp_path / "p.csv")} == {row["user"] for row in future} - {name}
    result = predict(fitted, tmp_path, "--missing", "drop", data="gap.csv")
    assert result.exit_code == 0, result.output
    assert f"dropped, x missing: 1 row ({name} 1)" in result.stdout
    assert [int(row["table_row"]) for row in table(tmp_path / "p.csv")] == [i for i in range(1, 31) if i != 4]


def test_bad_input_is_refused_in_words_and_nothing_is_written(fitted, future, tmp_path):
    refused(predict(fitted, tmp_path, "--keep", "batsch"), "has no column 'batsch'; did you mean 'batch'?")
    refused(predict(fitted, tmp_path, "--keep", ","), "name at least one column")
    refused(predict(fitted, tmp_path, data="none.csv"), "there is no file")
    refused(predict(fitted, tmp_path, "--batch-size", 3, "--batch-column", "batch"), "in one way")
    write(tmp_path / "lacking.csv", [{"user": row["user"], "order": row["order"], "xx": 1.0} for row in future])
    refused(predict(fitted, tmp_path, data="lacking.csv"), "has no column 'x'")
    (tmp_path / "history.csv").write_text((tmp_path / "future.csv").read_text())
    refused(predict(fitted, tmp_path), "history.csv has no column 'y', so nobody can be followed on it")
    assert not (tmp_path / "p.csv").exists()
    inside = tmp_path / "future.csv" / "p.csv"
    refused(run("predict", fitted / "m.trail", "--rows", tmp_path / "future.csv", "--out", inside), "cannot be written")

"""`kerneltrail select`: selections and predictions of new users, as tables."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cli.invoke import refused, run, table
from kerneltrail.data import Cohort
from kerneltrail.kernels import NOTHING
from kerneltrail.trajectory.model import load, save
from kerneltrail.trajectory.new_user import NewUser
from trajectory.small import rewarded_model, rows, small_model


def select(fitted, tmp_path, *more, data="new.csv", model="m.trail"):
    return run("select", fitted / model, fitted / data, "--out", tmp_path / "s.csv", *more)


def test_a_row_per_user_and_batch(fitted, tmp_path):
    result = select(fitted, tmp_path, "--predictions", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    model = load(fitted / "m.trail")
    new = Cohort.from_schema(model.schema, fitted / "new.csv")
    steps, predicted = table(tmp_path / "s.csv"), table(tmp_path / "p.csv")
    assert [(row["user"], int(row["batch"]), int(row["rows"])) for row in steps] == [
        (user.name, t, user.ends[t - 1]) for user in new.raw for t in (1, 2, 3)
    ]
    assert len(predicted) == new.rows
    user = model.new_user(new.raw[0].name)
    for t in (1, 2):
        batch, after = new.raw[0].batch(t), new.raw[0].batch(t + 1)
        step = user.update(batch.X, batch.y)
        row, next_rows = steps[t - 1], predicted[user.rows : user.rows + after.rows]
        assert row["composition"] == (step.composition.text or NOTHING)
        assert float(row["probability"]) == step.probabilities[step.composition]
        for node in model.nodes:
            assert float(row[f"log_evidence {node.composition.text or NOTHING}"]) == step.log_evidence[node.composition]
        prediction = user.predict(after.X)
        assert float(row["next_rmse"]) == np.sqrt(np.mean((after.y - prediction.mean) ** 2))
        assert float(row["next_log_density"]) == prediction.log_density(after.y).mean()
        assert [float(each["mean"]) for each in next_rows] == prediction.mean.tolist()
        assert [float(each["sd"]) for each in next_rows] == np.sqrt(prediction.total).tolist()
        assert {each["batch"] for each in next_rows} == {str(t + 1)}
        assert [int(each["row"]) for each in next_rows] == [user.rows + i + 1 for i in range(after.rows)]
        low, high = prediction.interval(0.9)
        assert [float(each["lower_90"]) for each in next_rows] == low.tolist()
        assert [float(each["upper_90"]) for each in next_rows] == high.tolist()
        assert [float(each["y"]) for each in next_rows] == after.y.tolist()
    assert steps[2]["next_rmse"] == ""  # nothing is known of a batch after the last


def test_one_user_and_one_row_are_counted_as_one(fitted, tmp_path):
    header, row = (fitted / "new.csv").read_text().splitlines()[:2]
    (tmp_path / "new.csv").write_text(f"{header}\n{row}\n")
    out, told = tmp_path / "s.csv", tmp_path / "p.csv"
    said = run("select", fitted / "m.trail", tmp_path / "new.csv", "--out", out, "--predictions", told).stdout
    assert f"1 row read, 1 kept\n1 user, 1 batch: {out}\n1 row predicted: {told}\n" in said
    said = run("predict", fitted / "m.trail", "--rows", tmp_path / "new.csv", "--out", told).stdout
    assert f"1 row predicted: {told}\n" in said


def test_the_progress_moves_within_a_users_batches(fitted, tmp_path, heard):
    assert select(fitted, tmp_path, "--batch-size", 5).exit_code == 0
    assert heard.titles == ["stage 1 of 2: reading new.csv", "stage 2 of 2: following users"]
    progress = heard[1:]
    assert {now.total for now in progress} == {15}  # three users of five batches
    assert sorted({now.done for now in progress}) == list(range(16))
    assert [now.done for now in progress] == sorted(now.done for now in progress)
    assert progress[3].said == "test-01, batch 3 of 5"


def test_rows_join_back_to_the_table_after_some_were_dropped_and_others_sorted(fitted, tmp_path):
    lines = (fitted / "new.csv").read_text().splitlines()
    names = lines[0].split(",")
    body = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    body = [body[i] for i in np.random.default_rng(3).permutation(len(body))]
    without = {2, 40, 41}
    for number in without:
        body[number]["y"] = ""
    text = [",".join(row[name] for name in names) for row in body]
    (tmp_path / "mixed.csv").write_text("\n".join([lines[0], *text]))
    result = select(fitted, tmp_path, data=tmp_path / "mixed.csv")
    assert result.exit_code == 2  # the model was fitted on a table without gaps, which says nothing of them
    assert "--missing drop" in result.stderr
    more = ("--missing", "drop", "--predictions", tmp_path / "p.csv")
    result = select(fitted, tmp_path, *more, data=tmp_path / "mixed.csv")
    assert result.exit_code == 0, result.output
    assert "3 rows without y: neither learnt from nor predicted; `kerneltrail predict` predicts" in result.stdout
    predicted, steps = table(tmp_path / "p.csv"), table(tmp_path / "s.csv")
    joined = {int(row["table_row"]): row for row in predicted}
    assert set(joined) == set(range(1, len(body) + 1)) - {number + 1 for number in without}
    for number, row in joined.items():
        given = body[number - 1]
        assert (row["user"], row["order"], float(row["y"])) == (given["user"], given["order"], float(given["y"]))
    last = {(row["user"], row["batch"]): row for row in predicted}  # rows of a user are in time order
    for step in steps:  # batches count alike, and a batch is dated by its last row
        row = last[step["user"], step["batch"]]
        assert (step["order"], step["table_row"], step["rows"]) == (row["order"], row["table_row"], row["row"])
    assert len(last) == len(steps)


def test_an_order_column_with_a_taken_name_is_written_under_another(tmp_path):
    model = rewarded_model()
    model = replace(model, schema=replace(model.schema, order="row"))
    save(model, tmp_path / "m.trail")
    columns = Cohort.from_users([rows("new", seed=5)], target="mood").to_rows()
    columns["row"] = [f"2024-01-{i + 1:02d} 08:00" for i in range(12)]
    lines = [",".join(columns), *(",".join(map(str, values)) for values in zip(*columns.values(), strict=True))]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    assert select(tmp_path, tmp_path, "--predictions", tmp_path / "p.csv").exit_code == 0
    first = table(tmp_path / "p.csv")[0]
    assert (first["row"], first["row_"]) == ("1", "2024-01-01 08:00")


def test_a_table_without_outcomes_is_one_for_predict(fitted, tmp_path):
    for text in ("user,order,batch,x\na,1,1,0.5\n", "user,order,batch,x,y\na,1,1,0.5,\n"):
        (tmp_path / "future.csv").write_text(text)
        page = ("report", fitted / "m.trail", "--data", tmp_path / "future.csv", "--out", tmp_path / "page.html")
        for result in (select(fitted, tmp_path, data=tmp_path / "future.csv"), run(*page)):
            refused(result, "'y', so nobody can be followed on it", "kerneltrail predict MODEL --rows future.csv")
            assert "did you mean" not in result.output
    (tmp_path / "future.csv").write_text("user;order;batch;x;y\na;1;1;0.5;1\n")
    refused(select(fitted, tmp_path, data=tmp_path / "future.csv"), "its header is one name with ';' in it")


def test_values_outside_the_range_are_named_where_it_is_known(tmp_path):
    save(small_model(), tmp_path / "m.trail")
    Cohort.from_users([rows("new", seed=5, high=40.0)], target="mood").write_csv(tmp_path / "new.csv")
    assert select(tmp_path, tmp_path, "--predictions", tmp_path / "p.csv").exit_code == 0
    far = [row["hour"] > small_model().scaler.high[0] for row in _numbers(tmp_path / "new.csv")]
    assert any(far)
    assert ["hour" in row["outside"] for row in table(tmp_path / "p.csv")] == far


def _numbers(path):
    return [{name: float(value) for name, value in row.items() if name != "user"} for row in table(path)]


def test_greedy_leaves_evidences_empty_that_it_did_not_look_at(fitted, tmp_path):
    assert select(fitted, tmp_path, "--selection", "greedy", "--batch-size", 9).exit_code == 0
    rows = table(tmp_path / "s.csv")
    assert [row["rows"] for row in rows[:3]] == ["9", "18", "25"]
    assert {row["probability"] for row in rows} == {"1.0"}
    assert any(value == "" for row in rows for name, value in row.items() if name.startswith("log_evidence"))


def test_values_outside_the_range_of_the_pilot_users_are_not_clipped(fitted, tmp_path):
    rng = np.random.default_rng(0)
    far = ["user,order,batch,x,y", *(f"far,{i},{i // 10},{rng.uniform(50, 90)},{rng.normal()}" for i in range(30))]
    (tmp_path / "far.csv").write_text("\n".join(far))
    result = select(fitted, tmp_path, "--predictions", tmp_path / "p.csv", data=tmp_path / "far.csv")
    assert result.exit_code == 0, result.output
    assert all(math.isfinite(float(row["mean"])) for row in table(tmp_path / "p.csv"))


def test_a_reward_model_reads_actions(tmp_path):
    model = rewarded_model()
    save(model, tmp_path / "m.trail")
    Cohort.from_users([rows("new", seed=5)], target="mood").write_csv(tmp_path / "new.csv")
    assert select(tmp_path, tmp_path, "--predictions", tmp_path / "p.csv").exit_code == 0
    own, person = model.new_user(), rows("new", seed=5)
    own.update(person.X[:4], person.y[:4], action=person.action[:4])
    said, seen = own.advantage(person.X[4:8]), table(tmp_path / "p.csv")[4:8]
    assert [float(row["advantage"]) for row in seen] == pytest.approx(said.mean.tolist())
    assert [float(row["advantage_lower_90"]) for row in seen] == pytest.approx(said.interval(0.9)[0].tolist())
    assert [float(row["advantage_positive"]) for row in seen] == pytest.approx(said.positive.tolist())
    without = own.predict(person.X[4:8], action=np.zeros(4)).mean
    assert [float(row["mean_action_0"]) for row in seen] == pytest.approx(without.tolist())
    text = (tmp_path / "new.csv").read_text().replace("action", "acted", 1)
    (tmp_path / "new.csv").write_text(text)
    refused(select(tmp_path, tmp_path), "has no column 'action'")


def test_bad_input_is_refused_and_nothing_is_written(fitted, tmp_path):
    text = (fitted / "new.csv").read_text()
    (tmp_path / "lacking.csv").write_text(text.replace("x", "xx", 1))
    refused(select(fitted, tmp_path, data=tmp_path / "lacking.csv"), "has no column 'x'", "did you mean 'xx'?")
    refused(select(fitted, tmp_path, data="none.csv"), "there is no file")
    refused(select(fitted, tmp_path, model="new.csv"), "not a file that kerneltrail wrote")
    refused(select(fitted, tmp_path, "--predictions", tmp_path / "s.csv"), "they need a file each")
    refused(select(fitted, tmp_path, "--batch-size", 3, "--batch-column", "batch"), "in one way")
    refused(select(fitted, tmp_path, "--predictions", fitted / "new.csv" / "p"), "cannot be written")
    assert [path.name for path in tmp_path.iterdir()] == ["lacking.csv"]


def test_an_interrupt_leaves_no_file(fitted, tmp_path, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("kerneltrail.evaluation.selection_tables.SelectionTables.follow", stopped)
    result = select(fitted, tmp_path)
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_user_who_cannot_be_followed_is_named_and_the_others_go_on(fitted, tmp_path, monkeypatch):
    lines = (fitted / "new.csv").read_text().splitlines()
    names = list(dict.fromkeys(line.split(",")[0] for line in lines[1:]))
    real = NewUser.update

    def update(self, X, y, **more):
        if self.name == names[1] and self.batches == 1:
            raise ZeroDivisionError("float division by zero")
        return real(self, X, y, **more)

    monkeypatch.setattr(NewUser, "update", update)
    result = select(fitted, tmp_path, "--predictions", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert f"user {names[1]!r} is left out, for rows 6 to 15 (batch 2): ZeroDivisionError" in result.stderr
    assert "2 users, 6 batches" in result.stdout
    for path in ("s.csv", "p.csv"):
        assert list(dict.fromkeys(row["user"] for row in table(tmp_path / path))) == [names[0], names[2]]


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_huge_number_stops_nobody_else(fitted, tmp_path, column):
    """Of one user's rows one is beyond what can be squared: whether it is refused or not, the others are there."""
    lines = (fitted / "new.csv").read_text().splitlines()
    place, cells = lines[0].split(",").index(column), lines[8].split(",")
    cells[place] = "1e300"
    (tmp_path / "huge.csv").write_text("\n".join([*lines[:8], ",".join(cells), *lines[9:]]))
    whole = select(fitted, tmp_path)
    assert whole.exit_code == 0
    expected = [row for row in table(tmp_path / "s.csv") if row["user"] != cells[0]]
    result = select(fitted, tmp_path, data=tmp_path / "huge.csv")
    assert "Traceback" not in result.output
    assert result.exit_code == 2
    assert repr(cells[0]) in result.stderr
    assert "1e+300" in result.stderr
    assert table(tmp_path / "s.csv") == expected
    page = run("report", fitted / "m.trail", "--data", tmp_path / "huge.csv", "--out", tmp_path / "page.html")
    assert page.exit_code == 2
    assert repr(cells[0]) in page.stderr
    others = {row["user"] for row in expected}
    assert all(name in (tmp_path / "page.html").read_text() for name in others)


def test_times_written_otherwise_stop_nobody_else(fitted, tmp_path):
    lines = (fitted / "new.csv").read_text().splitlines()
    name, place = lines[8].split(",")[0], lines[0].split(",").index("order")
    assert select(fitted, tmp_path).exit_code == 0
    expected = [row for row in table(tmp_path / "s.csv") if row["user"] != name]
    cells = [line.split(",") for line in lines]
    cells = [[*row[:place], "day 1", *row[place + 1 :]] if row[0] == name else row for row in cells]
    (tmp_path / "odd.csv").write_text("\n".join(",".join(row) for row in cells))
    result = select(fitted, tmp_path, data=tmp_path / "odd.csv")
    assert result.exit_code == 2
    assert f"user {name!r} is left out: order column 'order' of odd.csv is 'day 1' in row" in result.stderr
    assert table(tmp_path / "s.csv") == expected


def test_a_user_s_name_is_no_formula(fitted, tmp_path):
    text = (fitted / "new.csv").read_text()
    name = text.splitlines()[1].split(",")[0]
    (tmp_path / "odd.csv").write_text(text.replace(f"\n{name},", "\n@SUM(A1),"))
    result = select(fitted, tmp_path, "--predictions", tmp_path / "p.csv", data=tmp_path / "odd.csv")
    assert result.exit_code == 0
    for path in ("s.csv", "p.csv"):
        assert table(tmp_path / path)[0]["user"] == "'@SUM(A1)"

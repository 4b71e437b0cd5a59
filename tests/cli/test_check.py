"""`kerneltrail check`: what is said, written and refused; and what `fit` and `select` say of it."""

import csv
import json
from html import unescape
from pathlib import Path

import pytest

from cli.conftest import fit
from cli.invoke import COLUMNS, refused, run, table
from kerneltrail.data.example import write_example
from kerneltrail.errors import DataError

ROLES = (
    "--user",
    "user",
    "--order",
    "time",
    "--target",
    "log_steps",
    "--action",
    "send",
    "--availability",
    "available",
)


@pytest.fixture
def pilot(tmp_path):
    return write_example(tmp_path)[0]


def rewritten(path, goal, change, *, delimiter=","):
    """The table with every row changed."""
    rows = [change(dict(row)) for row in table(path)]
    with goal.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return goal


def test_a_table_without_a_fault(pilot):
    result = run("check", pilot, *ROLES, "--batch-size", 40, "--missing", "drop")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "pilot.csv: 8 users, 1219 rows (143 to 159 a user), 32 batches of 23 to 40 rows"
    assert any(line.split()[:5] == ["temperature", "covariate", "3.1", "%", "226"] for line in lines)
    said = " ".join(result.stdout.split())
    assert "note: values are missing: 'temperature' in 40 rows (3.1 %) and 'log_steps' in 21 rows (1.6 %)." in said
    assert "Rows without 'temperature' or 'log_steps' are left out, 61 of 1280 rows in all." in said
    assert "missing values" not in said.split("Looked for and not found: ")[1].split(", ")
    assert not any(word in said for word in ("error:", "warning:"))


def test_findings_do_not_change_the_exit_code_and_are_written(pilot, tmp_path):
    html, told = tmp_path / "page.html", tmp_path / "told.json"
    result = run("check", pilot, *ROLES, "--html", html, "--json", told)  # without batches, with missing values
    assert result.exit_code == 0, result.output
    assert "warning: column 'temperature' is missing in 40 rows (3.1 %): rows 126, 127, 128, 129" in result.stdout
    assert "--missing drop" in result.stdout
    assert f"Written: {html}, {told}" in result.stdout
    stored = json.loads(told.read_text())
    assert {finding["columns"][0] for finding in stored["findings"]} == {"temperature", "log_steps"}
    assert stored["findings"][0]["rows"][:2] == [126, 127]
    assert "is missing in 40 rows" in html.read_text()


def test_a_cell_that_cannot_be_used_ends_in_2_after_everything_is_told(pilot, tmp_path):
    lines = pilot.read_text().splitlines()
    lines[5] = lines[5].replace(lines[5].split(",")[2], "noon", 1)
    pilot.write_text("\n".join(lines))
    words = ("check", pilot, *ROLES, "--missing", "drop", "--covariates", "hour,temperature")
    result = run(*words, "--json", tmp_path / "t.json")
    assert result.exit_code == 2
    assert "error: user 'pilot-1': column 'hour' of pilot.csv is 'noon' in row 5 (line 6)" in result.stdout
    assert "column 'hour' of pilot.csv is 'noon' in row 5" in result.stderr
    assert (tmp_path / "t.json").exists()
    result = run(*words[:-2])  # where all columns of numbers are taken, this one is not, and that is told
    assert result.exit_code == 0
    assert "warning: column 'hour' holds numbers in 1279 of 1280 rows, but 'noon' in row 5 (line 6)." in result.stdout


def test_texts_that_are_left_out_are_named_by_check_and_fit(fitted, tmp_path, monkeypatch):
    places = rewritten(fitted / "pilot.csv", tmp_path / "pilot.csv", lambda row: {**row, "place": "home"})
    said = "column 'place' holds no numbers and is not used"
    words = (places, *COLUMNS)
    result = run("check", *words)
    assert f"note: {said}." in result.stdout
    assert "--levels NAME=a,b,c" in result.stdout
    assert said not in run("check", *words, "--covariates", "x").stdout
    monkeypatch.setattr("kerneltrail.trajectory.fit.fit", stop)
    assert f"{said}. To use one" in fit(tmp_path, config=fitted / "quick.yaml").stdout
    assert said not in fit(tmp_path, "--covariates", "x", config=fitted / "quick.yaml").stdout


def stop(*_, **__):
    raise DataError("it stops before it fits")


def test_what_cannot_be_read_at_all_ends_in_2(pilot, tmp_path):
    refused(run("check", tmp_path / "none.csv", *ROLES), "there is no file")
    refused(run("check", pilot, "--user", "user", "--order", "time"), "--user, --order, --target", "needs all three")
    refused(run("check", pilot, *ROLES, "--covariates", "hours"), "no column 'hours'; did you mean 'hour'?")
    refused(run("check", pilot, *ROLES, "--html", pilot / "x.html"), "cannot be written")


def test_odd_dates_are_suggested_and_read(pilot, tmp_path):
    def other(row):
        day, clock = row["time"].split(" ")
        return {**row, "time": "/".join(reversed(day.split("-"))) + " " + clock}

    odd = rewritten(pilot, tmp_path / "odd.csv", other)
    result = run("check", odd, *ROLES)
    refused(result, "order column 'time' of odd.csv is '04/03/2024 08:12:54' in row 1 (line 2)")
    assert "they can be read with --time-format '%d/%m/%Y %H:%M:%S'" in " ".join(result.stderr.split())
    result = run("check", odd, *ROLES, "--time-format", "%d/%m/%Y %H:%M:%S")
    assert result.exit_code == 0
    assert "from 2024-03-04 08:05 to 2024-04-04 21:17" in result.stdout
    first = {**table(odd)[0], "time": "04/03/2024"}
    vague = rewritten(pilot, tmp_path / "vague.csv", lambda row: {**row, "time": first["time"]})
    refused(
        run("check", vague, *ROLES), "'%d/%m/%Y' and '%m/%d/%Y' fit equally well and mean different days: say which"
    )
    refused(run("check", odd, *ROLES, "--time-format", "%H:%M"), "must have year, month and day")


def test_semicolons_and_decimal_commas_are_named_and_read(pilot, tmp_path):
    def other(row):
        return {name: value if name == "time" else value.replace(".", ",") for name, value in row.items()}

    odd = rewritten(pilot, tmp_path / "odd.csv", other, delimiter=";")
    refused(run("check", odd, *ROLES), "with --delimiter ';' --decimal ,")
    named = ("--covariates", "hour,temperature,log_steps30pre")
    said = "column 'hour' of odd.csv has decimal commas, '8,22' in row 1 (line 2): read the table with --decimal ,"
    refused(run("check", odd, *ROLES, *named, "--delimiter", ";"), said)
    result = run("check", odd, *ROLES, "--delimiter", ";", "--decimal", ",", "--missing", "drop")
    assert result.exit_code == 0, result.output
    plain = run("check", pilot, *ROLES, "--missing", "drop")
    assert result.stdout.replace("odd.csv", "pilot.csv") == plain.stdout
    whole = rewritten(odd, tmp_path / "w.csv", lambda row: row)
    refused(run("check", whole, *ROLES, "--delimiter", "ab"), "columns can be separated by one sign")


def test_new_users_are_compared_with_the_model_s(fitted, tmp_path):
    result = run("check", fitted / "new.csv", "--model", fitted / "m.trail")
    assert result.exit_code == 0, result.output
    assert "Nothing stands out." in result.stdout
    assert "columns outside the pilot users' range, names of pilot users" in result.stdout
    far = rewritten(fitted / "new.csv", tmp_path / "far.csv", lambda row: {**row, "x": float(row["x"]) * 1000.0})
    result = run("check", far, "--model", fitted / "m.trail", "--html", tmp_path / "p.html", "--batch-size", 5)
    assert result.exit_code == 0, result.output
    assert "warning: covariate 'x' of all users lies between" in result.stdout
    assert "Shaded: from the smallest to the largest value of the pilot users" in (tmp_path / "p.html").read_text()
    result = run("check", fitted / "pilot.csv", "--model", fitted / "m.trail")
    assert "are pilot users of this model" in " ".join(result.stdout.split())
    refused(
        run("check", far, "--model", fitted / "m.trail", "--user", "user", "--missing", "drop"), "--user, --missing"
    )


def test_select_says_briefly_what_is_odd_about_new_users(fitted, tmp_path):
    far = rewritten(fitted / "new.csv", tmp_path / "far.csv", lambda row: {**row, "x": float(row["x"]) * 1000.0})
    words = ("select", fitted / "m.trail")
    result = run(*words, far, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.output
    assert "warning: covariate 'x' of all users lies between" in result.stderr
    assert "kerneltrail check --model says more." in result.stderr
    result = run(*words, fitted / "new.csv", "--out", tmp_path / "s.csv")
    assert "warning" not in result.output


def test_predict_and_report_say_what_select_says(fitted, tmp_path):
    far = rewritten(fitted / "new.csv", tmp_path / "far.csv", lambda row: {**row, "x": float(row["x"]) * 1000.0})
    page = tmp_path / "page.html"
    commands = {
        "select": (far, "--out", tmp_path / "s.csv"),
        "predict": (far, "--rows", fitted / "new.csv", "--out", tmp_path / "p.csv"),
        "report": ("--data", far, "--out", page),
    }
    said = {}
    for name, words in commands.items():
        result = run(name, fitted / "m.trail", *words)
        assert result.exit_code == 0, result.output
        said[name] = [line for line in result.stderr.splitlines() if "warning" in line or "says more" in line]
        assert len(said[name]) == 2
        assert "warning" not in result.stdout
    assert said["select"] == said["predict"] == said["report"]
    text = " ".join(unescape(page.read_text(encoding="utf-8")).split())
    message = said["report"][0].removeprefix("warning: covariate")
    assert message in text
    assert text.index("Before you read on") < text.index(message) < text.index("<h2>One user at a time")
    result = run("report", fitted / "m.trail", "--data", fitted / "pilot.csv", "--out", page)
    assert "warning" not in result.output  # pilot users among them are worth a note, not a warning
    assert "Before you read on" not in page.read_text(encoding="utf-8")


def test_fit_says_the_warnings_briefly_before_the_wait(fitted, tmp_path, monkeypatch):
    said = (fitted / "said.txt").read_text()
    assert said.index("100 rows read") < said.index("warning: there are only 4 users.") < said.index("Graph")
    assert "kerneltrail check, with the options for the table, says more." in said
    monkeypatch.setattr("kerneltrail.trajectory.fit.fit", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    lines = (fitted / "pilot.csv").read_text().splitlines()
    texts = [f"{line},{'kg' if i == 3 else i}" for i, line in enumerate(lines)]
    (tmp_path / "odd.csv").write_text("\n".join([texts[0][:-1] + "weight", *texts[1:]]))
    result = fit(fitted, data=Path(tmp_path / "odd.csv"))
    assert "warning: column 'weight' holds numbers in 99 of 100 rows, but 'kg' in row 3 (line 4)." in result.stdout


def test_a_model_reads_new_tables_as_the_pilot_users_were_written(fitted, tmp_path):
    def change(row):
        return {name: value.replace(".", ",") for name, value in row.items()}

    pilot = rewritten(fitted / "pilot.csv", tmp_path / "pilot.csv", change, delimiter=";")
    new = rewritten(fitted / "new.csv", tmp_path / "new.csv", change, delimiter=";")
    marks = ("--delimiter", ";", "--decimal", ",")
    result = fit(fitted, *marks, "--seed", 1, "--unit", "x=hours", data=pilot, out=tmp_path / "m.trail")
    assert result.exit_code == 0, result.output
    for model, data, more in (
        (tmp_path / "m.trail", new, ()),
        (fitted / "m.trail", new, marks),
        (tmp_path / "m.trail", fitted / "new.csv", ("--delimiter", ",", "--decimal", ".")),
    ):
        result = run("select", model, data, "--out", tmp_path / "s.csv", *more)
        assert result.exit_code == 0, result.output
        assert len(table(tmp_path / "s.csv")) == 9
        page = run("report", model, "--data", data, "--out", tmp_path / "r.html", *more)
        assert page.exit_code == 0, page.output

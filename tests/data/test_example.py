"""The study that ships with the package is what its script makes, and is small and usable."""

import importlib.util
from importlib.resources import files
from pathlib import Path

import pytest

from kerneltrail.data import Cohort, read_unlabelled
from kerneltrail.data.example import NEW, NEXT, PILOT, write_example
from kerneltrail.errors import DataError

_SCRIPT = importlib.util.spec_from_file_location(
    "example_tables", Path(__file__).parents[2] / "scripts" / "example_tables.py"
)
script = importlib.util.module_from_spec(_SCRIPT)
_SCRIPT.loader.exec_module(script)
COLUMNS, example_tables = script.COLUMNS, script.example_tables


def test_shipped_tables_are_those_that_the_script_makes():
    made = example_tables()
    folder = files("kerneltrail.data") / "examples"
    assert set(made) == {PILOT, NEW, NEXT}
    for name, text in made.items():
        assert (folder / name).read_text(encoding="utf-8") == text, "run python scripts/example_tables.py"
    assert sum(len(text) for text in made.values()) < 200_000
    assert made != example_tables(seed=8)


def test_tables_are_copied_and_read(tmp_path):
    pilot, new, following = write_example(tmp_path / "study")
    assert (pilot.name, new.name, following.name) == (PILOT, NEW, NEXT)
    options = {
        "user": "user", "order": "time", "target": "log_steps", "action": "send", "availability": "available",
        "covariates": ["hour", "temperature", "log_steps30pre"], "batch_size": 40,
    }  # fmt: skip
    cohort = Cohort.from_table(pilot, missing="drop", **options)
    assert len(cohort) == 8
    assert all(user.batches == 4 for user in cohort)
    assert pilot.read_text().splitlines()[0] == ",".join(COLUMNS)
    with pytest.raises(DataError, match=r"'temperature' of pilot\.csv is missing .* --missing drop"):
        Cohort.from_table(pilot, **options)


def test_the_next_days_come_after_and_have_no_outcome(tmp_path):
    pilot, new, following = write_example(tmp_path)
    cohort = Cohort.from_table(
        pilot, user="user", order="time", target="log_steps", covariates=["hour", "temperature", "log_steps30pre"],
        batch_size=40, missing="drop",
    )  # fmt: skip
    rows, _ = read_unlabelled(cohort.schema, following)
    assert [(user.name, len(user.rows)) for user in rows] == [(f"new-{i}", 10) for i in range(1, 6)]
    assert all(user.y is None and user.action is None for user in rows)
    last = {user.name: user.order[-1] for user in Cohort.from_schema(cohort.schema, new).raw}
    assert all((user.order > last[user.name]).all() for user in rows if user.name in last)
    assert {user.name for user in rows if any(cohort.schema.outside(user.X))} == {"new-4"}  # the hot day


def test_what_is_in_the_columns(tmp_path):
    pilot, *_ = write_example(tmp_path)
    rows = [dict(zip(COLUMNS, line.split(","), strict=True)) for line in pilot.read_text().splitlines()[1:]]
    assert all(row["available"] == "1" for row in rows if row["send"] == "1")
    for row in rows[:50]:
        hours, minutes, seconds = map(int, row["time"].split(" ")[1].split(":"))
        assert float(row["hour"]) == pytest.approx(hours + minutes / 60 + seconds / 3600, abs=0.01)
    assert all(-15 < float(row["temperature"]) < 45 for row in rows if row["temperature"])


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_example(tmp_path / "file")

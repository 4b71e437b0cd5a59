import csv
import math
from pathlib import Path
from typing import Any

import pytest

from kerneltrail.data import Cohort, load_heartsteps, paper_split
from kerneltrail.data.heartsteps import COVARIATES, PAPER_TEST, PAPER_TRAIN
from kerneltrail.errors import DataError

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "heartsteps_v1"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the rebuilt HeartSteps tables are not at {FOLDER}")

# The paper's table of rows per user, before those without an outcome are dropped: PAPER_TRAIN's, then PAPER_TEST's.
PAPER_ROWS = (110, 178, 147, 142, 167, 133, 68, 147, 175, 150, 152, 156, 173, 190, 150, 169, 171, 182, 179, 164, 137)

OFFICIAL: dict[str, Any] = {
    "user.index": 15,
    "decision.index": 0,
    "sugg.select.utime": "2015-07-22 16:30:00",
    "sugg.decision.utime": "2015-07-22 16:31:53",
    "sugg.gmtoff": -14400,
    "avail": "TRUE",
    "send": "TRUE",
    "recognized.activity": "STILL",
    "dec.location.category": "home",
    "dec.temperature": 21.5,
    "dec.precipitation.chance": 10,
    "dec.windspeed": 3.0,
    "jbsteps30": 99,
    "jbsteps30pre": 0,
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def official(tmp_path: Path, *changes: dict[str, Any]) -> Path:
    return write(tmp_path / "suggestions.csv", [{**OFFICIAL, "decision.index": i, **c} for i, c in enumerate(changes)])


def test_the_official_file(tmp_path: Path) -> None:
    path = official(
        tmp_path,
        {},
        {"avail": "FALSE", "send": "NA"},
        {"jbsteps30pre": "NA"},
        {"jbsteps30": "NA"},
        {"dec.temperature": -1024},
        {"send": "FALSE", "dec.location.category": "gym,university", "recognized.activity": "ON_FOOT"},
        {"sugg.gmtoff": 3600, "sugg.decision.utime": "2015-12-31 23:30:00", "dec.location.category": "unknown"},
        {"sugg.decision.utime": "NA", "recognized.activity": "IN_VEHICLE", "dec.location.category": "work"},
        {"user.index": 99},
    )
    cohort = load_heartsteps(path, users=["15"], covariates=[*COVARIATES, "activity", "precip_chance", "windspeed"])
    assert cohort.names == ("15",)
    user = cohort.raw[0]
    rows = {name: user.columns([name])[:, 0].tolist() for name in user.covariates}
    assert user.y.tolist() == [math.log(99.5)] * 4
    assert rows["hour"] == [12 + 31 / 60, 12 + 31 / 60, 0.5, 12.5]
    assert rows["weekday"] == [2, 2, 4, 2], "Monday is 0; the first of January 2016 was a Friday"
    assert rows["yday"] == [203, 203, 1, 203]
    assert rows["dom"] == [22, 22, 1, 22]
    assert rows["log_steps30pre"] == [math.log(0.5)] * 4
    assert rows["location"] == [0, 2, 3, 1]
    assert rows["activity"] == [0, 1, 0, 2]
    assert rows["precip_chance"] == [10.0] * 4
    assert user.action is not None
    assert user.action.tolist() == [1, 0, 1, 1]
    assert user.probability is not None
    assert user.probability.tolist() == [0.6] * 4
    report = cohort.report
    assert (report.missing("log_steps30"), report.missing("temperature")) == (1, 1)
    assert report.filled == {"location": {"15": 1}, "activity": {"15": 1}}
    assert report.notes == (
        "of 8 decision points, 1 were not available and 1 more had no record of the steps before; they are not among "
        "the rows read",
    )
    assert load_heartsteps(path, users="all", covariates=["hour"]).names == ("15", "99")


def test_a_cohort_written_from_it_reads_back(tmp_path: Path) -> None:
    cohort = load_heartsteps(official(tmp_path, {}, {"jbsteps30": 5, "dec.temperature": 3}), users="all", batch_size=1)
    cohort.write_csv(tmp_path / "out.csv")
    assert Cohort.from_schema(cohort.schema, tmp_path / "out.csv").users == cohort.users
    assert cohort["15"].ends == (1, 2)


@pytest.mark.parametrize(
    ("keywords", "change", "message"),
    [
        ({"users": ["16"]}, {}, "has no user '16'; it has 15"),
        ({"users": "some"}, {}, "'paper', 'all' or a list"),
        ({}, {}, "has no user '17'"),
        ({"users": "all", "covariates": ["activty"]}, {}, "does not give .*'activty'; did you mean 'activity'"),
        ({"users": "all", "covariates": ["dosage"]}, {}, "does not give the covariate 'dosage'"),
        ({"users": "all"}, {"sugg.decision.utime": "noon"}, r"time 'noon' in row 1 \(line 2\)"),
        ({"users": "all"}, {"avail": 0}, "has no decision point with the user available"),
        ({"users": "all"}, {"jbsteps30": "NA"}, r"no row of suggestions\.csv is left"),
    ],
)
def test_what_is_refused(tmp_path: Path, keywords: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_heartsteps(official(tmp_path, change), **keywords)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"other\.csv is not HeartSteps V1"):
        load_heartsteps(write(tmp_path / "other.csv", [{"user": 1, "x": 2}]))
    lacking = {key: value for key, value in OFFICIAL.items() if key != "dec.temperature"}
    with pytest.raises(DataError, match=r"no column 'dec\.temperature'"):
        load_heartsteps(write(tmp_path / "suggestions.csv", [lacking]), users="all")


def test_the_papers_users_are_21() -> None:
    assert (len(PAPER_TRAIN), len(PAPER_TEST), len({*PAPER_TRAIN, *PAPER_TEST})) == (15, 6, 21)


@needs_data
def test_the_rebuilt_paper_table() -> None:
    path = FOLDER / "heartsteps_v1_paper21.csv"
    cohort = load_heartsteps(path)
    assert (len(cohort), cohort.rows, cohort.report.rows_read) == (21, 3059, 3215)
    assert cohort.report.missing("log_steps30") == 156
    train, test = paper_split(cohort)
    assert (train.names, test.names) == (PAPER_TRAIN, PAPER_TEST)
    assert train.scaler == test.scaler
    dropped = cohort.report.dropped["log_steps30"]
    before = [user.rows + dropped.get(user.name, 0) for user in (*train, *test)]
    assert sum(a == b for a, b in zip(before, PAPER_ROWS, strict=True)) == 19
    with path.open(newline="") as file:
        split = {row["user"]: row["paper_split"] for row in csv.DictReader(file)}
    assert {name for name, side in split.items() if side == "train"} == set(PAPER_TRAIN)
    assert {name for name, side in split.items() if side == "test"} == set(PAPER_TEST)
    for user in cohort:
        assert all(b - a == 40 for a, b in zip((0, *user.ends), user.ends[:-1], strict=False))
        assert user.X.min() >= 0.0
        assert user.X.max() <= 1.0


@needs_data
def test_both_rebuilt_tables_give_the_same_21_users() -> None:
    paper = load_heartsteps(FOLDER / "heartsteps_v1_paper21.csv")
    decisions = FOLDER / "heartsteps_v1_decisions.csv"
    assert load_heartsteps(decisions).users == paper.users
    everybody = load_heartsteps(decisions, users="all", scaling="none")
    assert (len(everybody), everybody.report.rows_read) == (37, 5778)
    assert everybody["3"] == paper.rescaled("none")["3"]


@needs_data
def test_further_covariates_cost_rows_and_say_so() -> None:
    cohort = load_heartsteps(FOLDER / "heartsteps_v1_paper21.csv", covariates=["hour", "dosage", "log_steps_yesterday"])
    assert cohort.report.missing("dosage") == 185
    assert cohort.rows < 3059

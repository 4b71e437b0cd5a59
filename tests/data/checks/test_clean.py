"""Tables with nothing wrong, simulated ones and the shipped one: no false finding. Real ones, read by eye."""

from pathlib import Path
from typing import Any

import pytest

from kerneltrail.data import Cohort, DataCheck, simulate
from kerneltrail.data.example import write_example

SHARED = Path(__file__).parents[4] / "shared" / "data"
FITBIT = SHARED / "fitbit_furberg2016"
HEARTSTEPS = SHARED / "heartsteps_v1"


@pytest.mark.parametrize("seed", range(6))
def test_a_simulated_trial(seed: int) -> None:
    for cohort in (simulate.mhealth(8, 6, seed=seed).train, simulate.mhealth(8, 6, seed=seed).test):
        check = cohort.check()
        assert check.findings == (), str(check)
        assert check.times is not None
        assert [column.role for column in check.columns] == [
            "target", "covariate", "covariate", "covariate", "action", "availability", "probability"
        ]  # fmt: skip


@pytest.mark.parametrize("name", ["paper", "distinct", "similar", "complex"])
def test_other_simulations(name: str) -> None:
    check = getattr(simulate, name)(seed=0).train.check()
    assert check.findings == (), str(check)
    assert check.times is None  # rows are numbered


def test_the_shipped_example(tmp_path: Path) -> None:
    for path in write_example(tmp_path)[:2]:  # the third has no outcomes
        cohort = Cohort.from_table(
            path, user="user", order="time", target="log_steps", covariates=["hour", "temperature", "log_steps30pre"],
            action="send", availability="available", batch_size=40, missing="drop",
        )  # fmt: skip
        check = cohort.check(path)
        expected = ["few-users"] if path.name == "new.csv" else []  # four of them are few to learn from
        expected.append("missing")  # a note on rows that are left out
        assert [finding.code for finding in check.findings] == expected, str(check)
        assert cohort.check(path, pilot=None).columns == check.columns


def found(check: DataCheck) -> dict[str, set[Any]]:
    told: dict[str, set[Any]] = {}
    for finding in check.findings:
        told.setdefault(f"{finding.severity} {finding.code}", set()).update(finding.columns or finding.users)
    return told


@pytest.mark.skipif(not FITBIT.is_dir(), reason=f"the Fitbit tables are not at {FITBIT}")
def test_fitbit() -> None:
    """What a statistician would say of the whole table, taken as it is, and nothing more."""
    path = FITBIT / "fitbit_decision_points.csv"
    names = (
        "study_day", "hour", "weekday", "yday", "dom", "steps_prev_hour", "log_steps_prev_hour", "steps_prev_24h",
        "steps_same_hour_yesterday", "worn_day", "steps",
    )  # fmt: skip
    roles: dict[str, Any] = {"user": "user", "order": "time", "target": "log_steps", "batch_size": 40}
    check = Cohort.from_table(path, covariates=names, **roles).check(path)
    assert found(check) == {
        "warning constant": {"worn_day"},
        "warning leak": {"steps"},
        "warning copy": {"study_day", "yday"},  # everybody began on the same day
        "note copy": {"steps_prev_hour", "log_steps_prev_hour"},
        "note count": {"steps_same_hour_yesterday"},
        "note zeros": {"log_steps"},
        "note few-rows": {"14"},
        "note gap": {"time"},
    }
    sensible = ["hour", "log_steps_prev_hour", "weekday", "study_day", "steps_prev_24h"]
    check = Cohort.from_table(path, covariates=sensible, **roles).check(path)
    assert check.warnings == ()


@pytest.mark.skipif(not FITBIT.is_dir(), reason=f"the Fitbit tables are not at {FITBIT}")
def test_fitbit_by_the_hour() -> None:
    path = FITBIT / "fitbit_hourly.csv"
    cohort = Cohort.from_table(
        path, user="user", order="time", target="log_steps", covariates=["hour", "log_steps_prev_hour", "weekday"],
        batch_size=40, missing="drop",
    )  # fmt: skip
    assert found(cohort.check(path)) == {"note zeros": {"log_steps"}, "note missing": {"log_steps_prev_hour"}}


@pytest.mark.skipif(not HEARTSTEPS.is_dir(), reason=f"the HeartSteps tables are not at {HEARTSTEPS}")
def test_heartsteps() -> None:
    path = HEARTSTEPS / "heartsteps_v1_decisions.csv"
    roles: dict[str, Any] = {
        "user": "user", "order": "decision_utime", "batch_size": 40, "action": "send", "availability": "avail",
        "available_only": True, "missing": "drop",
    }  # fmt: skip
    covariates = ["hour_local", "log_steps30pre", "temperature", "weekday_local", "yday_local", "dosage"]
    check = Cohort.from_table(path, target="y_log_steps30", covariates=covariates, **roles).check(path)
    told = found(check)
    assert told.pop("note missing") <= set(covariates)  # user 29 lacks most of them
    assert told == {
        "note zeros": {"y_log_steps30"},  # a third of the half hours is without a step
        "note unsorted": {"decision_utime"},
        "note gap": {"decision_utime"},  # travel days are not in the table
    }
    check = Cohort.from_table(path, target="jbsteps30", covariates=["hour_local", "jbsteps30pre"], **roles).check(path)
    assert found(check)["warning count"] == {"jbsteps30"}
    assert found(check)["note count"] == {"jbsteps30pre"}

from pathlib import Path

import pytest

from kerneltrail.data import load_fitbit
from kerneltrail.errors import DataError

FILE = Path(__file__).parents[3] / "shared" / "data" / "fitbit_furberg2016" / "fitbit_decision_points.csv"

HEADER = (
    "user,time,study_day,hour,weekday,yday,dom,steps_prev_hour,log_steps_prev_hour,steps_prev_24h,"
    "steps_same_hour_yesterday,worn_day,steps,log_steps\n"
)


@pytest.mark.skipif(not FILE.is_file(), reason=f"the Fitbit table is not at {FILE}")
def test_the_decision_points() -> None:
    cohort = load_fitbit(FILE)
    assert (len(cohort), cohort.rows) == (33, 3955)
    rows = sorted(user.rows for user in cohort)
    assert (rows[0], rows[16], rows[-1]) == (8, 140, 148)
    assert cohort["2"].ends == (40, 80, 120, 148)
    assert all(user.action is None for user in cohort)
    assert "looking at the whole day" in str(cohort.report)


def test_rows_without_a_past_are_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "hours.csv"
    path.write_text(
        HEADER
        + "1,2016-04-12 00:00:00,0,0,1,103,12,,,,,0,373,5.9\n"
        + "1,2016-04-13 08:00:00,1,8,2,104,13,126.0,4.8,12780.0,250.0,1,275,5.6\n"
    )
    cohort = load_fitbit(path)
    assert cohort.rows == 1
    assert cohort.report.missing("steps_prev_24h") == 1
    assert cohort.report.notes == ()
    assert load_fitbit(path, covariates=["hour"]).rows == 2


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("user,x\n1,2\n")
    with pytest.raises(DataError, match="is not a table of Fitbit hours"):
        load_fitbit(tmp_path / "other.csv")

"""Benchmarks on single series: what their tables count, and that they go on where they were."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Hyperparameters, parse
from kerneltrail.store.cache import Log
from kerneltrail.studies.series.cks import published_errors
from kerneltrail.studies.series.files import append_results, read_results, read_series
from kerneltrail.studies.series.shrinkage import (
    RecoveryDraw,
    ShrinkageSeries,
    recovery_table,
    series_table,
    smallest_share,
)


def test_the_smallest_share_by_hand():
    user = User("a", ("x", "z"), [[-1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], (2,))
    theta = Hyperparameters.from_values(parse("LIN[x] + LIN[z]"), [3.0, 0.0, 1.0, 0.0, 1.0])
    assert smallest_share(theta, user) == 0.0  # z never changes
    two = Hyperparameters.from_values(parse("LIN[x] + SE[x]"), [3.0, 0.0, 1.0, 1.0, 1.0])
    smooth = 1.0 - 0.5 * (1.0 + np.exp(-2.0))  # variance left once the mean of two values is taken out
    assert smallest_share(two, user) == pytest.approx(smooth / (smooth + 3.0))


def test_tables_count_what_they_say():
    draws = [
        RecoveryDraw("", "share", "paper", 30, 0, "LIN[x] + SE[x]", 0.3, "LIN[x] + SE[x]", 1.0),
        RecoveryDraw("", "share", "paper", 30, 1, "LIN[x] + SE[x]", 0.05, "LIN[x]", 1.0),
        RecoveryDraw("", "share", "paper", 30, 2, "LIN[x] + SE[x]", 0.3, "LIN[x] + PER[x] + SE[x]", 1.0),
        RecoveryDraw("", "share", "paper", 30, 3, "PER[x] + SE[x]", 0.3, "LIN[x]", 1.0),
        RecoveryDraw("", "share", "paper", 30, 0, "", 1.0, "", 2.0),
        RecoveryDraw("", "evidence", "paper", 30, 0, "LIN[x] + SE[x]", 0.3, "LIN[x] + SE[x]", 3.0),
    ]
    row, other = recovery_table(draws).splitlines()[2:]
    assert row == "| paper | 30 | share | 4 | 25 % | 50 % | 50 % | 1.8 | 33 % of 3 | 100 % of 1 | 1.2 |"
    assert other == "| paper | 30 | evidence | 1 | 100 % | 100 % | 100 % | 2.0 | 100 % of 1 | – | 3.0 |"
    runs = [
        ShrinkageSeries("wave", "", seed, 15.0 + seed, -4.0, 20.0, -5.0, 2, 90.0, "SE[x]", 10.0, 5.0)
        for seed in range(3)
    ]
    table = series_table(runs)
    assert "| 1 | 16.0 | -4.00 | 2 | 20.0 | -5.00 | 90.0 | 10 (5) | `SE` |" in table
    assert "| mean ± sd | 16.0 ± 1.0 | -4.00 ± 0.00 | | 20.0 ± 0.0 | -5.00 ± 0.00 | | | |" in table


def test_lines_of_other_versions_are_left_aside_and_other_files_refused(tmp_path):
    path = tmp_path / "results.log"
    assert read_results(path, RecoveryDraw) == []
    Log(path).append([{"judge": "share"}])
    assert read_results(path, RecoveryDraw) == []
    Log(path).append({"judge": "share"})
    with pytest.raises(DataError, match=r"results\.log"):
        read_results(path, RecoveryDraw)
    path.write_text("not a log")
    with pytest.raises(DataError, match=r"results\.log is damaged"):
        read_results(path, RecoveryDraw)
    assert path.read_text() == "not a log"


def test_results_cut_short_are_run_again_and_changed_ones_refused(tmp_path):
    path = tmp_path / "results.log"
    draws = [RecoveryDraw("", judge, "paper", 30, 0, "", 1.0, "", 2.0) for judge in ("share", "evidence")]
    append_results(path, draws)
    append_results(path, draws)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert read_results(path, RecoveryDraw) == draws  # those of one fit are there together, or not at all
    append_results(path, draws)
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b"30", b"40", 1))
    with pytest.raises(DataError, match="line 1 is not what was written"):
        read_results(path, RecoveryDraw)


@pytest.mark.parametrize("content", ["x,y\n1,two\n", "x\n1\n2\n"])
def test_a_series_needs_two_columns_of_numbers(tmp_path, content):
    (tmp_path / "s.csv").write_text(content)
    with pytest.raises(DataError, match=r"s\.csv"):
        read_series(tmp_path / "s.csv", header=True)
    with pytest.raises(DataError, match="there is no file"):
        read_series(tmp_path / "nowhere.csv", header=True)


def test_a_table_of_published_errors_is_checked(tmp_path):
    (tmp_path / "p.json").write_text('{"rmse": 1}')
    with pytest.raises(DataError, match=r"p\.json is not a table of published errors"):
        published_errors(tmp_path / "p.json")

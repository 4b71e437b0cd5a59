"""Shrinkage's benchmark: what its tables count, and that it goes on where it was."""

from functools import partial

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.kernels import Hyperparameters, parse
from kerneltrail.methods.shrinkage import Shrinkage
from kerneltrail.studies.series.shrinkage import main, read
from kerneltrail.studies.series.shrinkage_recovery import Draw, recovery_table, smallest_share
from kerneltrail.studies.series.shrinkage_series import SeriesResult, series_table


def test_the_smallest_share_by_hand():
    user = User("a", ("x", "z"), [[-1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], (2,))
    theta = Hyperparameters.from_values(parse("LIN[x] + LIN[z]"), [3.0, 0.0, 1.0, 0.0, 1.0])
    assert smallest_share(theta, user) == 0.0  # z never changes
    two = Hyperparameters.from_values(parse("LIN[x] + SE[x]"), [3.0, 0.0, 1.0, 1.0, 1.0])
    smooth = 1.0 - 0.5 * (1.0 + np.exp(-2.0))  # variance left once the mean of two values is taken out
    assert smallest_share(two, user) == pytest.approx(smooth / (smooth + 3.0))


def test_tables_count_what_they_say():
    draws = [
        Draw("", "share", "paper", 30, 0, "LIN[x] + SE[x]", 0.3, "LIN[x] + SE[x]", 1.0),
        Draw("", "share", "paper", 30, 1, "LIN[x] + SE[x]", 0.05, "LIN[x]", 1.0),
        Draw("", "share", "paper", 30, 2, "LIN[x] + SE[x]", 0.3, "LIN[x] + PER[x] + SE[x]", 1.0),
        Draw("", "share", "paper", 30, 3, "PER[x] + SE[x]", 0.3, "LIN[x]", 1.0),
        Draw("", "share", "paper", 30, 0, "", 1.0, "", 2.0),
        Draw("", "evidence", "paper", 30, 0, "LIN[x] + SE[x]", 0.3, "LIN[x] + SE[x]", 3.0),
    ]
    row, other = recovery_table(draws).splitlines()[2:]
    assert row == "| paper | 30 | share | 4 | 25 % | 50 % | 50 % | 1.8 | 33 % of 3 | 100 % of 1 | 1.2 |"
    assert other == "| paper | 30 | evidence | 1 | 100 % | 100 % | 100 % | 2.0 | 100 % of 1 | – | 3.0 |"
    runs = [
        SeriesResult("wave", "", seed, 15.0 + seed, -4.0, 20.0, -5.0, 2, 90.0, "SE[x]", 10.0, 5.0) for seed in range(3)
    ]
    table = series_table(runs)
    assert "| 1 | 16.0 | -4.00 | 2 | 20.0 | -5.00 | 90.0 | 10 (5) | `SE` |" in table
    assert "| mean ± sd | 16.0 ± 1.0 | -4.00 ± 0.00 | | 20.0 ± 0.0 | -5.00 ± 0.00 | | | |" in table


def test_the_benchmark_runs_and_resumes_by_settings(tmp_path, capsys, monkeypatch):
    x = np.linspace(0.0, 1.0, 20)
    np.savetxt(tmp_path / "wave.csv", np.column_stack([x, np.sin(30.0 * x)]), delimiter=",", header="x,y", comments="")
    out = tmp_path / "series.jsonl"
    little = partial(Shrinkage, greedy=1, hops=1, pairs=1, iterations=10, average=True)
    monkeypatch.setattr(Shrinkage, "for_series", little)
    command = ["series", str(tmp_path / "wave.csv"), "--test", "4", "--seeds", "1", "--out", str(out)]
    for _ in range(2):
        main(command)
    (result,) = read(out, SeriesResult)
    assert np.isfinite([result.rmse, result.log_density, result.highest_rmse, result.bound]).all()
    assert "| mean ± sd |" in capsys.readouterr().out
    monkeypatch.setattr(Shrinkage, "for_series", partial(little, pairs=2))
    main(command)
    first, second = read(out, SeriesResult)
    assert first.settings != second.settings
    assert capsys.readouterr().out.count("\n| 0 |") == 1  # the table is of these settings alone
    main([*command[:3], "5", *command[4:]])
    assert [each.data for each in read(out, SeriesResult)] == ["wave, last 4", "wave, last 4", "wave, last 5"]


def test_recovery_runs_and_resumes(tmp_path, capsys):
    kept = tmp_path / "recovery.jsonl"
    for noise in ("0", "1"):
        main(["recovery", "--draws", "1", "--noise", noise, "--rows", "30", "--out", str(kept)])
    found = read(kept, Draw)
    assert [(each.pool, bool(each.truth), each.judge) for each in found] == [
        (pool, signal, judge)
        for signal in (True, False)
        for pool in ("paper", "apart")
        for judge in ("share", "evidence")
    ]
    assert "| apart | 30 | evidence | 1 |" in capsys.readouterr().out

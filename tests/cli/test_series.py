"""`kerneltrail series`: tables of benchmarks on single series, which go on where they were."""

import json
from functools import partial

import numpy as np

from cli.invoke import refused, run
from kerneltrail.methods.shrinkage import Shrinkage
from kerneltrail.studies.series.cks import CKSResult, markdown
from kerneltrail.studies.series.files import read_results
from kerneltrail.studies.series.shrinkage import RecoveryDraw, ShrinkageSeries


def test_cks_writes_a_table_and_does_not_run_a_series_twice(tmp_path):
    rng = np.random.default_rng(0)
    x = 1950.0 + np.arange(24) / 12.0
    y = 1e5 + 2e4 * (x - 1950.0) + 9e3 * np.sin(2 * np.pi * x) + 1500.0 * rng.standard_normal(24)
    rows = np.column_stack([x, y])
    np.savetxt(tmp_path / "air-train.csv", rows[:20], delimiter=",")
    np.savetxt(tmp_path / "air-test.csv", rows[20:], delimiter=",")
    columns = ["ABCD-accuracy", "GPSS-old(CKS grammar, partial)", "SpectralMixture-BIC", "SE"]
    table = {
        "columns": columns,
        "rmse": {"air": [1e4, None, 2.0, 4.0]},
        "mean_loglik": {"air": [-1.0, None, -2.0, -3.0]},
    }
    (tmp_path / "published.json").write_text(json.dumps({"tsdlr_9010_extrapolation": table}))
    out = tmp_path / "results.log"
    for _ in range(2):
        shown = run(
            "series", "cks", tmp_path, "--published", tmp_path / "published.json", "--out", out, "--depth", 0
        )  # fmt: skip
        assert shown.exit_code == 0, shown.output
    (result,) = read_results(out, CKSResult)
    assert result.series == "air"
    assert result.rmse > 0.0
    assert "| air | 20 |" in shown.stdout
    assert "| – |" in shown.stdout
    assert "CKS grammar | 0" not in shown.stdout
    assert markdown([result], {"air": dict.fromkeys(("ABCD", "CKS grammar", "spectral mixture", "SE"), (None, None))})


def test_shrinkage_runs_and_resumes_by_settings(tmp_path, monkeypatch):
    x = np.linspace(0.0, 1.0, 20)
    np.savetxt(tmp_path / "wave.csv", np.column_stack([x, np.sin(30.0 * x)]), delimiter=",", header="x,y", comments="")
    out = tmp_path / "series.log"
    little = partial(Shrinkage, greedy=1, hops=1, pairs=1, iterations=10, average=True)
    monkeypatch.setattr(Shrinkage, "for_series", little)

    def series(test=4):
        return run("series", "shrinkage", tmp_path / "wave.csv", "--test", test, "--seeds", 1, "--out", out)

    for _ in range(2):
        shown = series()
        assert shown.exit_code == 0, shown.output
    (result,) = read_results(out, ShrinkageSeries)
    assert np.isfinite([result.rmse, result.log_density, result.highest_rmse, result.bound]).all()
    assert "| mean ± sd |" in shown.stdout
    monkeypatch.setattr(Shrinkage, "for_series", partial(little, pairs=2))
    shown = series()
    first, second = read_results(out, ShrinkageSeries)
    assert first.settings != second.settings
    assert shown.stdout.count("\n| 0 |") == 1  # the table is of these settings alone
    series(test=5)
    kept = [each.data for each in read_results(out, ShrinkageSeries)]
    assert kept == ["wave, last 4", "wave, last 4", "wave, last 5"]
    refused(series(test=20), "20 cannot be predicted from the others")


def test_recovery_runs_and_resumes(tmp_path):
    out = tmp_path / "new" / "recovery.log"
    for noise in (0, 1):
        shown = run("series", "recovery", "--draws", 1, "--noise", noise, "--rows", 30, "--out", out)
        assert shown.exit_code == 0, shown.output
    draws = read_results(out, RecoveryDraw)
    assert [(each.pool, bool(each.truth), each.judge) for each in draws] == [
        (pool, signal, judge)
        for signal in (True, False)
        for pool in ("paper", "apart")
        for judge in ("share", "evidence")
    ]
    assert "| apart | 30 | evidence | 1 |" in shown.stdout


def test_a_folder_without_series_is_refused(tmp_path):
    refused(
        run("series", "cks", tmp_path, "--published", tmp_path, "--out", tmp_path / "out" / "r.log"), "cannot be read"
    )
    assert list(tmp_path.iterdir()) == []

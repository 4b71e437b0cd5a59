"""What learning takes as users become many: what is measured, multiplied up, kept and shown."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kerneltrail.errors import DataError
from kerneltrail.studies import bench
from kerneltrail.studies.bench import scale
from kerneltrail.studies.bench.footprint import Footprint
from kerneltrail.studies.bench.scale import FULL, PARTS, SHORT, ScaleBenchmark

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="numbers of other processes are Linux's")


@pytest.fixture
def faked(monkeypatch):
    """The benchmark with fits that take nothing; the calls are listed."""
    calls = []

    def take(self, users, rows, seed, tick):
        calls.append((users, rows))
        for _ in range(PARTS):
            tick("fitting")
        return {
            "samples": users, "candidates": 45, "seconds_fits": 2.0 * users * rows, "seconds_chains": 8.0,
            "seconds_sweep": 0.2, "seconds_choice": 1.0, "peak": 5_000_000_000, "worker_peak": None,
            "together": 6_000_000_000, "sent": 161_000_000, "model_bytes": 900, "workers": 2,
        }  # fmt: skip

    monkeypatch.setattr(ScaleBenchmark, "_take", take)
    return calls


def test_all_users_are_fitted_unless_fewer_are_asked_for(faked):
    rows = list(ScaleBenchmark((3, 6), rows=10).run(0))
    assert faked == [(3, 10), (6, 10)]
    assert [(row["samples"], row["fitted"], row["short"]) for row in rows] == [(3, 3, None), (6, 6, None)]
    assert [row["seconds_fits"] for row in rows] == [60.0, 120.0]


def test_fits_of_few_users_are_multiplied_up_and_said_to_be(faked):
    rows = list(ScaleBenchmark((2, 30), rows=10, fits=5).run(0))
    assert faked == [(5, 10), (2, 10), (30, SHORT)]
    assert [(row["fitted"], row["short"], row["method"]) for row in rows] == [
        (2, None, "measured"),
        (5, SHORT, "fits multiplied up"),
    ]
    assert rows[1]["seconds_fits_user"] == 20.0
    assert rows[1]["seconds_fits"] == 600.0
    said = "\n".join(ScaleBenchmark.markdown(rows))
    assert "multiplied up" in said
    assert "| 30 | 5 | 45 | ≈ 600.0 | 20.00 | 0.200 | 1.0 | 5.0 GB |  | 6.0 GB | 161 MB | 900 B |" in said
    assert "multiplied up" not in "\n".join(ScaleBenchmark.markdown(rows[:1]))
    assert len(list(bench.tables(rows))) == 2


def test_steps_are_as_many_as_announced(faked):
    for benchmark in (ScaleBenchmark(), ScaleBenchmark(fits=5), ScaleBenchmark(fits=5, full=True)):
        ticks = []
        list(benchmark.run(0, ticks.append))
        assert len(ticks) == benchmark.steps
    assert [users for users, _ in faked[-4:]] == [10, 100, 1000, FULL]


def test_what_was_measured_is_kept_size_by_size(faked, tmp_path):
    first = list(ScaleBenchmark((3,), rows=10, out=tmp_path).run(0))
    more = ScaleBenchmark((3, 6), rows=10, out=tmp_path)
    ticks = []
    again = list(more.run(0, ticks.append))
    assert faked == [(3, 10), (6, 10)]
    assert again[0] == first[0]
    assert len(ticks) == more.steps
    list(replace(more, rows=11).run(0))  # other rows are measured anew
    assert faked[2:] == [(3, 11), (6, 11)]


def test_a_number_of_users_that_is_none_is_refused():
    with pytest.raises(DataError, match="--fits"):
        ScaleBenchmark(fits=0)


@pytest.mark.slow
def test_a_small_run_measures_everything():
    ticks = []
    benchmark = ScaleBenchmark((3,), batches=2, rows=6, sweeps=8, products=scale.PRODUCTS[:2])
    (row,) = benchmark.run(0, ticks.append)
    assert len(ticks) == benchmark.steps
    assert set(bench.KEYS) <= set(row)
    assert row["seconds"] == pytest.approx(row["seconds_fits"] + row["seconds_chains"] + row["seconds_choice"])
    assert min(row["seconds_fits"], row["seconds_sweep"], row["seconds_choice"], row["model_bytes"]) > 0


@LINUX
def test_a_footprint_counts_what_workers_take():
    spin = "import time\nblock = bytearray(60_000_000)\nwhile time.process_time() < 0.5: pass"
    with Footprint() as taken:
        before = taken.written()
        subprocess.run([sys.executable, "-c", spin], check=True)
        Path(os.devnull).write_bytes(bytes(100_000))
        written = taken.written() - before
    assert taken.seconds > 0.3  # of 0.5; what a worker took after the last look at it is missed
    assert taken.worker_peak > 60_000_000
    assert taken.peak > 10_000_000
    assert taken.together > 10_000_000
    assert 100_000 <= written < 10_000_000
    assert taken.seconds == taken.seconds  # it has ended: nothing is added

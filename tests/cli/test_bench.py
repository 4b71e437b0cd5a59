"""`kerneltrail bench`: a table for people, rows for scripts; also of a benchmark from outside."""

import json

import pytest

from cli.invoke import run
from kerneltrail.data.simulate import MixedTruth
from kerneltrail.studies import bench
from kerneltrail.studies.bench.benchmark import Benchmark, silent, text, time
from kerneltrail.studies.bench.between import BetweenBenchmark
from kerneltrail.studies.bench.between_sets import MixedSet
from kerneltrail.studies.bench.timing import Effort
from kerneltrail.studies.bench.update import UpdateBenchmark


def test_bench_prints_a_table_and_writes_rows(monkeypatch, tmp_path):
    tiny = UpdateBenchmark(sizes=(50,), batch=4, effort=Effort(least=1, most=1, seconds=0.0))
    monkeypatch.setattr(UpdateBenchmark, "quick", classmethod(lambda cls: tiny))
    result = run("bench", "update", "--quick", "--json", tmp_path / "new" / "rows.json", "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "One batch more" in result.stdout
    assert "\x1b" not in result.stderr  # lines at most, no bar, where nobody watches
    stored = json.loads((tmp_path / "new" / "rows.json").read_text())
    assert set(stored) == {"rows", "machine"}
    assert all(set(bench.KEYS) <= set(row) for row in stored["rows"])
    assert stored["machine"]["seed"] == 3
    shown = run("tables", tmp_path / "new" / "rows.json")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("A batch of 4 rows more, by `OnlineState`:")


def test_a_file_that_cannot_be_written_is_refused_before_measuring(monkeypatch, tmp_path):
    monkeypatch.setattr("kerneltrail.studies.bench.map.MapBenchmark.run", lambda *a, **k: pytest.fail("measured"))
    (tmp_path / "file").write_text("")
    result = run("bench", "map", "--json", tmp_path / "file" / "rows.json")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_an_unknown_benchmark_is_a_usage_error():
    result = run("bench", "speed")
    assert result.exit_code == 2
    assert "no benchmark is called 'speed'" in result.stderr


def test_the_help_names_every_benchmark():
    text = " ".join(run("bench", "--help").stdout.replace("│", " ").split())
    assert all(name in text for name in bench.BENCHMARKS)


class Sleep(Benchmark):
    """A benchmark from outside the package."""

    name, title, steps = "sleep", "Sleeping", 1
    columns = {"case": text("case"), "seconds": time()}  # noqa: RUF012

    @classmethod
    def quick(cls):
        return cls()

    def run(self, seed, tick=silent):
        tick("sleeping")
        yield self.row("deep", 1, "still", 0.25, batches=1, samples=1)


def test_a_benchmark_from_outside_is_run_by_its_name():
    with bench.BENCHMARKS.temporarily("sleep", Sleep):
        result = run("bench", "sleep")
    assert result.exit_code == 0, result.output
    assert "Sleeping" in result.stdout
    assert "250 ms" in result.stdout


def test_between_takes_options_of_its_own(monkeypatch, tmp_path):
    users = MixedSet("small", MixedTruth(), pilots=3, new=2, batches=(5, 5))
    tiny = BetweenBenchmark(splits=5, methods=("hgp",), sets=(users,))
    monkeypatch.setattr(BetweenBenchmark, "quick", classmethod(lambda cls: tiny))
    options = ("--splits", 1, "--methods", "hgp, mean", "--blind", "report", "--out", tmp_path / "out")
    result = run("bench", "between", "--quick", *options)
    assert result.exit_code == 0, result.output
    assert "small: predictions of the next batch; differences are hgp minus this method" in result.stdout
    stored = json.loads((tmp_path / "out" / "between.json").read_text())["rows"]
    assert {row["method"] for row in stored} == {"hgp", "mean", "truth"}
    assert {(row["splits"], row["blind"]) for row in stored} == {(1, "report")}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("map", "--splits", 2), "bench map has no --splits"),
        (("between", "--blind", "both"), "'choose' or 'report'"),
        (("between", "--methods", "hpg"), "hgp"),
        (("between", "--simulated", "glocose"), "glucose"),
        (("between", "--data", "nowhere.csv"), "no file or folder nowhere.csv"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    result = run("bench", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())

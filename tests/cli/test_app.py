"""The command line: what people see, and what scripts get."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.studies import bench
from kerneltrail.studies.bench import update
from kerneltrail.studies.bench.timing import Effort


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"kerneltrail {version('kerneltrail')}\n")


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("bench", "demo", "describe"))


def test_the_library_is_imported_only_when_needed():
    code = (
        "import sys, kerneltrail.cli; print(*sorted({'numpy','numba','scipy','matplotlib','rich'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() in ([], ["rich"])


def test_describe_says_what_a_kernel_means():
    result = run("describe", "PER[hour] + LIN[x]", "--target", "steps")
    assert result.exit_code == 0
    assert result.stdout.startswith("LIN[x] + PER[hour]\n")
    assert "Steps will" in result.stdout
    assert "PER[hour].period = 2.72" in result.stdout


def test_describe_of_nothing_is_noise():
    result = run("describe", "")
    assert result.exit_code == 0
    assert "noise alone" in result.stdout


def test_an_error_is_a_message_on_stderr_and_exit_code_2():
    result = run("describe", "LIN[x] + PR[hour]")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean PER?" in result.stderr
    assert "\n             ^" in result.stderr  # the caret still stands under the character
    assert "Traceback" not in result.stderr


def test_an_interrupt_is_exit_code_130(monkeypatch, tmp_path):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("kerneltrail.studies.demo.run", interrupted)
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "Stopped.\n"


def test_bench_prints_a_table_and_writes_rows(monkeypatch, tmp_path):
    tiny = update.Plan(sizes=(50,), batch=4, effort=Effort(least=1, most=1, seconds=0.0))
    monkeypatch.setattr(update.Plan, "quick", classmethod(lambda cls: tiny))
    result = run("bench", "update", "--quick", "--json", tmp_path / "new" / "rows.json", "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "One batch more" in result.stdout
    assert result.stderr == ""  # no progress bar where nobody watches
    stored = json.loads((tmp_path / "new" / "rows.json").read_text())
    assert set(stored) == {"rows", "machine"}
    assert all(set(bench.KEYS) <= set(row) for row in stored["rows"])
    assert stored["machine"]["seed"] == 3


def test_a_file_that_cannot_be_written_is_refused_before_measuring(monkeypatch, tmp_path):
    monkeypatch.setattr("kerneltrail.studies.bench.run", lambda *a, **k: pytest.fail("measured"))
    (tmp_path / "file").write_text("")
    result = run("bench", "map", "--json", tmp_path / "file" / "rows.json")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_an_unknown_benchmark_is_a_usage_error():
    assert run("bench", "speed").exit_code == 2

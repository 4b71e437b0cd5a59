"""`kerneltrail experiment` and `example`: what is refused, what is said, and what a kill leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.cli.experiment import Name
from kerneltrail.cli.terminal import experiment_bar
from kerneltrail.studies import experiments
from kerneltrail.studies.experiments import Agreement, Context, Outcome, StageProgress

SCRIPT = """
import sys
from pathlib import Path
from kerneltrail.studies.experiments import Context, Outcome, run

class Slow:
    name, about = "slow", ""

    def run(self, context):
        found = [context.stage(f"part-{n}", lambda n=n: part(n)) for n in range(4)]
        return Outcome("Slow", "", {"parts": found}, tables={"parts": [{"part": n} for n in found]})

def part(n):
    if sys.argv[2] == "stop" and n == 2:
        print("there", flush=True)
        import time
        time.sleep(60)
    return n * 1.5

run(Slow(), Context("slow", Path(sys.argv[1])))
"""


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


class Quick:
    """An experiment without work."""

    name, about = "synthetic", ""

    def run(self, context):
        context.stage("one", lambda: 1)
        claims = (Agreement("up", "yes", "yes", True), Agreement("down", "no", "yes", False, of="published"))
        return Outcome("Quick", "A lead.", {"seen": context.seed}, agreements=claims)


def test_the_command_offers_what_is_registered():
    assert [name.value for name in Name] == list(experiments.MODULES)
    result = invoke("experiment", "synthetik", "--out", "x")
    assert result.exit_code == 2
    assert "synthetic" in result.output


def test_results_claims_and_paths_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "find", lambda name: Quick())
    result = invoke("experiment", "synthetic", "--out", tmp_path / "a", "--seed", 5)
    assert result.exit_code == 0, result.output
    assert "agrees      up: yes" in result.output
    assert "differs     down (published): yes" in result.output
    assert json.loads((tmp_path / "a" / "results.json").read_text())["seen"] == 5
    assert "Quick" in (tmp_path / "a" / "index.html").read_text()


def test_folders_that_cannot_be_used_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "find", lambda name: pytest.fail("begun") if name == "never" else Quick())
    (tmp_path / "file").write_text("")
    result = invoke("experiment", "synthetic", "--out", tmp_path / "file" / "inside")
    assert result.exit_code == 2
    assert "cannot be written" in result.output
    (tmp_path / "results.json").write_text('{"experiment": "distinct"}')
    result = invoke("experiment", "synthetic", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds the results of distinct" in result.output
    assert not (tmp_path / "stages").exists()


def test_an_interrupt_ends_quietly(tmp_path, monkeypatch):
    class Interrupted(Quick):
        def run(self, context):
            raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "find", lambda name: Interrupted())
    result = invoke("experiment", "synthetic", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_killed_leaves_whole_files_and_goes_on(tmp_path):
    words = [sys.executable, "-c", SCRIPT, str(tmp_path / "out")]
    with subprocess.Popen([*words, "stop"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "there\n"
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    there = sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert [name for name in there if not name.startswith("slow-part-")] == []
    assert sum(name.endswith(".entry") for name in there) == 2
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "stages").iterdir()}
    subprocess.run([*words, "go"], check=True, timeout=120)
    assert json.loads((tmp_path / "out" / "results.json").read_text())["parts"] == [0.0, 1.5, 3.0, 4.5]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # what was there was used, not made again


def test_the_bar_is_drawn_on_a_terminal_only(monkeypatch, capsys):
    for forced in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", forced)
        with experiment_bar() as hear:
            hear(StageProgress("model [x]", 3, 10, "fitting"))
            hear(StageProgress("model [x]", 1, 1, "2.0 s", kept=True))
        captured = capsys.readouterr()
        assert captured.out == ""
        assert ("kept from an earlier run" in captured.err) == bool(forced)


def test_the_example_is_written(tmp_path):
    result = invoke("example", "--out", tmp_path / "study")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "study").iterdir()} == {"pilot.csv", "new.csv"}
    (tmp_path / "file").write_text("")
    assert "cannot be written" in invoke("example", "--out", tmp_path / "file" / "x").output


def test_a_context_says_what_it_took():
    assert Context("mine", None).seconds == {}

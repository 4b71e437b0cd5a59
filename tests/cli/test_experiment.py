"""`kerneltrail experiment`: what is refused, what is said, and what a kill leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cli.invoke import refused, run
from kerneltrail.studies.experiments import EXPERIMENTS, Agreement, Context, Outcome, stages_of
from kerneltrail.studies.experiments import run as run_experiment

SCRIPT = """
import sys
from pathlib import Path
from kerneltrail.studies.experiments import Context, Outcome, run

class Slow:
    about = ""

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


class Quick:
    """An experiment without work, from outside the package."""

    about = "nothing"

    def run(self, context):
        context.stage("one", lambda: 1)
        claims = (Agreement("up", "yes", "yes", True), Agreement("down", "no", "yes", False, of="published"))
        return Outcome("Quick", "A lead.", {"seen": context.seed}, agreements=claims)


@pytest.fixture
def quick():
    with EXPERIMENTS.temporarily("quick", Quick()):
        yield


def test_the_command_offers_what_is_registered():
    text = " ".join(run("experiment", "--help").stdout.replace("│", " ").split())
    assert all(name in text for name in EXPERIMENTS)
    result = run("experiment", "synthetik", "--out", "x")
    assert result.exit_code == 2
    assert "synthetic" in result.output


def test_an_experiment_from_outside_is_run_by_its_name_and_its_results_claims_and_paths_are_told(tmp_path, quick):
    result = run("experiment", "quick", "--out", tmp_path / "a", "--seed", 5)
    assert result.exit_code == 0, result.output
    assert "agrees      up: yes" in result.output
    assert "differs     down (published): yes" in result.output
    assert json.loads((tmp_path / "a" / "results.json").read_text())["seen"] == 5
    assert "Quick" in (tmp_path / "a" / "index.html").read_text()


def test_folders_that_cannot_be_used_are_refused_before_any_work(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(Quick, "run", lambda *given: pytest.fail("begun"))
    (tmp_path / "file").write_text("")
    result = run("experiment", "quick", "--out", tmp_path / "file" / "inside")
    assert result.exit_code == 2
    assert "cannot be written" in result.output
    (tmp_path / "results.json").write_text('{"experiment": "distinct"}')
    result = run("experiment", "quick", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds the results of distinct" in result.output
    assert not (tmp_path / "stages").exists()


def test_an_interrupt_ends_quietly(tmp_path):
    class Interrupted(Quick):
        def run(self, context):
            raise KeyboardInterrupt

    with EXPERIMENTS.temporarily("interrupted", Interrupted()):
        result = run("experiment", "interrupted", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_cannot_begin_leaves_no_folder(tmp_path):
    refused(run("experiment", "heartsteps", "--out", tmp_path / "deep" / "out"), "give --data FILE")
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


def test_what_an_earlier_run_kept_is_named(tmp_path):
    heard = []
    for _ in range(2):
        run_experiment(Quick(), Context("quick", tmp_path, hear=heard.append))
    ends = [now.said for now in heard if now.stage == "one" and now.done]
    assert ends == ["0.0 s", "0.0 s, kept from an earlier run"]


def test_stages_are_counted_where_an_experiment_says_them(tmp_path):
    context = Context("quick", tmp_path)
    assert stages_of(Quick(), context) == ()

    class Told(Quick):
        def stages(self, context):
            return ("one",)

    assert stages_of(Told(), context) == ("one", "page")


def test_the_page_is_announced_before_it_is_drawn(tmp_path):
    heard = []
    run_experiment(Quick(), Context("quick", tmp_path, hear=heard.append))
    assert (heard[-1].stage, heard[-1].said) == ("page", "drawing and writing")


def test_a_context_says_what_it_took():
    assert Context("mine", None).seconds == {}

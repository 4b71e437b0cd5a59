"""`kerneltrail demo`: where to look."""

from cli.invoke import run
from kerneltrail.progress import Progress
from kerneltrail.studies import demo


def test_the_command_says_where_to_look(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda out, **given: out / "index.html")
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0
    lines = [f"Open {tmp_path / 'index.html'}", f"Look at the model: kerneltrail show {tmp_path / 'pilot.trail'}"]
    assert result.stdout.splitlines() == lines


def test_the_stages_are_counted(tmp_path, monkeypatch, heard):
    def run_quickly(out, *, seed, tell):
        tell(Progress(demo.STAGES[0], 1, 2))
        tell(Progress(demo.STAGES[-1]))
        return out / "index.html"

    monkeypatch.setattr(demo, "run", run_quickly)
    assert run("demo", "--out", tmp_path).exit_code == 0
    assert heard.titles == ["stage 1 of 6: single users", "stage 6 of 6: writing the page"]

"""`kerneltrail demo`: where to look."""

from cli.invoke import run
from kerneltrail.studies import demo


def test_the_command_says_where_to_look(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda out, **given: out / "index.html")
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0
    lines = [f"Open {tmp_path / 'index.html'}", f"Look at the model: kerneltrail show {tmp_path / 'pilot.trail'}"]
    assert result.stdout.splitlines() == lines

"""`kerneltrail example`: three small tables."""

from cli.invoke import run


def test_the_example_is_written(tmp_path):
    result = run("example", "--out", tmp_path / "study")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "study").iterdir()} == {"pilot.csv", "new.csv", "next.csv"}
    (tmp_path / "file").write_text("")
    assert "cannot be written" in run("example", "--out", tmp_path / "file" / "x").output

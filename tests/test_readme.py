"""The README's Python runs from top to bottom, and prints what it says it prints."""

import re
from pathlib import Path

import pytest

from kerneltrail.data.example import write_example

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("error")
def test_the_tour_runs_and_prints_what_it_promises(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(".")  # `kerneltrail example --out .`, the first of the four commands
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCKS, 1):
        promised = re.findall(r"# → (.*)$", block, re.MULTILINE)
        exec(compile(block, f"README.md, block {number}", "exec"), names)
        assert capsys.readouterr().out.splitlines() == promised, f"block {number}"
    assert BLOCKS


def test_pictures_are_there_and_small():
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures
    for picture in pictures:
        assert 0 < (README.parent / picture).stat().st_size < 200_000

"""The documentation does what it says: its code runs, its commands work, its links lead somewhere."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_recipes_run_and_print_what_they_promise(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks("how-to.md", "python")
    for number, block in enumerate(found, 1):
        promised = re.findall(r"# → (.*)$", block, re.MULTILINE)
        exec(compile(block, f"how-to.md, block {number}", "exec"), names)
        assert capsys.readouterr().out.splitlines() == promised, f"block {number}"
    assert len(found) >= 7


def commands(text):
    """Commands after ``$`` with what they print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        head, *rest = part.replace("\\\n", " ").split("\n")
        yield shlex.split(head), [line for line in rest if line]


def test_the_tutorial_s_commands_work_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("light.yaml").write_text(
        "settings: {largest: 1, chains: 2, sweeps: 16, check: 8, maps: {starts: 1, screen: 4}}", encoding="utf-8"
    )
    ran = []
    for words, promised in (pair for block in blocks("tutorial.md", "console") for pair in commands(block)):
        if words[0] == "head":
            assert Path(words[-1]).read_text(encoding="utf-8").splitlines()[:3] == promised
            continue
        more = ["--config", "light.yaml", "--workers", "1"] if words[1] == "fit" else []
        result = CliRunner().invoke(app, [*words[1:], *more])
        refused = promised and "missing in row" in promised[0]
        assert result.exit_code == (2 if refused else 0), result.output
        # What the chains find depends on the light settings; what is read and written does not.
        stable = promised[: promised.index("Graph")] if "Graph" in promised else promised
        assert [line for line in stable if line not in result.output] == []
        ran.append(words[1])
    assert ran == ["example", "fit", "fit", "show", "select", "predict", "report"]
    assert {path.name for path in Path("study").iterdir()} == {
        "pilot.csv", "new.csv", "next.csv", "pilot.trail", "selected.csv", "predicted.csv", "forecast.csv",
        "report.html",
    }  # fmt: skip


def test_the_example_runs_and_finds_both_kinds_of_users(capsys):
    pytest.importorskip("pandas")
    names = runpy.run_path(str(ROOT / "examples" / "pilot_to_trial.py"))
    last = names["followed"].groupby("user").last()
    assert list(last.kernel) == ["LIN[log_steps30pre] + SE[hour]"] * 2 + ["LIN[log_steps30pre] + SE[temperature]"] * 2
    assert "R-hat" in capsys.readouterr().out


def test_the_reference_is_up_to_date():
    made = runpy.run_path(str(ROOT / "scripts" / "reference.py"))["text"]()
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == made, "run `make reference`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for goal in re.findall(r"\]\(([^)]+)\)", text):
        if goal.startswith(("http:", "https:")):
            continue
        path, _, anchor = goal.partition("#")
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), goal
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}, goal


def test_the_index_lists_every_page():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
    assert [page for page in pages if page != "index.md" and f"({page})" not in text] == []

"""The documentation does what it says: its code runs, its commands work, its links lead somewhere."""

import ast
import csv
import importlib
import inspect
import json
import math
import pkgutil
import re
import runpy
import shlex
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kerneltrail
from kerneltrail.cli.app import app
from kerneltrail.trial.client import Client
from kerneltrail.trial.folder import Folder
from kerneltrail.trial.service import create_app, in_thread

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


def test_what_the_check_in_the_recipes_says_is_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["example", "--out", "study"]).exit_code == 0
    (block,) = [block for block in blocks("how-to.md", "text") if block.startswith("$ kerneltrail check ")]
    line, promised = block.split("\n", 1)
    assert CliRunner().invoke(app, shlex.split(line)[2:]).output == promised


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


NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")


def as_promised(promised, printed):
    """Whether two texts are the same but for the last digits of numbers, which may differ between machines."""
    if NUMBER.sub("#", promised) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(promised.replace("−", "-")), NUMBER.findall(printed.replace("−", "-")), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=0.02, abs_tol=0.006) for one, other in pairs)


def not_printed(promised, printed):
    """Lines of a page that the output does not have."""
    lines = [line.strip() for line in printed.splitlines()]
    return [line for line in promised if line and not any(as_promised(line.strip(), each) for each in lines)]


def table_rows(text, first):
    """Rows of the table of a page whose first columns are these, by the names of its columns."""
    table = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    return [dict(zip(head, row, strict=True)) for row in rows]


def cells_not_in(file, promised):
    """Cells of a page's table that the file does not have: (row, column, promised, written)."""
    with open(file, encoding="utf-8", newline="") as source:
        written = {row["table_row"]: row for row in csv.DictReader(source)}
    for row in promised:
        for name, cell in row.items():
            value = written[row["table_row"]][name]
            numbers = NUMBER.fullmatch(cell) and math.isclose(float(cell), float(value), rel_tol=0.02, abs_tol=0.006)
            if cell != value and not numbers:
                yield row["table_row"], name, cell, value


@pytest.mark.slow
def test_the_tutorial_shows_what_is_printed(tmp_path, monkeypatch):
    """With its own settings: what was found, chains, probabilities and predictions."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    for words, promised in (pair for block in blocks("tutorial.md", "console") for pair in commands(block)):
        if words[0] == "kerneltrail" and words[1] != "report":
            output = CliRunner().invoke(app, words[1:]).output
            assert not_printed(promised, output) == [], words[1]
    found, alternatives, kernel, user = blocks("tutorial.md", "text")
    shown = CliRunner().invoke(app, ["show", "study/pilot.trail", "--kernels"]).output
    assert not_printed((found + alternatives + kernel).splitlines(), shown) == []
    assert list(cells_not_in("study/selected.csv", table_rows(page, "user | batch"))) == []
    assert list(cells_not_in("study/forecast.csv", table_rows(page, "table_row | user"))) == []
    model = kerneltrail.load("study/pilot.trail")
    rows = kerneltrail.Cohort.from_schema(model.schema, "study/new.csv").raw[0]
    state = model.new_user(rows.name)
    for batch in range(1, 5):
        state.update(rows.batch(batch).X, rows.batch(batch).y)
    assert as_promised(user.strip(), kerneltrail.explain(state)[0].text)


@pytest.mark.parametrize(
    ("promised", "printed", "same"),
    [
        ("R-hat: edges 1.024", "R-hat: edges 1.001", False),
        ("within 3.14 hours", "within 2.61 hours", False),
        ("from −0.7 to 5.7", "from −0.7 to 5.701", True),
        ("falls for 3", "rises for 3", False),
        ("4/8 LIN[x]", "5/8 LIN[x]", False),
    ],
)
def test_stale_numbers_would_be_seen(promised, printed, same):
    assert as_promised(promised, printed) is same


def run_curl_lines(folder, token):
    """Send what the page sends with curl, to the trial of a folder."""
    (block,) = [block for block in blocks("trial.md", "text") if block.startswith("KEY=")]
    lines = block.replace("\\\n", " ").replace("\n                     ", " ").splitlines()
    calls = [shlex.split(line) for line in lines if line.startswith("curl ")]
    assert len(calls) == 5
    opened = Folder(folder).open()
    application = create_app(opened, name="walks", interval=0)
    try:
        with in_thread(application) as address:
            for words in calls:
                method, url, body = words[words.index("-X") + 1], words[-3], words[words.index("-d") + 1]
                path = url.replace("$AT", "/v1/trials/walks")
                reply = Client(address, "walks", token).call(method, path, json.loads(body))
                assert reply.status in (200, 201)
                assert reply.value.get("refused", 0) == 0
    finally:
        opened.close()


def test_the_eight_commands_from_a_table_to_a_trial_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["example", "--out", "study"]).exit_code == 0
    Path("light.yaml").write_text(
        "settings: {largest: 1, chains: 2, sweeps: 16, check: 8, maps: {starts: 1, screen: 4}}", encoding="utf-8"
    )
    (block,) = blocks("trial.md", "console")
    listed, token = [words[1:] for words, _ in commands(block)], ""
    assert len(listed) == 8
    for words in listed:
        if "serve" in words:  # it would go on for ever
            run_curl_lines(Path("walks"), token)
            continue
        more = ["--config", "light.yaml", "--workers", "1"] if words[0] == "fit" else []
        result = CliRunner().invoke(app, [*words, *more])
        assert result.exit_code == 0, (words, result.output)
        if "app" in words:
            token = result.stdout.split()[0]
    # The key of the draws is new each time: what the page reports as delivered is an error if it was not assigned.
    errors = [line for line in result.output.splitlines() if line.startswith("error:")]
    assert all("(delivered-otherwise)" in line for line in errors)
    assert ("(walks): red" in result.output) is bool(errors)


def test_the_example_runs_and_finds_both_kinds_of_users(capsys):
    pytest.importorskip("pandas")
    names = runpy.run_path(str(ROOT / "examples" / "pilot_to_trial.py"))
    last = names["followed"].groupby("user").last()
    assert list(last.kernel) == ["LIN[log_steps30pre] + SE[hour]"] * 2 + ["LIN[log_steps30pre] + SE[temperature]"] * 2
    assert "R-hat" in capsys.readouterr().out


def spans(page):
    """Code within sentences, and indented or fenced blocks of Python."""
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.findall(r"(?:(?:^    .*)?\n)+", text, re.MULTILINE):
        code = textwrap.dedent(block).strip("\n")
        if re.match(r"(import|from) |\w+ = ", code):
            yield code
    yield from re.findall(r"`([^`\n]+)`", text)


def mistakes(code, names):
    """What code calls or imports that is not there; variables of the reader's are taken on trust."""
    try:
        tree = ast.parse(code.replace("…", "...").replace("(..., ", "("))
    except SyntaxError:
        return  # a command, a kernel, a file's name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), "a page", "exec"), names)  # raises where there is no such name
    registering = (node for node in ast.walk(tree) if ast.unparse(node).startswith("kt.register("))
    readers = {id(each) for node in registering for each in ast.walk(node)}  # what one registers is one's own
    for node in ast.walk(tree):
        function = node.func if isinstance(node, ast.Call) else node
        path = ast.unparse(function).split(".")
        if not isinstance(function, ast.Name | ast.Attribute) or not all(map(str.isidentifier, path)):
            continue
        if path[0] not in names:
            if id(node) in readers:
                continue
            if isinstance(node, ast.Call) and re.match(r"[A-Z]\w*[a-z]\w*$", path[0]):
                yield f"{path[0]} is no class of the package"
            continue
        thing = names[path[0]]
        for step in path[1:]:
            thing = getattr(thing, step, None)
        if thing is None or (isinstance(node, ast.Call) and not callable(thing)):
            yield f"{'.'.join(path)} cannot be {'called' if isinstance(node, ast.Call) else 'had'}"
        elif isinstance(node, ast.Call):
            try:
                taken = inspect.signature(thing).parameters.values()
            except ValueError:  # of the standard library, written in C: it does not say what it takes
                continue
            given = {word.arg for word in node.keywords if word.arg}
            if not any(each.kind is each.VAR_KEYWORD for each in taken):
                yield from (f"{'.'.join(path)} has no {word}" for word in sorted(given - {each.name for each in taken}))


def names_of_the_package():
    """`kt`, and every class by its name: a page may name one without saying where it is."""
    names = {"kt": kerneltrail}
    for found in pkgutil.walk_packages(kerneltrail.__path__, "kerneltrail."):
        if not found.name.startswith(("kerneltrail.studies", "kerneltrail.cli")):
            module = importlib.import_module(found.name)
            own = (each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == found.name)
            names |= {each.__name__: each for each in own}
    return names


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "reference.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_what_pages_call_is_there_and_takes_what_is_given(page):
    names = names_of_the_package()
    assert [problem for code in spans(page) for problem in mistakes(code, dict(names))] == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("kt.methods()", "kt.methods cannot be called"),
        ("Guard(gaps, spacings)", "Guard is no class of the package"),
        ("x = kt.Pool.off('SE[x]')", "kt.Pool.off cannot be called"),
        ("kt.fit(pilot, worker=2)", None),  # it takes any setting
        ("kt.find_map(one, kernel, priors, rnd=1)", "kt.find_map has no rnd"),
    ],
)
def test_a_mistake_would_be_seen(code, problem):
    found = list(mistakes(code, names_of_the_package()))
    assert problem in found if problem else not found


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

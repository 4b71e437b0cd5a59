"""A refused input is answered before the compiler, the compiled code and the drawing are loaded.

That is what makes the answer quick. It is judged by what a process has loaded, which is the same on every machine.
"""

import json
import subprocess
import sys

import pytest

from cli.invoke import COLUMNS

HEAVY = (
    "numba", "llvmlite", "matplotlib", "arviz_stats", "scipy.linalg", "scipy.special", "scipy.optimize", "scipy.stats",
    "scipy.signal", "sklearn",
)  # fmt: skip
"""What takes most of a second or two to load, and is needed for computing and drawing alone."""

RUN = f"""
import json, sys
from typer.testing import CliRunner
from kerneltrail.cli.app import app

answers = []
for words in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, words)
    loaded = sorted(set({HEAVY!r}) & set(sys.modules))
    answers.append([result.exit_code, " ".join(result.output.split()), loaded])
print(json.dumps(answers))
"""


def answers_to(*commands):
    """Exit code, words, and what of `HEAVY` is loaded after each of some commands, in one new process."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    return json.loads(subprocess.check_output([sys.executable, "-c", RUN, words], text=True, stderr=subprocess.DEVNULL))


def check(cases):
    """Every case, words of a command with what the answer says, is refused with nothing heavy loaded."""
    commands = [command for command, _ in cases]
    for (_, expected), (code, said, loaded) in zip(cases, answers_to(*commands), strict=True):
        assert code == 2, said
        assert expected in said
        assert loaded == [], said


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    """A model and its table, and other files that are refused."""
    folder = tmp_path_factory.mktemp("refused")
    for name in ("m.trail", "new.csv", "pilot.csv", "quick.yaml"):
        (folder / name).write_bytes((fitted / name).read_bytes())
    lines = (folder / "new.csv").read_text().splitlines()
    place, cells = lines[0].split(",").index("x"), lines[3].split(",")
    cells[place] = ""
    (folder / "gap.csv").write_text("\n".join([*lines[:3], ",".join(cells), *lines[4:]]))
    (folder / "lacking.csv").write_text("\n".join([lines[0].replace("x", "xx"), *lines[1:]]))
    for name, text in (
        ("key.yaml", "settings: {chain: 3}"),
        ("move.yaml", "settings: {moves: [sea]}"),
        ("pool.yaml", "pool: {kernels: ['SE[z]']}"),
        ("kernel.yaml", "pool: {kernels: ['SEE[x]']}"),
    ):
        (folder / name).write_text(text)
    return folder


def test_of_fit(folder):
    def fit(*more, data="pilot.csv", out="new.trail"):
        return "fit", folder / data, *COLUMNS, "--out", folder / out, *more

    check(
        [
            (fit(data="none.csv"), "there is no file"),
            (fit("--target", "yy"), "has no column 'yy'; did you mean 'y'?"),
            (fit("--covariates", "z"), "has no column 'z'"),
            (fit(data="gap.csv"), "is missing in row 3"),
            (fit("--config", folder / "none.yaml"), "there is no file"),
            (fit("--config", folder / "key.yaml"), "unknown key 'chain'"),
            (fit("--config", folder / "move.yaml"), "did you mean 'seat'?"),
            (fit("--config", folder / "pool.yaml"), "pool reads 'z', which is not known"),
            (fit("--config", folder / "kernel.yaml"), "SEE"),
            (fit("--features", "x"), "needs the column of the action"),
            (fit("--sweeps", 5), "equal to 8"),
            (fit(out="m.trail/inside"), "cannot be written"),
        ]
    )


def test_of_select_report_and_show(folder):
    def select(*more, model="m.trail", data="new.csv", out="s.csv"):
        return "select", folder / model, folder / data, "--out", folder / out, *more

    def report(*more, source="m.trail", out="page.html"):
        return "report", folder / source, "--out", folder / out, *more

    check(
        [
            (select(model="none.trail"), "there is no file"),
            (select(model="new.csv"), "not a file that kerneltrail wrote"),
            (select(data="none.csv"), "there is no file"),
            (select(data="lacking.csv"), "has no column 'x'; did you mean 'xx'?"),
            (select("--batch-column", "batsch"), "has no column 'batsch'; did you mean 'batch'?"),
            (select(out="m.trail/inside"), "cannot be written"),
            (report(source="none.trail"), "there is no file"),
            (report("--data", folder / "lacking.csv"), "has no column 'x'"),
            (report(out="m.trail/inside"), "cannot be written"),
            (("show", folder / "new.csv"), "not a file that kerneltrail wrote"),
        ]
    )


def test_of_evaluate(folder):
    def evaluate(*more, data="pilot.csv", out="compared"):
        return "evaluate", folder / data, *COLUMNS, "--out", folder / out, *more

    check(
        [
            (evaluate(data="none.csv"), "there is no file"),
            (evaluate("--target", "yy"), "has no column 'yy'"),
            (evaluate(data="gap.csv"), "is missing in row 3"),
            (evaluate("--config", folder / "key.yaml"), "unknown key 'chain'"),
            (evaluate("--methods", "shrinkag"), "did you mean 'shrinkage'?"),
            (evaluate("--test", "train-1"), "did you mean 'train-01'?"),
            (evaluate("--test-users", 99), "1 to 3 test users, got 99"),
            (evaluate(out="m.trail/inside"), "cannot be written"),
            (("evaluate", "simulated:similr", "--out", folder / "compared"), "did you mean 'similar'?"),
        ]
    )


def test_what_is_heavy_would_be_seen(folder):
    words = ("select", folder / "m.trail", folder / "new.csv", "--out", folder / "selected.csv")
    ((code, _, loaded),) = answers_to(words)
    assert code == 0
    assert "numba" in loaded
    assert "matplotlib" not in loaded

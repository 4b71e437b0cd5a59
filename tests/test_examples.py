"""The notebook runs from its first cell to its last, and what its cells end with can be shown."""

import ast
import json
from pathlib import Path

import matplotlib
import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_steps.ipynb"


def cells(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(code, names):
    """Run a cell, and return the value of its last expression, as a notebook does; None if there is none."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "a cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "a cell", "eval"), names)


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def test_it_is_a_notebook_without_outputs(notebook):
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            assert max(map(len, "".join(cell["source"]).splitlines())) <= 120


def test_all_cells_run_and_their_results_can_be_shown(notebook, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    try:
        names, shown = {}, []
        for code in cells(notebook):
            value = run(code, names)
            assert value is not None, f"this cell shows nothing:\n{code}"
            assert len(repr(value)) < 1500
            html, picture = (getattr(value, name, None) for name in ("_repr_html_", "_repr_png_"))
            assert html is None or html() is None or "<" in html()
            assert picture is None or picture().startswith(b"\x89PNG")
            shown.append(type(value).__name__)
    finally:
        matplotlib.use(before)
    assert shown == [
        "DataFrame", "Cohort", "TrajectoryModel", "SelectionStep", "DataFrame", "NewUser", "DataFrame",
        "NotebookFigure", "NotebookFigure", "NewUser",
    ]  # fmt: skip
    stress = names["effects"]["stress"]
    assert stress.clear
    assert stress.size < 0  # as simulated
    assert "LIN[stress] + SE[hour]" in [node.composition.text for node in names["model"].nodes]

"""`kerneltrail cks`: what is printed and written, and what is refused."""

import csv

import numpy as np
import pytest

from cli.invoke import run
from kerneltrail.cli.cks import search_stage
from kerneltrail.data import User
from kerneltrail.gp.dense import product_covariance
from kerneltrail.gp.inputs import inputs_for
from kerneltrail.methods.cks import ExpressionParameters, SearchProgress, expression_layout, read
from kerneltrail.methods.cks.evidence import CovarianceTree
from kerneltrail.methods.cks.layout import multiplied_out
from kerneltrail.progress import Progress


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cks")
    rng = np.random.default_rng(0)
    year = 1990.0 + np.arange(48) / 4.0
    sales = 900.0 + 40.0 * (year - 1990.0) + 30.0 * np.sin(2 * np.pi * year / 4.0) + 5.0 * rng.standard_normal(48)
    rows = "\n".join(f"{a},{b},a" for a, b in zip(year, sales, strict=True))
    (folder / "sales.csv").write_text(f"year,sales,who\n{rows}\n2002.0,,a\n")
    (folder / "next.csv").write_text("year\n2002.0\n2002.25\n")
    return folder


def test_a_series_is_searched_said_and_predicted(folder):
    result = run(
        "cks", folder / "sales.csv", "--target", "sales", "--covariates", "year", "--depth", 1,
        "--choose", "bic", "--predict", folder / "next.csv", "--out", folder / "out.csv", "--tree", folder / "tree.csv",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stderr  # lines at most, no bar, where nobody watches
    assert "48 rows, 1 row without a value left out" in result.stdout
    assert "level 1:" in result.stdout
    assert "\nPER[year]*SE[year]\n" in result.stdout  # a wave and a bend say the same with fewer hyperparameters
    assert "Sales will follow a smooth pattern in year that repeats with period 4.0" in result.stdout
    assert "PER[year].period = 4.0" in result.stdout
    with (folder / "out.csv").open(newline="") as file:
        said = list(csv.DictReader(file))
    assert [row["year"] for row in said] == ["2002.0", "2002.25"]
    assert all(1300.0 < float(row["mean"]) < 1450.0 and 0.0 < float(row["sd"]) < 50.0 for row in said)
    with (folder / "tree.csv").open(newline="") as file:
        tree = list(csv.DictReader(file))
    assert {"level", "kernel", "bic", "parent"} <= set(tree[0])
    assert sum(row["best"] == "True" for row in tree) == 1


def test_held_out_rows_decide_unless_bic_is_asked_for(folder):
    words = ("cks", folder / "sales.csv", "--target", "sales", "--covariates", "year", "--depth", 0)
    held, by_bic = run(*words, "--tree", folder / "held.csv"), run(*words, "--choose", "bic")
    assert (held.exit_code, by_bic.exit_code) == (0, 0), held.output + by_bic.output
    assert "mean log density of held-out rows" in held.stdout
    assert "held-out" not in by_bic.stdout
    with (folder / "held.csv").open(newline="") as file:
        tree = list(csv.DictReader(file))
    (best,) = (row for row in tree if row["best"] == "True")
    assert float(best["held_out"]) == max(float(row["held_out"]) for row in tree)
    assert run(*words, "--choose", "aic").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "sale"), "did you mean"),
        (("--target", "sales", "--covariates", "sales"), "covariates other than the target"),
        (("--target", "sales"), "is 'a' in row 1 (line 2), not a number; name the columns to explain it by with --cov"),
        (("--target", "sales", "--covariates", "year", "--predict", "next.csv"), "give both or neither"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, words, said):
    result = run("cks", folder / "sales.csv", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in " ".join(result.stderr.split())


def test_the_best_predict_together_and_fits_end_a_search(folder):
    words = ("cks", folder / "sales.csv", "--target", "sales", "--covariates", "year", "--predict", folder / "next.csv")
    means = {}
    for choose in ("holdout", "average"):
        out, tree = folder / f"{choose}.csv", folder / f"{choose}-tree.csv"
        result = run(*words, "--out", out, "--tree", tree, "--fits", 6, "--choose", choose)
        assert result.exit_code == 0, result.output
        assert ("weighs the best" in result.stdout) == (choose == "average")
        with out.open(newline="") as file:
            means[choose] = [float(row["mean"]) for row in csv.DictReader(file)]
        with tree.open(newline="") as file:
            assert {row["level"] for row in csv.DictReader(file)} <= {"0", "1"}
    assert means["average"] != means["holdout"]
    assert means["average"] == pytest.approx(means["holdout"], rel=0.1)


def test_rows_to_predict_need_all_covariates(folder):
    (folder / "holes.csv").write_text("year\n2002\nNA\n")
    result = run(
        "cks", folder / "sales.csv", "--target", "sales", "--covariates", "year", "--predict", folder / "holes.csv",
        "--out", folder / "never.csv",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "'year' of holes.csv has no value in row 2" in " ".join(result.stderr.split())
    assert not (folder / "never.csv").exists()


@pytest.mark.parametrize(
    "text", ["SE[x]*(LIN[x] + SE[x])", "SE[x] + SE[x]", "(PER[x] + LIN[x]*PER[x])*(SE[x] + LIN[x])"]
)
def test_products_multiplied_out_add_up_to_the_expression(text):
    layout = expression_layout(read(text))
    kernel = ExpressionParameters(layout.expression, tuple(0.4 * np.random.default_rng(1).standard_normal(layout.size)))
    user = User("a", ("x",), np.linspace(0.0, 1.0, 6)[:, None], np.zeros(6), (6,))
    total = np.zeros((6, 6))
    for part in multiplied_out(kernel):
        total += product_covariance(inputs_for(user, part.composition), 0, part.values_array, user.X)
    np.testing.assert_allclose(
        total, CovarianceTree(kernel.expression, ("x",)).cells(kernel.vector, user.X, user.X).matrix
    )
    assert multiplied_out(ExpressionParameters(None, (0.0,))) == ()


def test_the_progress_names_the_level_and_the_best_so_far():
    assert search_stage(SearchProgress(0, 1, 3, None, 0.1)) == Progress("kernels of level 0", 1, 3)
    best, said = ("SE[x]", -3.0), "BIC -3.0  SE[x]"
    assert search_stage(SearchProgress(1, 2, 7, best, 0.2)) == Progress("kernels of level 1", 2, 7, said)
    judged = search_stage(SearchProgress(2, 1, 4, best, 0.3, judging=True))
    assert judged == Progress("held-out rows", 1, 4, said)

"""The search: recovery, determinism, budgets, the tree."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import User, simulate
from kerneltrail.errors import DataError, KernelError
from kerneltrail.gp import evidence
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.methods.cks import Effort, PeriodGuard, SearchSettings, search
from kerneltrail.methods.cks.candidate import is_plain
from kerneltrail.methods.cks.evidence import CovarianceTree, Rows
from kerneltrail.methods.cks.fit import bic

QUICK = SearchSettings(depth=1, first=Effort(draws=4), second=Effort(draws=0, fresh=0, accuracy=1e-4))


@pytest.fixture(scope="module")
def wave() -> User:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, 50))
    y = 2.0 * x + np.sin(2.0 * np.pi * x / 0.3) + 0.1 * rng.standard_normal(50)
    return User("wave", ("x",), x[:, None], y - y.mean(), (50,))


@pytest.fixture(scope="module")
def tree(wave):
    return search(wave, None, QUICK)


def test_a_line_with_a_cycle_is_found_as_such():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, 100))
    # Sharp peaks, eight of them: a smooth wave or two would pass for PER×SE with fewer hyperparameters.
    y = 6.0 * x + np.exp(1.5 * np.sin(2.0 * np.pi * x / 0.12)) + 0.2 * rng.standard_normal(100)
    user = User("peaks", ("x",), x[:, None], (y - y.mean()) / y.std(), (100,))
    found = search(user, None, SearchSettings(depth=2, beam=2)).best
    assert found.expression.composition == parse("LIN[x] + PER[x]")
    assert found.fitted.kernel is not None
    assert found.fitted.kernel["PER[x].period"] == pytest.approx(0.12, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "values"),
    [("LIN[x] + PER[x]", [1.0, 0.3, 2.7, 1.0, 2.7, 0.15]), ("SE[x]", [2.7, 1.0, 0.15])],
)
def test_simulated_users_are_recovered(text, values):
    theta = Hyperparameters.from_values(parse(text), values)
    right = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-4.0, 4.0, (120, 1))
        user = simulate.user(theta.composition, theta, X, rng)
        found = search(user, Priors.synthetic(), SearchSettings(depth=2, patience=1)).best
        right += found.expression.composition == parse(text)
    assert right >= 2


def test_the_same_rows_give_the_same_search_bit_for_bit(wave, tree):
    again = search(wave.with_name("other"), None, QUICK)
    assert [(n.expression, n.fitted) for n in again.nodes] == [(n.expression, n.fitted) for n in tree.nodes]


@pytest.mark.slow
def test_processes_give_the_same_search(wave, tree):
    again = search(wave, None, replace(QUICK, workers=2))
    assert [n.expression for n in again.nodes] == [n.expression for n in tree.nodes]
    np.testing.assert_allclose([n.bic for n in again.nodes], [n.bic for n in tree.nodes], rtol=1e-9)


def test_levels_parents_and_scores(wave, tree):
    first, second = tree.level(0), tree.level(1)
    assert {node.expression.text for node in first} == {"LIN[x]", "PER[x]", "SE[x]"}
    assert {node.parent for node in first} == {None}
    assert {node.parent for node in second} == {tree.nodes.index(first[0])}
    assert tree.levels == 2
    assert tree.stopped == "depth"
    assert tree.best.bic == min(node.bic for node in tree.nodes)
    assert len({node.expression for node in tree.nodes}) == len(tree.nodes)
    for node in tree.nodes:
        kernel = node.fitted.kernel
        assert kernel is not None
        log = Rows(wave).log_evidence(CovarianceTree(node.expression, ("x",)), kernel.vector)
        assert node.bic == pytest.approx(bic(log, node.expression, wave.rows), abs=1e-3)
        if is_plain(node.expression):
            same = evidence(wave, kernel.composition, kernel.unconstrained).log[0, -1]
            assert log == pytest.approx(same, abs=1e-4)


def test_the_tree_is_shown(tree):
    rows = tree.to_rows()
    assert [row["index"] for row in rows] == list(range(len(tree.nodes)))
    assert sum(row["best"] for row in rows) == 1
    assert all(parse(row["kernel"]).text == row["composition"] for row in rows)
    assert {"level", "kernel", "bic", "parent"} <= set(rows[0])
    shown = str(tree)
    assert "level 0: 3 candidates" in shown
    assert "level 1: 5 candidates" in shown
    assert sum(line.startswith("* ") for line in shown.splitlines()) == 1
    assert tree.upto(0).levels == 1


def test_candidates_are_thinned_first_and_the_best_refitted_to_all_rows(wave):
    tree = search(wave, None, replace(QUICK, thin=20, refits=1))
    for level in range(tree.levels):
        rows = sorted(node.fitted.rows for node in tree.level(level))
        assert rows == [20] * (len(rows) - 1) + [50]
    assert tree.best.fitted.rows == 50
    assert "first look, 20 rows" in tree.text()


def test_no_seconds_still_give_a_kernel_for_all_rows(wave):
    tree = search(wave, None, replace(QUICK, seconds=0.0, thin=20))
    assert tree.stopped == "seconds"
    assert len(tree.nodes) == 1
    assert tree.best.fitted.rows == 50


def test_seconds_end_a_search(wave):
    tree = search(wave, None, SearchSettings(depth=50, patience=None, seconds=1.0))
    assert tree.stopped == "seconds"
    assert tree.seconds < 30.0  # a fit that was begun is finished, however busy the machine


@pytest.mark.parametrize("fits", [1, 4, 7])
def test_fits_end_a_search_the_same_on_any_machine(wave, fits):
    limited = replace(QUICK, depth=50, patience=None, fits=fits, refits=2)
    trees = [search(wave, None, limited) for _ in range(2)]
    free = search(wave, None, replace(limited, depth=1, fits=None))
    assert trees[0].nodes == trees[1].nodes
    assert trees[0].stopped == "fits"
    # Three atoms and the refits of two of them are five fits; the level after has what is left.
    looked = {1: 1, 4: 3, 7: 5}[fits]
    assert [node.expression for node in trees[0].nodes] == [node.expression for node in free.nodes[:looked]]
    assert np.isfinite(trees[0].best.bic)


def test_a_limit_on_fits_waits_for_the_first_kernel_that_can_be_fitted(wave):
    barred = PeriodGuard(cycles=1e6)  # no period at all
    tree = search(wave, None, replace(QUICK, kinds=("PER", "SE"), guard=barred, fits=1))
    assert [node.fitted.status for node in tree.nodes] == ["period", "fitted"]
    assert tree.best.expression.text == "SE[x]"


@pytest.mark.slow
def test_a_limit_on_fits_does_not_depend_on_processes(wave):
    limited = replace(QUICK, fits=7)
    one, two = search(wave, None, limited), search(wave, None, replace(limited, workers=2))
    assert [node.expression for node in one.nodes] == [node.expression for node in two.nodes]


def test_a_search_ends_when_nothing_gets_better():
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 1.0, 40)
    user = User("line", ("x",), x[:, None], 4.0 * x - 2.0 + 0.3 * rng.standard_normal(40), (40,))
    tree = search(user, None, replace(QUICK, depth=9, patience=1))
    assert tree.stopped == "patience"
    assert tree.best.expression.text == "LIN[x]"
    assert tree.levels == tree.best.level + 2


def test_a_wider_beam_expands_more(wave, tree):
    wide = search(wave, None, replace(QUICK, beam=2))
    assert {n.expression for n in tree.nodes} < {n.expression for n in wide.nodes}
    assert len({n.parent for n in wide.level(1)}) == 2
    assert len({n.expression for n in wide.nodes}) == len(wide.nodes)


def test_progress_is_told(wave):
    prepared = []
    search(wave, None, replace(QUICK, depth=0), progress=prepared.append)
    assert [p.done for p in prepared[:3]] == [1, 2, 3]
    assert prepared[-1].best is not None
    assert prepared[-1].total == 3


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_are_enough_and_allow_no_period(rows):
    user = User("few", ("x", "z"), [[float(i), 1.0] for i in range(rows)], [float(i) for i in range(rows)], (rows,))
    tree = search(user, None, QUICK)
    assert np.isfinite(tree.best.bic)
    assert all(node.fitted.status == "period" for node in tree.nodes if "PER" in node.expression.text)


def test_a_constant_target_and_repeated_rows():
    user = User("same", ("x",), np.repeat([[0.0], [0.5], [1.0]], 4, axis=0), np.zeros(12), (12,))
    assert np.isfinite(search(user, None, QUICK).best.bic)


def test_impossible_requests_are_refused(wave):
    with pytest.raises(DataError, match="no rows yet"):
        search(wave.upto(0), None, QUICK)
    for wrong in (
        {"depth": -1},
        {"refits": 0},
        {"beam": 0},
        {"patience": 0},
        {"seconds": -1.0},
        {"fits": 0},
        {"kinds": ()},
    ):
        with pytest.raises(KernelError):
            SearchSettings(**wrong)


def test_the_guard_is_part_of_the_settings(wave):
    tree = search(wave, None, replace(QUICK, depth=0, guard=PeriodGuard(cycles=5.0)))
    for node in tree.nodes:
        kernel = node.fitted.kernel
        if kernel is not None and "PER[x].period" in kernel:
            assert kernel["PER[x].period"] <= 0.2

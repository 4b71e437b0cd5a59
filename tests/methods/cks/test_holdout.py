"""Choosing by held-out rows: which rows, what the refit sees, the score, and who wins."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import KernelError
from kerneltrail.gp import LinearBlock
from kerneltrail.methods.cks import Effort, Holdout, PeriodGuard, SearchSettings, held_out_score, search, wide_priors
from kerneltrail.methods.cks.evidence import CovarianceTree
from kerneltrail.methods.cks.expression import read
from kerneltrail.methods.cks.fit import FitData, fit
from kerneltrail.methods.cks.holdout import earlier, refit

QUICK = SearchSettings(depth=1, choose="holdout", first=Effort(draws=4), second=Effort(draws=0, fresh=0, accuracy=1e-4))
TEXTS = ("SE[x]", "PER[x]*(LIN[x] + SE[x])")


def wave(rows: int = 50, seed: int = 0) -> User:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.0, rows))
    y = 2.0 * x + np.sin(2.0 * np.pi * x / 0.3) + 0.1 * rng.standard_normal(rows)
    return User("wave", ("x",), x[:, None], y - y.mean(), (rows,))


def problem_of(user: User, block: LinearBlock | None = None) -> FitData:
    limits = PeriodGuard(gaps=3.0, spacings=0.0).limits(user.X, user.covariates)
    return FitData(user, wide_priors(limits), limits, block=block)


def fitted(data: FitData, text: str):
    kernel = fit(data, read(text), Effort(draws=4)).kernel
    assert kernel is not None
    return kernel


def test_the_last_rows_of_the_covariate_are_held_out_from_two_origins():
    x = np.arange(40.0)[::-1]  # newest first: the covariate is the order, not the table
    user = User("a", ("x",), x[:, None], x, (40,))
    (past, held), (before, held_before) = Holdout(share=0.1, origins=2).parts(user)
    assert sorted(x[held]) == [36.0, 37.0, 38.0, 39.0]
    assert sorted(x[past]) == list(np.arange(36.0))
    assert sorted(x[held_before]) == [32.0, 33.0, 34.0, 35.0]
    assert sorted(x[before]) == list(np.arange(32.0))


def test_with_several_covariates_the_order_is_that_of_the_rows():
    user = User("a", ("x", "z"), np.random.default_rng(0).normal(size=(30, 2)), np.zeros(30), (30,))
    ((past, held),) = Holdout(share=0.2, origins=1).parts(user)
    assert past.tolist() == list(range(24))
    assert held.tolist() == list(range(24, 30))


@pytest.mark.parametrize("text", TEXTS)
def test_the_refit_does_not_see_the_rows_held_out(text):
    user = wave()
    y = np.array(user.y)
    y[40:] = 100.0 * np.random.default_rng(1).standard_normal(10)
    other = User("wave", ("x",), user.X, y, (50,))
    kernel = fitted(problem_of(user), text)
    ((past, held),) = Holdout(share=0.2, origins=1).parts(user)
    assert held.tolist() == list(range(40, 50))
    one, two = (refit(earlier(problem_of(each), past), kernel, 30) for each in (user, other))
    assert one == two
    assert one.rows == 40
    assert held_out_score(problem_of(user), kernel, Holdout()) != held_out_score(problem_of(other), kernel, Holdout())


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("linear", [False, True])
def test_the_score_is_the_mean_log_density_of_each_row_given_the_earlier_ones(text, linear):
    user = wave()
    features = np.cos(np.arange(50.0))[:, None]
    data = problem_of(user, LinearBlock(features, np.array([[0.5]]), ("a",)) if linear else None)
    kernel, holdout = fitted(data, text), Holdout(share=0.1, origins=2, thin=30)
    expected = []
    for cut in (45, 40):
        past, held = np.arange(cut), np.arange(cut, cut + 5)
        again = refit(earlier(data, past), kernel, 30).kernel
        assert again is not None
        assert not np.allclose(again.unconstrained, kernel.unconstrained)
        tree = CovarianceTree(again.expression, ("x",))
        K = tree.cells(again.vector, user.X, user.X).matrix + (0.5 * features @ features.T if linear else 0.0)
        noise = np.exp(again.unconstrained[-1])
        prepared = np.linalg.inv(K[np.ix_(past, past)] + noise * np.eye(cut))
        for i in held:
            mean = K[i, past] @ prepared @ user.y[past]
            variance = K[i, i] - K[i, past] @ prepared @ K[past, i] + noise
            expected.append(-0.5 * (np.log(2.0 * np.pi * variance) + (user.y[i] - mean) ** 2 / variance))
    assert held_out_score(data, kernel, holdout) == pytest.approx(np.mean(expected), abs=1e-5)


def test_the_winner_has_the_best_score_and_its_fit_to_all_rows():
    user = wave()
    tree, by_bic = search(user, None, QUICK), search(user, None, replace(QUICK, choose="bic"))
    judged = [node for node in tree.complete if node.held_out is not None]
    assert [(n.expression, n.fitted) for n in tree.nodes] == [(n.expression, n.fitted) for n in by_bic.nodes]
    assert tree.best.held_out == max(node.held_out for node in judged)
    assert tree.best.fitted.rows == 50
    assert tree.best_by_bic.fitted == by_bic.best.fitted
    assert all(node.held_out is None for node in by_bic.nodes)
    again = search(user.with_name("other"), None, QUICK)
    assert [node.held_out for node in again.nodes] == [node.held_out for node in tree.nodes]
    rows = tree.to_rows()
    assert [row["held_out"] for row in rows] == [node.held_out for node in tree.nodes]
    (won,) = (line for line in str(tree).splitlines() if line.startswith("* "))
    assert f"{tree.best.held_out:.3f}" in won


def test_only_the_best_by_bic_are_judged():
    tree = search(wave(), None, replace(QUICK, holdout=Holdout(most=2)))
    ranked = sorted(tree.complete, key=lambda node: node.bic)
    assert [node.held_out is not None for node in ranked] == [True, True] + [False] * (len(ranked) - 2)


def test_a_kernel_that_extrapolates_outscores_one_that_only_fits():
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 80)
    user = User("cycle", ("x",), x[:, None], np.sin(2.0 * np.pi * x / 0.23) + 0.1 * rng.standard_normal(80), (80,))
    data = problem_of(user)
    cycle, bend = (held_out_score(data, fitted(data, text), Holdout()) for text in ("PER[x]", "SE[x]"))
    assert cycle > 0.5  # noise of 0.1 alone would give 0.88
    assert bend < cycle - 0.5


def test_the_held_out_rows_decide_against_bic():
    x = np.linspace(0.0, 1.0, 60)
    y = np.minimum(4.0 * x - 1.0, 1.0) + 0.15 * np.random.default_rng(1).standard_normal(60)
    settings = replace(QUICK, guard=PeriodGuard(gaps=3.0, spacings=0.0))
    tree = search(User("bent", ("x",), x[:, None], y, (60,)), None, settings)
    chosen, other = tree.best, tree.best_by_bic
    assert chosen.bic > other.bic
    assert chosen.held_out > other.held_out + 0.05


def test_few_rows_and_no_time_leave_the_choice_to_bic():
    tree = search(wave(19), None, QUICK)
    assert all(node.held_out is None for node in tree.nodes)
    assert tree.best is tree.best_by_bic
    late = search(wave(), None, replace(QUICK, seconds=0.0))
    assert late.best is late.best_by_bic


@pytest.mark.slow
def test_processes_give_the_same_choice():
    atoms = replace(QUICK, depth=0)
    one, two = search(wave(), None, atoms), search(wave(), None, replace(atoms, workers=2))
    assert one.best.expression == two.best.expression
    assert one.best.held_out == pytest.approx(two.best.held_out, rel=1e-6)


def test_progress_says_when_kernels_are_judged():
    prepared = []
    tree = search(wave(), None, replace(QUICK, depth=0), progress=prepared.append)
    judged = [each for each in prepared if each.judging]
    assert [each.done for each in judged] == [1, 2, 3]
    assert {each.level for each in judged} == {tree.levels}


def test_impossible_holdouts_are_refused():
    for wrong in (
        {"share": 0.0},
        {"origins": 0},
        {"share": 0.3, "origins": 2},
        {"most": 0},
        {"fewest": 1},
        {"worth": -1.0},
    ):
        with pytest.raises(KernelError, match="holdout"):
            Holdout(**wrong)
    with pytest.raises(KernelError, match="bic, holdout, average"):
        SearchSettings(choose="aic")
    assert SearchSettings().choose == "bic"
    assert SearchSettings.for_series().choose == "holdout"

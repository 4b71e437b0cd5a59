"""Searches for one batch: what they leave out changes nothing of what they find."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.gp import inputs_for
from kerneltrail.gp.batch_search import BEHIND, BatchSearch
from kerneltrail.gp.starts import APART
from kerneltrail.gp.whitened import WhitenedPosterior
from kerneltrail.kernels import Priors, parse

PRIORS = Priors.standardised()
TIGHT = {"gradient_tolerance": 1e-4, "value_tolerance": 1e-12}


def target_of(text, rows=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (rows, 1))
    y = np.sin(2 * np.pi * X[:, 0] / 0.3) + 0.3 * rng.standard_normal(rows)
    kernel = parse(text)
    mean, variance = PRIORS.moments(kernel)
    user = User("ann", ("x",), X, y, (rows,))
    return WhitenedPosterior(inputs_for(user, kernel), mean, np.sqrt(variance), "auto", 1e-6)


@pytest.mark.parametrize("text", ["SE[x]", "PER[x]", "LIN[x] + SE[x]"])
def test_only_a_search_without_hope_is_left_behind(text):
    target = target_of(text)
    start = np.full(len(target.mean), 0.3)
    identity = np.eye(len(start))
    whole, evaluations = target.compiled.search(start, identity, **TIGHT)
    blind, _ = target.compiled.search(start, identity, **TIGHT, ceiling=whole.value - 5.0)
    np.testing.assert_array_equal(blind.point, whole.point)  # it knows too little to say that there is no hope
    learnt = np.linalg.inv(target.compiled.curvature(whole.point, np.full(len(start), 1e-4)))
    stayed = 0
    for draw in np.random.default_rng(0).standard_normal((20, len(start))):  # as far as the posterior reaches
        point = whole.point + np.linalg.cholesky(learnt) @ draw
        again, evaluations = target.compiled.search(point, learnt, **TIGHT)
        if abs(again.value - whole.value) > 1e-6:  # it has left for another optimum, which nothing here foretells
            continue
        stayed += 1
        same, _ = target.compiled.search(point, learnt, **TIGHT, ceiling=again.value + BEHIND)
        np.testing.assert_array_equal(same.point, again.point)
        behind, few = target.compiled.search(point, learnt, **TIGHT, ceiling=again.value - 5.0)
        assert behind.status == "behind"
        assert few <= evaluations
    assert stayed >= 5


def test_a_point_that_the_parabola_explains_is_not_searched_from_and_another_optimum_is():
    search = BatchSearch(target_of("PER[x]"), 1e-6)
    w = np.zeros((1, 4))
    names = [slot.spec.kind for slot in search.target.inputs.layout.slots]
    period = names.index("period")
    w[0, period] = (np.log(0.6) - search.target.mean[period]) / search.target.scale[period]  # two waves in one period
    search.run(w)
    first = search.best
    rng = np.random.default_rng(1)
    near = first.point + rng.uniform(-1, 1, (20, 4)) * [0.4, 0.3, 0.0, 0.2]
    values = search.target.values(near)[:, -1]
    away = near - first.point
    rise = 0.5 * np.einsum("si,ij,sj->s", away, search.hessian, away)
    explained = ((values - first.value) / rise > 0.55) & ((values - first.value) / rise < 1.9)
    explained &= np.abs(away).max(axis=1) > APART
    assert explained.any()
    before = search.evaluations
    assert not search.improve(near[explained], values[explained])
    assert search.evaluations == before
    other = first.point.copy()
    other[period] = (np.log(0.3) - search.target.mean[period]) / search.target.scale[period]
    assert search.improve(other[None], search.target.values(other[None])[:, -1])
    assert search.best.value < first.value - 1e-3


def test_a_search_that_comes_to_the_known_optimum_is_not_finished_again():
    search = BatchSearch(target_of("SE[x]"), 1e-6)
    search.run(np.zeros((1, 3)))
    best = search.best
    assert best.steepest < 1e-2
    before = search.evaluations
    search.run(best.point[None] + 0.1, inverse=[search.learnt])
    assert search.best is best
    assert search.evaluations - before < 6
    assert len(search.ends) == 2

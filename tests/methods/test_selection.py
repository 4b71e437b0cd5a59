"""Final, stratified and memoryless: what is chosen, against plain loops and enumeration."""

from collections import Counter

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.gp import Prediction, find_map
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.methods.candidate_fits import CandidateEvidences, CandidateSearch
from kerneltrail.methods.final import best_together, commonest_end, final
from kerneltrail.methods.memoryless import Memoryless
from kerneltrail.methods.mixture import Mixture, joined
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.stratified import Stratified, step_distribution

from .common import COVARIATES, POOL, QUICK, method, rows, training

PRIORS = Priors.heartsteps()
SEARCH = CandidateSearch(2, 1, QUICK)


@pytest.fixture(scope="module")
def preprocessor():
    return Preprocessor.of(training(), scaling="group")


@pytest.fixture(scope="module")
def judged(preprocessor):
    return CandidateEvidences(training(), preprocessor, POOL, PRIORS, SEARCH)


def somebody(n=12, seed=1, ends=None):
    X, y, _ = rows(n, seed=seed)
    return User("ann", COVARIATES, X, y, ends or (n,))


def test_final_is_the_best_summed_evidence(judged, preprocessor):
    best, value = None, -np.inf
    for mask in judged.masks:
        total = POOL.log_h0(mask)
        for m in range(3):
            total += judged.table.get(m, mask).log_laplace[-1]
        if total > value:
            best, value = mask, total
    assert best_together(judged) == best
    given = {"seed": 0, "pool": POOL, "priors": PRIORS, "search": SEARCH}
    chosen = final(training(), **given)
    assert chosen.composition == POOL.composition(best)
    np.testing.assert_allclose(chosen.prior.mean, judged.group(best).mean)
    assert final(training(), transfer=False, **given).prior is PRIORS


def test_final_of_a_model_is_its_most_frequent_end():
    model = method("trajectory").model
    ends = Counter(path[-1] for path in model.paths)
    chosen = final(training(), seed=0, model=model)
    assert chosen.composition == commonest_end(model).composition
    assert ends[model.pool.mask(chosen.composition)] == max(ends.values())
    assert chosen.prior is model.node(chosen.composition).group


def test_final_never_changes():
    learner = final(training(), seed=0, pool=POOL, priors=PRIORS, search=SEARCH)
    assert {learner.fit(somebody(n), None).composition for n in (1, 4, 12)} == {learner.composition}


def test_step_distribution_by_loops():
    rng = np.random.default_rng(0)
    log, h0, alpha = 2.0 * rng.standard_normal((4, 3)), np.array([0.5, 0.3, 0.2]), 0.7
    pi = h0.copy()
    for _ in range(2000):
        new = alpha * h0
        for m in range(4):
            weights = [pi[k] * np.exp(log[m, k]) for k in range(3)]
            new = new + np.array(weights) / sum(weights)
        pi = new / (alpha + 4)
    found = step_distribution(log, np.log(h0) - 3.0, alpha)
    np.testing.assert_allclose(found, pi, atol=1e-6)
    np.testing.assert_allclose(found.sum(), 1.0)


def test_step_distribution_follows_the_evidence_and_keeps_h0():
    h0 = np.log([0.5, 0.5])
    sure = step_distribution(np.array([[0.0, 50.0]] * 9), h0, 1.0)
    np.testing.assert_allclose(sure, [0.05, 0.95])
    none = step_distribution(np.zeros((9, 2)), h0, 1.0)
    np.testing.assert_allclose(none, [0.5, 0.5])


def test_stratified_weighs_by_its_step(preprocessor):
    learner = Stratified.train(training(), preprocessor, POOL, PRIORS, search=SEARCH)
    np.testing.assert_allclose(learner.steps.sum(axis=1), 1.0)
    assert len(learner.steps) == 2
    user = somebody(6, ends=(3, 6))
    fit = learner.fit(user, None)
    seen = preprocessor.prepare(user)
    log = []
    for composition, group, p in zip(learner.compositions, learner.groups, learner.steps[1], strict=True):
        found = find_map(
            seen.whole, composition, group, rng=np.random.default_rng([0, 6]), starts=1, screen=8,
            warm=[group.mean], tol=1e-6, accuracy=1e-6,
        )  # fmt: skip
        log.append(np.log(p) + found.log_laplace)
    weights = np.exp(log - np.max(log)) / np.exp(log - np.max(log)).sum()
    for composition, weight in zip(learner.compositions, weights, strict=True):
        assert fit.probabilities.get(composition, 0.0) == pytest.approx(weight, abs=2e-3)


def test_stratified_goes_on_past_the_last_step(preprocessor):
    learner = Stratified.train(training(), preprocessor, POOL, PRIORS, search=SEARCH)
    late, last = somebody(6, ends=(1, 2, 3, 4, 6)), somebody(6, ends=(2, 6))
    assert learner.fit(late, None).probabilities == learner.fit(last, None).probabilities


def test_memoryless_by_enumeration():
    preprocessor = Preprocessor.of(training())
    learner = Memoryless(preprocessor, POOL, PRIORS, CandidateSearch(2, 1))
    user = somebody(14)
    seen = preprocessor.prepare(user)
    log = {}
    for mask in POOL.masks():
        found = find_map(seen.whole, POOL.composition(mask), PRIORS, rng=np.random.default_rng(3))
        log[POOL.composition(mask)] = found.log_laplace + POOL.log_h0(mask)
    top = max(log.values())
    total = sum(np.exp(value - top) for value in log.values())
    fit = learner.fit(user, None)
    assert fit.composition == max(log, key=log.get)
    for composition, value in log.items():
        assert fit.probabilities.get(composition, 0.0) == pytest.approx(np.exp(value - top) / total, abs=0.02)


def test_memoryless_can_predict_by_the_selected_one_alone():
    preprocessor = Preprocessor.of(training())
    averaged = Memoryless(preprocessor, POOL, PRIORS, SEARCH).fit(somebody(), None)
    alone = Memoryless(preprocessor, POOL, PRIORS, SEARCH, average=False).fit(somebody(), None)
    assert len(alone.members) == 1
    assert alone.composition == averaged.composition


def test_memoryless_knows_nothing_of_names():
    preprocessor = Preprocessor.of(training())
    learner = Memoryless(preprocessor, POOL, PRIORS, SEARCH)
    assert learner.fit(somebody(), None).weights == learner.fit(somebody().with_name("bob"), None).weights


def test_joined_has_the_moments_of_the_mixture():
    rng = np.random.default_rng(1)
    parts = [Prediction(np.array([1e6 + m]), np.array([v]), s) for m, v, s in ((0.0, 1.0, 0.5), (3.0, 0.2, 0.1))]
    said = joined(parts, (0.3, 0.7))
    which = rng.random(400_000) < 0.3
    draws = np.where(which, rng.normal(0.0, np.sqrt(1.5), which.size), rng.normal(3.0, np.sqrt(0.3), which.size))
    np.testing.assert_allclose(said.mean[0] - 1e6, draws.mean(), atol=0.02)
    np.testing.assert_allclose(said.total[0], draws.var(), rtol=0.02)


def test_improbable_members_are_left_out():
    preprocessor = Preprocessor.of(training())
    members = [
        Hyperparameters(parse(text), tuple(PRIORS.moments(parse(text))[0])) for text in ("LIN[hour]", "SE[hour]")
    ]
    mixture = Mixture.weighed(preprocessor.prepare(somebody()), members, [-20.0, 0.0])
    assert mixture.composition.text == "SE[hour]"
    assert mixture.weights == (1.0,)

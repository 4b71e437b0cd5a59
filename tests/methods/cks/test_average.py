"""Several kernels that predict together: weights, the mixture's moments, storage, and what is reported."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.methods.cks import CKS, CKSFit, CKSLearner, Effort, Holdout, SearchSettings
from kerneltrail.methods.preprocessing import own_preprocessor
from kerneltrail.methods.refit import RefittingMethod

QUICK = SearchSettings(
    depth=1,
    choose="average",
    holdout=Holdout(worth=2.0),
    first=Effort(draws=4),
    second=Effort(draws=0, fresh=0, accuracy=1e-4),
)


def series(rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows) / 4.0
    return x[:, None], 50.0 + 3.0 * x + 4.0 * np.sin(2.0 * x) + np.random.default_rng(0).standard_normal(rows)


@pytest.fixture(scope="module")
def followed() -> CKS:
    user = CKS(["x"], settings=QUICK)
    user.update(*series())
    return user


def test_weights_follow_the_held_out_densities(followed):
    tree = followed.found.tree
    judged = {node.expression: node.held_out for node in tree.complete if node.held_out is not None}
    raw = {kernel: np.exp(4.0 * held) for kernel, held in judged.items()}  # two origins, each worth two rows
    expected = {kernel: each / sum(raw.values()) for kernel, each in raw.items()}
    found = {kernel.expression: weight for weight, kernel in followed.found.average}
    assert len(found) > 2
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-14)  # though those below a millionth are left out
    for kernel, weight in expected.items():
        assert found.get(kernel, 0.0) == pytest.approx(weight, abs=1e-5)
    assert tree.weighted(1e6) == ((1.0, tree.best),)
    assert [weight for weight, _ in tree.weighted(0.0)] == pytest.approx([1.0 / len(judged)] * len(judged))


def test_the_prediction_has_the_moments_of_the_mixture(followed):
    fit = followed.found
    X = np.array([[3.3], [11.0], [14.0]])
    said = followed.predict(X)
    alone = [(weight, CKSFit(fit.prepared, kernel).predict(X, None)) for weight, kernel in fit.average]
    rng = np.random.default_rng(1)
    draws = 200_000
    which = rng.choice(len(alone), draws, p=np.array([w for w, _ in alone]) / sum(w for w, _ in alone))
    means = np.array([part.mean for _, part in alone])[which]
    scales = np.sqrt(np.array([part.total for _, part in alone]))[which]
    sample = means + scales * rng.standard_normal(means.shape)
    # Five standard errors of six numbers: a false alarm in some 300 000 seeds.
    error = 5.0 * sample.std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(said.mean - sample.mean(axis=0)) < error)
    spread = ((sample - sample.mean(axis=0)) ** 2).std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(said.total - sample.var(axis=0)) < 5.0 * spread)


def test_what_is_reported_is_the_kernel_judged_best(followed):
    single = CKS(["x"], settings=replace(QUICK, choose="holdout"))
    single.update(*series())
    assert single.found.average == ()
    assert followed.found.kernel == single.found.kernel == followed.found.tree.best.expression.text
    assert followed.composition == single.composition
    assert not np.allclose(followed.predict([[12.0]]).mean, single.predict([[12.0]]).mean)


def test_an_average_is_saved_and_restored_bit_for_bit():
    method = RefittingMethod("cks", CKSLearner(own_preprocessor(["x"]), None, QUICK))
    user = method("ann")
    user.update(*series())
    again = method.load(method.save(user))
    X = np.linspace(0.0, 14.0, 7)[:, None]
    np.testing.assert_array_equal(again.predict(X).mean, user.predict(X).mean)
    np.testing.assert_array_equal(again.predict(X).total, user.predict(X).total)
    assert again.fit == user.fit


def test_with_too_few_rows_to_hold_out_the_best_by_bic_predicts_alone():
    user = CKS(["x"], settings=replace(QUICK, depth=0))
    user.update(*series(12))
    ((weight, kernel),) = user.found.average
    assert weight == 1.0
    assert kernel == user.found.hyperparameters == user.found.tree.best_by_bic.fitted.kernel

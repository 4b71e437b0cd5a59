"""CKS as a selector: units, restarts, storage, reward models; and the benchmark's table."""

import numpy as np
import pytest

from kerneltrail.data import Scaler, User
from kerneltrail.gp import Reward
from kerneltrail.kernels import Composition, Priors, layout_of, parse
from kerneltrail.methods.cks import CKS, CKSLearner, Effort, SearchSettings, expression_layout
from kerneltrail.methods.cks import read as read_kernel
from kerneltrail.methods.preprocessing import Preprocessor, own_preprocessor
from kerneltrail.methods.protocol import FollowedUser, hyperparameter_count
from kerneltrail.methods.refit import RefittingMethod

QUICK = SearchSettings(depth=1, first=Effort(draws=4), second=Effort(draws=0, fresh=0, accuracy=1e-4))


def passengers(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = 1950.0 + np.arange(rows) / 12.0
    y = 1e5 + 2e4 * (x - 1950.0) + 9e3 * np.sin(2 * np.pi * x) + 1500.0 * rng.standard_normal(rows)
    return x[:, None], y


def test_years_and_large_targets_are_followed_in_their_own_units():
    X, y = passengers()
    user = CKS(["year"], settings=SearchSettings(depth=2, beam=2))
    user.update(X[:48], y[:48])
    assert user.composition == parse("LIN[year] + PER[year]")
    assert user.found.in_data_units["PER[year].period"] == pytest.approx(1.0, rel=0.02)
    said = user.predict(X[48:])
    assert np.sqrt(np.mean((said.mean - y[48:]) ** 2)) < 3000.0
    assert np.all(np.abs(said.mean - y[48:]) < 5.0 * np.sqrt(said.total))


def test_it_is_a_selector_that_restarts_on_every_cumulative_set():
    X, y = passengers(30)
    pieces, whole = CKS(["year"], settings=QUICK), CKS(["year"], settings=QUICK)
    assert isinstance(pieces, FollowedUser)
    assert pieces.composition == Composition()
    before = pieces.predict(X[:2])
    assert np.isfinite(before.mean).all()
    assert np.all(before.total > 0.0)
    pieces.update(X[:10], y[:10])
    kept = pieces.copy()
    pieces.update(X[10:], y[10:])
    whole.update(X, y)
    assert pieces.composition == whole.composition
    np.testing.assert_array_equal(pieces.predict(X).mean, whole.predict(X).mean)
    assert (kept.rows, pieces.rows, pieces.batches) == (10, 30, 2)
    assert pieces.found.tree is not None
    assert pieces.found.kernel == pieces.found.tree.best.expression.text


def test_a_user_is_saved_and_restored_bit_for_bit():
    X, y = passengers(20)
    method = RefittingMethod("cks", CKSLearner(own_preprocessor(["year"]), None, QUICK))
    user = method("ann")
    user.update(X, y)
    again = method.load(method.save(user))
    assert again.composition == user.composition
    np.testing.assert_array_equal(again.predict(X).mean, user.predict(X).mean)
    again.update(X + 5.0, y)
    user.update(X + 5.0, y)
    np.testing.assert_array_equal(again.predict(X).total, user.predict(X).total)


def test_the_order_of_covariates_does_not_matter():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 10.0, (30, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    one, two = CKS(["a", "b"], settings=QUICK), CKS(["b", "a"], settings=QUICK)
    one.update(X, y)
    two.update(X[:, ::-1], y)
    assert one.composition == two.composition == parse("LIN[a]")
    np.testing.assert_allclose(one.predict(X).mean, two.predict(X[:, ::-1]).mean, rtol=1e-6)


@pytest.mark.parametrize("scaling", ["covariates", "none"])
def test_the_papers_priors_are_used_where_the_target_is_not_scaled(scaling):
    X, y = passengers(15)
    user = CKS(["year"], settings=QUICK, scaling=scaling)
    user.update(X - 1950.0, (y - y.mean()) / y.std())
    expected = Priors.synthetic() if scaling == "none" else Priors.heartsteps()
    assert user.found.prepared.preprocessor.schema.target_scaling == "none"
    assert isinstance(user.learner, CKSLearner)
    assert user.learner.priors == expected
    assert np.isfinite(user.predict(X - 1950.0).mean).all()


def test_a_reward_model_takes_its_share():
    rng = np.random.default_rng(2)
    X, action = rng.uniform(0.0, 1.0, (40, 1)), rng.integers(0, 2, 40).astype(float)
    y = np.sin(6.0 * X[:, 0]) + 2.0 * action + 0.1 * rng.standard_normal(40)
    base = own_preprocessor(["hour"], "covariates")
    preprocessor = Preprocessor(base.schema, Scaler.identity(["hour"]), Reward(), takes_action=True)
    user = RefittingMethod("cks", CKSLearner(preprocessor, Priors.heartsteps(), QUICK))("ann")
    user.update(X, y, action=action)
    gain = user.predict(X, action=np.ones(40)).mean - user.predict(X, action=np.zeros(40)).mean
    np.testing.assert_allclose(gain, 2.0, atol=0.3)


def test_covariates_may_be_called_anything():
    user = CKS(["user", "order", "target"], settings=QUICK)
    user.update([[0.0, 1.0, 2.0]], [3.0])
    assert np.isfinite(user.predict([[0.0, 1.0, 2.0]]).mean).all()


def test_shared_atoms_are_counted_once_where_sizes_are_compared():
    method = RefittingMethod("cks", CKSLearner(own_preprocessor(["x"]), None, QUICK))
    kernel = read_kernel("PER[x]*(LIN[x] + SE[x])")
    user = method("ann")
    assert user.hyperparameter_count == 1  # noise alone
    seen = user.seen.extend(User("ann", ("x",), [[0.0], [1.0]], [0.0, 1.0], (2,)))
    fit = method.learner.restore(seen, {"kernel": kernel.text, "theta": [0.0] * expression_layout(kernel).size})
    assert fit.hyperparameter_count == hyperparameter_count(fit) == 7
    assert layout_of(fit.composition).size == 9

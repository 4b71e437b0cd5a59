"""The work of an update is bounded: what is left out, what is done in its place, and that it is kept in files."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.errors import KernelError
from kerneltrail.trajectory import new_user, node_fit
from kerneltrail.trajectory.evidence.base import LaplaceEvidence
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.node_fit import NodeFit, dense_cost, feature_cost

from .small import follow, rows, small_model

pytestmark = pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")


def scaled(model, person):
    return model.scaler.apply(person)


def test_without_a_limit_a_search_is_made_and_with_none_left_the_hyperparameters_are_kept():
    model = small_model()
    person = scaled(model, rows("ann", 24, seed=1, size=24))
    fit = NodeFit.start(model.nodes[1])
    searched = fit.refine(person, None, LaplaceEvidence)
    assert not searched.limited
    assert not np.array_equal(searched.theta, fit.theta)
    kept = searched.refine(person, None, LaplaceEvidence, 0.0)
    assert kept.limited
    np.testing.assert_array_equal(kept.theta, searched.theta)
    assert kept.refined == searched.refined
    # At the optimum and on the same rows nothing is lost: it is Laplace's evidence still.
    assert kept.log_evidence == pytest.approx(searched.log_evidence, abs=1e-3)


def test_before_any_search_all_rows_are_judged_at_the_groups_mean():
    model = small_model()
    person = scaled(model, rows("ann", 24, seed=2, size=24))
    node = model.nodes[1]
    fit = NodeFit.start(node).refine(person, None, LaplaceEvidence, 0.0)
    expected = gp.log_evidence(person, node.composition, node.group.mean[None], method="dense")[0, -1]
    np.testing.assert_array_equal(fit.theta, node.group.mean)
    assert fit.log_evidence == pytest.approx(expected, abs=1e-3)


def test_the_nominal_cost_grows_with_rows_features_and_range():
    assert dense_cost(100) < dense_cost(200) < dense_cost(400)
    assert feature_cost(100, 20) < feature_cost(100, 40) < feature_cost(400, 40)
    model = small_model()
    fit = NodeFit.start(model.nodes[0])
    near = scaled(model, rows("ann", 24, seed=3, size=24))
    wide = near.with_X(near.X * 200.0)
    assert fit._cost(near) < fit._cost(wide) <= dense_cost(24)


def test_an_update_makes_no_search_that_the_budget_does_not_pay(monkeypatch):
    asked = []
    estimate = LaplaceEvidence.estimate

    def counted(node, seen, block, start):
        asked.append((node.composition.text, seen.rows))
        return estimate(node, seen, block, start)

    monkeypatch.setattr(LaplaceEvidence, "estimate", staticmethod(counted))
    model, person = small_model(), rows("ann", 48, seed=4, size=12)
    user = model.new_user()
    follow(user, person, (1,))
    assert len(asked) == len(model.nodes)
    assert user.limited == ()
    monkeypatch.setattr(new_user, "BUDGET", 0.0)
    follow(user, person, (2, 3))
    assert len(asked) == len(model.nodes)
    assert len(user.limited) == len(model.nodes)
    assert np.isfinite(user.predict(person.X).mean).all()


def test_the_same_rows_give_the_same_bits_and_a_file_goes_on_as_if_never_stopped(monkeypatch):
    monkeypatch.setattr(new_user, "BUDGET", 1e7)
    model, person = small_model(), rows("ann", 60, seed=5, size=12, high=900.0)
    one, other = model.new_user("ann"), model.new_user("ann")
    follow(one, person, (1, 2, 3))
    follow(other, person, (1, 2))
    other = NewUser.from_bytes(other.to_bytes(), model)
    assert other.limited == tuple(f.node.composition for f in other.state.fits if f.limited)
    follow(other, person, (3,))
    assert one.to_bytes() == other.to_bytes()


def test_a_node_without_sums_is_judged_given_the_newest_rows(monkeypatch):
    """Past the rows that are refined: its evidence grows by the density of the new rows given the newest before."""
    monkeypatch.setattr(node_fit, "FEATURES", ((1e-4, 1),))  # nothing has a single feature
    model, person = small_model(), rows("ann", 48, seed=6, size=12)
    user = model.new_user(refine=20)
    follow(user, person, (1, 2))
    assert user.state.kept is None
    assert all(fit.online is None and fit.limited for fit in user.state.fits)
    before, recent = user.state.fits, user.state.recent
    follow(user, person, (3,))
    batch = scaled(model, person.batch(3))
    for old, new in zip(before, user.state.fits, strict=True):
        composition = old.node.composition
        grown = User("ann", batch.covariates, np.vstack([recent.X, batch.X]), np.append(recent.y, batch.y), (24, 36))
        pair = gp.log_evidence(grown, composition, old.theta[None], method="dense")[0]
        np.testing.assert_array_equal(new.theta, old.theta)
        assert new.log_evidence - old.log_evidence == pytest.approx(pair[1] - pair[0], abs=1e-3)
    expected = gp.Posterior.fit(user.state.recent, user.hyperparameters).predict(scaled(model, person.batch(4)).X)
    nodes = user.node_posterior().predict(scaled(model, person.batch(4)).X, None)
    np.testing.assert_allclose(nodes.mean, expected.mean, atol=1e-9)


def test_rows_too_far_outside_for_sums_fall_back_on_the_newest_rows():
    model, person = small_model(), rows("ann", 48, seed=7, size=12)
    user = model.new_user(refine=20)
    follow(user, person, (1, 2, 3))
    assert all(fit.online is not None for fit in user.state.fits)
    far = rows("ann", 12, seed=8, size=12, low=1e6, high=2e6)
    with pytest.raises(KernelError):
        next(f for f in user.state.fits if f.node.composition.text == "SE[hour]").online.predict(scaled(model, far).X)
    assert np.isfinite(user.predict(far.X).mean).all()
    user.update(far.X, far.y)
    assert user.limited
    assert np.isfinite(user.predict(far.X).mean).all()
    assert np.isfinite(user.effects().noise)


@pytest.mark.parametrize("hostile", ["range", "duplicates", "constant", "outlier"])
def test_hostile_rows_are_followed_to_finite_answers(hostile):
    person = rows("ann", 120, seed=9, size=40)
    X, y = person.X.copy(), person.y.copy()
    if hostile == "range":
        X[:, 0] = np.linspace(0, 1e5, len(X))
    elif hostile == "duplicates":
        X[:] = X[0]
    elif hostile == "constant":
        y[:] = 3.0
    else:
        X[60, 0] = 1e8
    user = small_model().new_user()
    follow(user, replace(person.with_X(X).with_y(y)))
    prediction = user.predict(X[:5])
    assert np.isfinite(prediction.mean).all()
    assert (prediction.total > 0).all()

"""Union and flat: what is taken out of the learnt model, and that a comparison learns it once."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.evaluation import evaluate
from kerneltrail.methods import build
from kerneltrail.methods import trajectory as module
from kerneltrail.methods.registry import rests_on
from kerneltrail.trajectory.map_table import fit_path
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.sharing import Member, learn_group
from support.identical import difference

from .common import COVARIATES, OPTIONS, POOL, REWARD, method, rows, training

X7, Y7, A7 = rows(7, seed=1)
NEXT, _, NEXT_A = rows(6, seed=3)
NEWCOMERS = [User("new", COVARIATES, *rows(9, seed=5)[:2], (4, 9), action=rows(9, seed=5)[2])]


def made(name, *, reward=False):
    learnt = method("trajectory", reward=reward).model
    return learnt, build(name, training(), {"model": learnt}).model


@pytest.mark.parametrize("reward", [False, True])
def test_the_union_has_every_product_of_the_graph_and_everybodys_group(reward):
    learnt, one = made("union", reward=reward)
    (node,) = one.nodes
    products = {product for each in learnt.nodes for product in each.composition}
    assert set(node.composition) == products
    assert node.users == learnt.users
    thetas = []
    for user in training().raw:
        seen = learnt.mean.centred(learnt.scaler.apply(user))  # as the fit saw the rows, all of them at once
        fits = fit_path(
            seen.with_ends((seen.rows,)), node.composition, learnt.priors, learnt.settings.maps, learnt.reward
        )
        thetas.append(fits.theta[-1])
    users = [learnt.mean.centred(learnt.scaler.apply(user)) for user in training().raw]
    members = [Member(m, 0, theta) for m, theta in enumerate(thetas)]
    whole = [user.with_ends((user.rows,)) for user in users]
    group, _ = learn_group(node.composition, members, whole, learnt.reward, learnt.priors, learnt.settings.maps)
    np.testing.assert_allclose(node.group.mean, group.mean, rtol=1e-6)
    np.testing.assert_allclose(node.group.variance, group.variance, rtol=1e-6)
    np.testing.assert_array_equal(one.transitions, [[1.0], [1.0]])


def test_on_a_flat_graph_the_evidence_alone_decides():
    learnt, flat = made("flat")
    assert flat.nodes == learnt.nodes
    size = len(flat.nodes)
    np.testing.assert_allclose(flat.transitions[0], np.full(size, 1 / size))
    user = flat.new_user("ann")
    for part in (slice(0, 3), slice(3, 7)):
        step = user.update(X7[part], Y7[part])
        log = np.array([step.log_evidence[node.composition] for node in flat.nodes])
        weights = np.exp(log - log.max())
        found = [step.probabilities[node.composition] for node in flat.nodes]
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("name", ["union", "flat"])
def test_it_is_a_model_of_its_own_that_a_file_keeps(name):
    learnt, changed = made(name)
    assert difference(from_bytes(to_bytes(changed)), changed) is None
    assert fingerprint(changed) != fingerprint(learnt)


def test_a_comparison_learns_the_model_once(monkeypatch, tmp_path):
    fits = []

    def counted(*given, **asked):
        fits.append(asked)
        return original(*given, **asked)

    original = module.fit
    monkeypatch.setattr(module, "fit", counted)
    shared = {"pool": POOL, **OPTIONS["trajectory"]}
    cohort = training()
    for order in (("trajectory", "union", "flat"), ("flat", "union")):
        fits.clear()
        specs = {name: (name, shared) for name in order}
        found = evaluate(cohort, NEWCOMERS, specs, workers=1)
        assert not found.failures
        assert len(fits) == 1, order
    # What was kept is not learnt again, whoever it was learnt for.
    fits.clear()
    for order in (("trajectory",), ("union",), ("union", "flat", "trajectory")):
        specs = {name: (name, shared) for name in order}
        found = evaluate(cohort, NEWCOMERS, specs, workers=1, out=tmp_path)
        assert not found.failures
    assert len(fits) == 1
    same = evaluate(cohort, NEWCOMERS, {"union": ("union", shared)}, workers=1)
    kept = [step for step in found.steps if step.method == "union"]
    assert [step.log_density for step in kept[:-1]] == [step.log_density for step in same.steps[:-1]]


def test_a_model_that_cannot_be_learnt_is_a_failure_of_whoever_rests_on_it():
    cohort = training()
    wrong = {"changes": {"evidence": "none"}}
    found = evaluate(cohort, NEWCOMERS, {"union": ("union", wrong), "mean": "mean"}, workers=1)
    (failure,) = found.failures
    assert (failure.method, failure.stage) == ("union", "build")
    assert {step.method for step in found.steps} == {"mean"}


def test_settings_are_the_trajectory_models():
    assert (rests_on("union"), rests_on("flat"), rests_on("mean")) == ("trajectory", "trajectory", None)
    with pytest.raises(DataError, match="union has no setting 'chanes'"):
        build("union", training(), {"chanes": {}})


def test_actions_are_taken_as_by_the_learnt_model():
    user = method("union", reward=True)("ann")
    user.update(X7, Y7, action=A7)
    assert user.predict(NEXT, action=NEXT_A).mean.shape == (len(NEXT),)
    assert method("union", reward=True).model.reward.features == REWARD.features

"""Users followed for the page: compared with the selector, with plain sums, and with the data."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort
from kerneltrail.gp import Posterior
from kerneltrail.gp.population import PopulationMean
from kerneltrail.report.explanation import best_description
from kerneltrail.report.model_page import follow_users
from kerneltrail.trajectory.fit import fit
from trajectory.small import rewarded_model, rows, small_model
from trajectory.tiny import POOL, pilots, settings
from trajectory.tiny import model as tiny_model


@pytest.fixture(scope="module")
def rewarded():
    model = rewarded_model()
    return model, follow_users(model, [rows("pilot 2", seed=2), rows("new", seed=9)])


def test_somebody_else_of_a_pilot_users_name_is_new():
    """By the rows as the fit saw them, whatever the order column was made of; older models do not know their rows."""
    cohort = Cohort.from_users(pilots(), target="y", scaling="group")
    model = fit(cohort, settings=settings(sweeps=8), pool=POOL, workers=1)
    same, other = cohort.raw[0], cohort.raw[0].with_y(cohort.raw[0].y + 1.0)
    assert [one.pilot for one in follow_users(model, [same, other])] == [True, False]
    assert follow_users(model, [replace(same, order=np.arange(same.rows))])[0].pilot
    older = replace(model, provenance={})
    assert [one.pilot for one in follow_users(older, [same, other])] == [True, True]


def test_a_pilot_user_is_known_by_name_and_batches_and_walks_the_learnt_path(rewarded):
    model, (pilot, new) = rewarded
    assert (pilot.pilot, new.pilot) == (True, False)
    assert [step.composition for step in pilot.steps] == list(dict(model.table())["pilot 2"])
    (other,) = follow_users(model, [rows("pilot 2", n=16, seed=2)])
    assert not other.pilot


def test_a_new_user_is_what_the_selector_says(rewarded):
    model, (_, new) = rewarded
    state = model.new_user("new")
    for t, step in enumerate(new.steps, start=1):
        batch, seen = new.user.batch(t), new.user.upto(t)
        ahead = state.predict(batch.X, action=batch.action)
        assert np.array_equal(new.ahead[t - 1].mean, ahead.mean)
        assert np.allclose(new.ahead[t - 1].prediction.total, ahead.total)
        low, high = ahead.interval(0.9)
        assert np.array_equal(new.ahead[t - 1].inside(0.9), (low <= batch.y) & (batch.y <= high))
        state.update(batch.X, batch.y, action=batch.action)
        fit = state.predict(seen.X, action=seen.action)
        assert step.composition == state.composition
        assert np.array_equal(step.fit.mean, fit.mean)
        assert np.array_equal(step.fit.total, fit.interval(0.9))
        assert step.probabilities == pytest.approx([state.probabilities[node.composition] for node in model.nodes])
        assert new.sure[t - 1] == max(step.probabilities)
        for found, wanted in zip(step.findings.effects, state.effects(), strict=True):
            assert found.covariate == wanted.covariate
            assert np.array_equal(found.curve.mean, wanted.curve.mean)
        assert step.findings.treatment.average.mean == pytest.approx(state.treatment().average.mean)
        assert step.lead == best_description(state)
    assert new.findings is new.steps[-1].findings


@pytest.mark.parametrize("around", [False, True], ids=["zero", "a population mean"])
def test_the_parts_are_those_of_the_posterior_in_data_units(rewarded, around):
    model = rewarded[0]
    if around:
        scaled = [model.scaler.apply(rows(f"pilot {i}", seed=i)) for i in range(3)]
        model = replace(model, mean=PopulationMean.train(scaled, model.reward))
    (one,) = follow_users(model, [rows("pilot 0", seed=0)])
    step, scaler = one.steps[-1], model.scaler
    user = scaler.apply(one.user)
    centred = user if model.mean is None else model.mean.centred(user)
    state = model.new_user("pilot 0", selection="filter")
    for t in range(1, one.user.batches + 1):
        batch = one.user.batch(t)
        state.update(batch.X, batch.y, action=batch.action)
    hyper = state.node_posterior(step.composition).fit.hyperparameters
    block = model.reward.block(user.X, model.covariates, user.action)
    posterior = Posterior.fit(centred, hyper, block=block)
    here = posterior.components(user.X, linear=block.features)
    rest = centred.y - sum(part.mean for part in here)
    whole = sum(part.mean for part in here) + (user.y - centred.y)
    assert np.allclose(step.fit.mean, scaler.inverse_target(whole))
    parts = step.parts
    assert {part.title for part in parts} == {str(product) for product in step.composition}
    for part in parts:
        own = next(p for p in here if str(p.product) == part.title)
        assert np.allclose(part.y, scaler.scale * (own.mean + rest))
        assert np.array_equal(part.x, one.user.X[:, one.user.column_index(part.covariate)])
        assert part.share == pytest.approx(posterior.shares()[own.product])
    assert [part.share for part in parts] == sorted((part.share for part in parts), reverse=True)


def test_one_covariate_is_the_axis_and_greedy_selection_works_too():
    model = tiny_model()
    greedy = replace(model, settings=replace(model.settings, selection="greedy"))
    for own in (model, greedy):
        for one in follow_users(own, [pilots()[0].with_name("someone"), *pilots()[:1]]):
            assert not one.by_row
            last = one.steps[-1].fit
            assert last.x.min() < one.user.X.min() < one.user.X.max() < last.x.max()


def test_of_users_beyond_those_detailed_predictions_and_what_was_found_last_are_kept(rewarded):
    model = rewarded[0]
    told = []
    one, two = follow_users(model, [rows("a", seed=1), rows("b", seed=2)], detailed=1, progress=told.append)
    assert [now.done for now in told] == [1, 2, 3, 4, 5, 6]
    assert {now.total for now in told} == {6}
    assert [now.said for now in told][2:4] == ["a, batch 3 of 3", "b, batch 1 of 3"]
    assert (len(one.steps), len(two.steps)) == (3, 0)
    assert len(two.ahead) == len(two.sure) == 3
    assert two.findings.effects.rows == two.findings.treatment.rows == 12


def test_the_fit_of_a_centred_action_knows_its_probability_and_who_was_available():
    """Where nobody could act, and with whatever probability somebody did, the fit is what the user's state predicts."""
    model = rewarded_model()
    model = replace(model, reward=replace(model.reward, typical=0.4))
    rng, plain = np.random.default_rng(0), rows("new", seed=9)
    could = np.array([1.0, 0.0] * 6)
    user = replace(plain, action=plain.action * could, availability=could, probability=rng.uniform(0.2, 0.8, 12))
    (one,) = follow_users(model, [user])
    state = model.new_user("new")
    for t in (1, 2, 3):
        state.update(user.batch(t).X, user.batch(t).y, action=user.batch(t).assignment)
    wanted = state.predict(user.X, action=user.assignment).mean
    assert np.allclose(one.steps[-1].fit.mean, wanted)
    assert not np.allclose(wanted, state.predict(user.X, action=user.action).mean, atol=1e-3)


def test_simple_rules_stand_beside_every_batch_but_the_first():
    scaled = [small_model().scaler.apply(rows(f"pilot {i}", seed=i)) for i in range(3)]
    model = replace(small_model(), mean=PopulationMean.train(scaled, None))
    (one,) = follow_users(model, [rows("new", seed=4)])
    assert [sorted(ahead.simple) for ahead in one.ahead] == [[], *[["running mean", "what users share"]] * 2]
    seen, batch = one.user.upto(2), one.user.batch(3)
    shared = [model.scaler.inverse_target(model.mean.at(model.scaler.transform(u.X), None)) for u in (seen, batch)]
    assert one.ahead[2].simple["what users share"] == pytest.approx(shared[1] + np.mean(seen.y - shared[0]))
    assert sorted(follow_users(small_model(), [rows("new", seed=4)])[0].ahead[1].simple) == ["running mean"]


def test_small_models_without_rewards_and_with_scaled_targets():
    (one,) = follow_users(small_model(), [rows("new", seed=4)])
    assert one.by_row
    assert all(np.isfinite(step.fit.mean).all() and step.words for step in one.steps)

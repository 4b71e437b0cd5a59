"""Users followed for the page: compared with the selector, with plain sums, and with the data."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort
from kerneltrail.gp import Posterior
from kerneltrail.gp.population import PopulationMean
from kerneltrail.report.model_page import follow_users
from kerneltrail.report.model_page.calibration import calibration, coverages, pooled
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
        assert np.allclose(new.ahead[t - 1].sd ** 2, ahead.total)
        state.update(batch.X, batch.y, action=batch.action)
        fit = state.predict(seen.X, action=seen.action)
        assert step.composition == state.composition
        assert np.array_equal(step.fit.mean, fit.mean)
        assert step.probabilities == pytest.approx([state.probabilities[node.composition] for node in model.nodes])
        assert new.sure[t - 1] == max(step.probabilities)


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
    *parts, gain = step.parts
    assert {part.title for part in parts} == {str(product) for product in step.composition}
    for part in parts:
        own = next(p for p in here if str(p.product) == part.title)
        assert np.allclose(part.y, scaler.scale * (own.mean + rest))
        assert np.array_equal(part.x, one.user.X[:, one.user.column_index(part.covariate)])
        assert part.share == pytest.approx(posterior.shares()[own.product])
    assert [part.share for part in parts] == sorted((part.share for part in parts), reverse=True)
    at = np.tile(np.median(user.X, axis=0), (len(gain.curve.x), 1))
    at[:, 0] = scaler.transform(np.column_stack([gain.curve.x, np.zeros(len(gain.curve.x))]))[:, 0]
    mean, variance = posterior.advantage(at, model.reward)
    mean = mean if model.mean is None else mean + model.mean.advantage(at)
    assert np.allclose(gain.curve.mean, scaler.scale * mean)
    assert np.allclose(gain.curve.sd, scaler.scale * np.sqrt(variance))


def test_one_covariate_is_the_axis_and_greedy_selection_works_too():
    model = tiny_model()
    greedy = replace(model, settings=replace(model.settings, selection="greedy"))
    for own in (model, greedy):
        for one in follow_users(own, [pilots()[0].with_name("someone"), *pilots()[:1]]):
            assert not one.by_row
            last = one.steps[-1].fit
            assert last.x.min() < one.user.X.min() < one.user.X.max() < last.x.max()


def test_of_users_beyond_those_detailed_only_predictions_are_kept(rewarded):
    model = rewarded[0]
    told = []
    one, two = follow_users(model, [rows("a", seed=1), rows("b", seed=2)], detailed=1, progress=told.append)
    assert [now.done for now in told] == [1, 2, 3, 4, 5, 6]
    assert {now.total for now in told} == {6}
    assert [now.said for now in told][2:4] == ["a, batch 3 of 3", "b, batch 1 of 3"]
    assert (len(one.steps), len(two.steps)) == (3, 0)
    assert len(two.ahead) == len(two.sure) == 3


def test_coverage_is_counted_row_by_row(rewarded):
    model = rewarded[0]
    users = follow_users(model, [rows(f"u{i}", n=8 + 4 * (i % 2), seed=20 + i) for i in range(4)])
    found = coverages(users)
    assert [own.users for own in found] == [4, 4, 2]
    for t, own in enumerate(found):
        inside, errors, logs = [], [], []
        for one in users:
            if t < len(one.ahead):
                ahead = one.ahead[t]
                for mean, sd, y in zip(ahead.mean, ahead.sd, ahead.y, strict=True):
                    inside.append(mean - 1.6448536 * sd <= y <= mean + 1.6448536 * sd)
                    errors.append((y - mean) ** 2)
                    logs.append(-((y - mean) ** 2) / (2 * sd**2) - np.log(sd * np.sqrt(2 * np.pi)))
        assert own.rows == len(inside)
        assert own.ninety == pytest.approx(np.mean(inside))
        assert own.rmse == pytest.approx(np.sqrt(np.mean(errors)))
        assert own.log_density == pytest.approx(np.mean(logs))
    assert len(pooled(users)) == sum(own.rows for own in found[1:])


@pytest.mark.parametrize(("times", "said"), [(0.3, "too wide"), (1.0, "about what they promise"), (3.0, "too narrow")])
def test_the_verdict_on_intervals(rewarded, times, said):
    # 400 standard normal errors: outside of the margin of ±3 % with probability 0.05, so the seed is fixed.
    one = rewarded[1][1]
    errors = times * np.random.default_rng(0).standard_normal(400)
    ahead = replace(one.ahead[0], mean=np.zeros(400), sd=np.ones(400), y=errors)
    section = calibration([replace(one, ahead=(one.ahead[0], ahead), sure=(1.0, 1.0))])
    assert said in section.blocks[0].text


def test_small_models_without_rewards_and_with_scaled_targets():
    (one,) = follow_users(small_model(), [rows("new", seed=4)])
    assert one.by_row
    assert all(np.isfinite(step.fit.mean).all() and step.words for step in one.steps)

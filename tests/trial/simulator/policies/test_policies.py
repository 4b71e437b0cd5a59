"""Policies that are compared: against dense formulas, within limits, and open to others."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import ndtr

from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import KerneltrailError
from kerneltrail.plugins import register, registry_of
from kerneltrail.trial.simulator.policies import POLICIES, Asked, Book, Setting, TrialPolicy
from kerneltrail.trial.simulator.policies.pooling import STEPS, IntelligentPooling
from kerneltrail.trial.simulator.policies.regression import BASELINE, NUISANCE

from ..made import design, stress, study

LEARNING = ("heartsteps", "intelligent-pooling", "oralytics", "miwaves")


def setting(people=3, days=6):
    return study().setting(design(people, days), 0)[0]


def books(known: Setting, seed=0, rows=20):
    rng = np.random.default_rng(seed)
    points = known.calendar.days * known.calendar.a_day
    listed = {}
    for name in known.people:
        book = Book.empty(points, 3, known.calendar.a_day)
        book.rows[:rows] = np.column_stack(
            [rng.uniform(8, 21, rows), rng.uniform(0, 7, rows), rng.uniform(0, 20, rows)]
        )
        book.available[:rows] = rng.random(rows) < 0.8
        book.probability[:rows] = rng.uniform(0.2, 0.8, rows) * book.available[:rows]
        book.action[:rows] = rng.random(rows) < book.probability[:rows]
        book.outcome[:rows] = rng.normal(3, 1, rows) + 0.8 * book.action[:rows]
        book.outcome[rng.integers(0, rows, 3)] = np.nan
        listed[name] = book
    return listed


def asked(known, name, steps=3.0, effect=0.1):
    return Asked(name, 20, known.calendar.slots()[20], np.array([12.5, steps, 10.0]), True, effect)


def night(known, day=0, hour=3):
    """The time of an update in the night to a day of the trial, and on it."""
    return known.calendar.start + timedelta(days=day, hours=hour)


def designed(known, book):
    """[1, z, π·φ, (a - π)·φ] and outcomes, row by row."""
    model, rows, targets = known.model, [], []
    for i in range(len(book.outcome)):
        if np.isnan(book.outcome[i]):
            continue
        z = model.scaler.transform(book.rows[i : i + 1])
        phi = np.array([1.0, z[0, 1]])
        could, p, a = book.available[i], book.probability[i], book.action[i]
        rows.append(np.concatenate([[1.0], z[0], could * p * phi, could * (a - p) * phi]))
        nobody = Assignment(np.zeros(1), np.zeros(1), np.zeros(1))
        mean = 0.0 if model.mean is None else model.mean.at(z, nobody)[0]
        targets.append(model.scaler.transform_target([book.outcome[i]])[0] - mean)
    return np.array(rows), np.array(targets)


def prior(known):
    model = known.model
    spread = model.reward.weight_covariance[model.reward.advantage, model.reward.advantage]
    effect = model.mean.weights[4:6] if model.mean is not None else np.zeros(2)
    constant = model.reward.weight_variances[0]
    covariance = np.zeros((8, 8))
    covariance[:4, :4] = np.diag([constant, BASELINE, BASELINE, BASELINE])
    covariance[4:6, 4:6], covariance[6:, 6:] = NUISANCE * spread, spread
    return np.concatenate([np.zeros(4), effect, effect]), covariance


def conditioned(mean, covariance, design, target, noise):
    """The posterior by conditioning the joint Normal, with a matrix of all rows."""
    between = design @ covariance @ design.T + noise * np.eye(len(target))
    gain = covariance @ design.T @ np.linalg.inv(between)
    return mean + gain @ (target - design @ mean), covariance - gain @ design @ covariance


def chance(known, mean, covariance, steps=3.0):
    z = known.model.scaler.transform([[12.5, steps, 10.0]])
    phi = np.array([1.0, z[0, 1]])
    return ndtr(phi @ mean / np.sqrt(phi @ covariance @ phi))


def noise_of(known):
    return (known.protocol.allocation.noise_sd / known.model.scaler.scale) ** 2


@pytest.mark.parametrize("name", [*LEARNING, "oracle"])
def test_where_a_lower_outcome_is_better_policies_act_where_it_falls(name):
    mood = setting()
    lower = stress().setting(design(3, 6), 0)[0]
    rows = books(mood)
    for book in rows.values():
        book.outcome -= 2.0 * book.action  # acting lowers it
    chances = []
    for known in (mood, lower):
        policy = POLICIES[name](known)
        policy.update(night(known, day=6), rows)  # when those that learn once a week do
        chances.append(policy.probability(asked(known, known.people[0], effect=-1.0)))
    assert chances[0] < 0.4
    assert chances[1] > 0.6
    if name in ("heartsteps", "intelligent-pooling", "oracle"):
        assert sum(chances) == pytest.approx(1.0, abs=1e-9)


def test_linear_thompson_sampling_is_the_conditioned_normal():
    known = setting()
    policy, rows = POLICIES["heartsteps"](known), books(known)
    policy.update(night(known), rows)
    for name in known.people:
        mean, covariance = conditioned(*prior(known), *designed(known, rows[name]), noise_of(known))
        expected = np.clip(chance(known, mean[6:], covariance[6:, 6:]), 0.2, 0.8)
        assert policy.probability(asked(known, name)) == pytest.approx(expected, abs=1e-9)


def test_intelligent_pooling_is_the_conditioned_normal_of_everybody_persons_and_days():
    known = setting()
    policy, rows = IntelligentPooling(known), books(known)
    policy.update(night(known), rows)
    mean, covariance = prior(known)
    part = [0, 6, 7]
    between = covariance[np.ix_(part, part)]
    parts, targets, whose, when = [], [], [], []
    for number, name in enumerate(known.people):
        features, target = designed(known, rows[name])
        parts.append(features)
        targets.append(target)
        whose += [number] * len(target)
        when += (np.flatnonzero(~np.isnan(rows[name].outcome)) // known.calendar.a_day).tolist()
    features, target = np.vstack(parts), np.concatenate(targets)
    whose, when = np.array(whose), np.array(when)
    random = features[:, part]
    likeness = random @ between @ random.T
    total = features @ covariance @ features.T + noise_of(known) * np.eye(len(target))
    total += likeness * (whose[:, None] == whose) + 0.05 * likeness * (when[:, None] == when)
    weights = np.linalg.solve(total, target - features @ mean)
    for number, name in enumerate(known.people):
        z = known.model.scaler.transform([[12.5, 3.0, 10.0]])
        phi = np.array([1.0, z[0, 1]])
        common = phi @ covariance[6:, :] @ features.T + (phi @ between[1:, :] @ random.T) * (whose == number)
        centre = phi @ mean[6:] + common @ weights
        # Everybody's weights, the person's, and a day of which nothing is known yet.
        spread = phi @ covariance[6:, 6:] @ phi + phi @ between[1:, 1:] @ phi * 1.05
        variance = spread - common @ np.linalg.solve(total, common)
        expected = np.clip(ndtr(centre / np.sqrt(variance)), 0.2, 0.8)
        assert policy.probability(asked(known, name)) == pytest.approx(expected, abs=1e-8)


def test_empirical_bayes_moves_how_much_people_differ():
    known = setting()
    policy, rows = IntelligentPooling(known), books(known)
    before = policy._between.copy()
    for day in range(7):
        policy.update(night(known, day), rows)
    assert not np.allclose(policy._between, before)
    assert np.linalg.eigvalsh(policy._between).min() > 0


@pytest.mark.parametrize("name", LEARNING)
def test_probabilities_lie_within_the_limits_and_rise_with_the_effect(name):
    known = setting()
    policy = POLICIES[name](known)
    rows = books(known)
    for book in rows.values():
        book.outcome[:20] += 5.0 * (book.action[:20] - book.probability[:20])
    low = policy.probability(asked(known, known.people[0]))
    for day in range(7):
        policy.update(night(known, day), rows)
    high = policy.probability(asked(known, known.people[0]))
    assert 0.2 <= low < high <= 0.8


def test_policies_that_pool_answer_alike_for_everybody_and_wait_for_their_week():
    known = setting()
    policy, rows = POLICIES["oralytics"](known), books(known)
    before = policy.probability(asked(known, known.people[0]))
    for day in range(6):
        policy.update(night(known, day), rows)
    assert policy.probability(asked(known, known.people[0])) == before
    policy.update(night(known, 6), rows)
    answers = {policy.probability(asked(known, name)) for name in known.people}
    assert len(answers) == 1
    assert answers != {before}


@pytest.mark.parametrize("step", [7, 1, 0.25], ids=["weekly", "daily", "often"])
def test_what_is_learnt_weekly_is_learnt_once_a_week_whenever_the_trial_updates(step, monkeypatch):
    known = setting(days=42)
    rows, learnt, improved = books(known), [], []
    policy, pooling = POLICIES["oralytics"](known), IntelligentPooling(known)
    monkeypatch.setattr(policy, "learn", lambda _: learnt.append(policy.today))
    monkeypatch.setattr(pooling, "_improve", lambda *_: improved.append(pooling.today))
    for day in np.arange(0, 42, step).tolist():
        policy.update(night(known, day), rows)
        pooling.update(night(known, day), rows)
    for days in (learnt, improved[::STEPS]):
        assert len(days) in (5, 6)
        assert {(later - earlier).days for earlier, later in pairwise(days)} == {7}


def test_simple_policies():
    known = setting()
    whom = asked(known, known.people[0])
    answers = {name: POLICIES[name](known).probability(whom) for name in ("fixed", "never", "always", "oracle")}
    assert answers == {"fixed": 0.5, "never": 0.0, "always": 1.0, "oracle": 0.8}
    assert POLICIES["oracle"](known).probability(asked(known, known.people[0], effect=-0.1)) == 0.2


@dataclass
class Evening(TrialPolicy):
    name: ClassVar[str] = "evening"

    def probability(self, asked):
        return 0.7 if asked.slot.at.hour >= 17 else 0.3


def test_a_policy_from_outside_is_compared_like_a_built_in_one():
    with registry_of("policy").temporarily("evening", Evening):
        values = study().measure(design(), "evening", 0)
    assert 0.3 < values["probability"] < 0.7
    with pytest.raises(KerneltrailError, match="cannot be registered"):
        register("policy", "mine", len)

"""Rows at which nobody could act speak of the baseline alone, whichever method reads them."""

from functools import cache

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Reward
from kerneltrail.methods import build

from .common import OPTIONS, POOL, REWARDED

COVARIATES = ("hour", "steps")


def person(name, seed, n=60):
    """Acting adds 2 where it could be done, and nothing at the rows where an action is noted all the same."""
    rng = np.random.default_rng([11, seed])
    X = np.column_stack([rng.uniform(6.0, 22.0, n), rng.uniform(0.0, 500.0, n)])
    could = (rng.uniform(size=n) < 0.5).astype(float)
    action = rng.integers(0, 2, n).astype(float)
    y = np.sin(X[:, 0] / 3.0) + 2.0 * action * could + 0.2 * rng.normal(size=n)
    return User(name, COVARIATES, X, y, (n // 2, n), action=action, availability=could)


@cache
def learnt(name):
    cohort = Cohort.from_users([person(f"p{m}", m) for m in range(5)], scaling="group", target_scaling="standard")
    given = {"pool": POOL, "reward": Reward((), coding="plain"), **OPTIONS.get(name, {})}
    return build(name, cohort, given)


def effect(user):
    X = [[12.0, 100.0]]
    return float(user.predict(X, action=[1.0]).mean[0] - user.predict(X, action=[0.0]).mean[0])


@pytest.mark.parametrize("name", REWARDED)
def test_what_acting_adds_is_learnt_from_rows_at_which_it_could_be_done(name):
    method = learnt(name)
    new = person("new", 99)
    user = method("new")
    user.update(new.X, new.y, action=new.assignment)
    assert effect(user) == pytest.approx(2.0, abs=0.5)
    restored = method.load(method.save(user))
    assert effect(restored) == effect(user)


@pytest.mark.parametrize("name", ["lmm", "hgp", "pooled"])
def test_availability_may_be_given_with_some_batches_and_not_with_others(name):
    method, new = learnt(name), person("new", 98, 20)
    user, other = method("new"), method("new")
    for each, available in ((user, None), (other, np.ones(20))):
        each.update(new.X, new.y, action=new.action * new.availability, available=available)
        each.update(new.X, new.y, action=new.action, available=new.availability)
    assert effect(user) == effect(other)


def test_a_file_without_availability_still_loads():
    method, new = learnt("lmm"), person("new", 97, 20)
    user = method("new")
    user.update(new.X, new.y, action=new.action)
    content = method.save(user).decode()
    older = content.replace(f', "availability": {[1.0] * 20}', "").replace(', "probability": null', "")
    assert "availability" not in older
    again = method.load(older.encode())
    again.update(new.X, new.y, action=Assignment(new.action, None, new.availability))
    user.update(new.X, new.y, action=Assignment(new.action, None, new.availability))
    assert effect(again) == effect(user)

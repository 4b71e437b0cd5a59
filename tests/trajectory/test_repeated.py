"""Batches that an app sends twice are told of, whatever the model does with outcomes; rows alike by nature are not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.gp.student import Drawing

from .small import mean_model, rewarded_model, rows, small_model
from .test_intake import learnt, person

TWICE = "user 'ann': the {} rows of this batch are the same as the newest rows"


def sent(user, rows):
    user.update(rows.X, rows.y, action=rows.action)
    return user


def models():
    drawing = [replace(make(), drawing=Drawing(4.0)) for make in (small_model, learnt)]
    return [small_model(), rewarded_model(), mean_model(), learnt(), *drawing]


@pytest.mark.parametrize("model", models())
@pytest.mark.parametrize("batches", [1, 2])
def test_a_batch_sent_twice_is_taken_with_a_warning(model, batches):
    """Levels that are learnt as rows come, population means and outcomes drawn in do not hide it."""
    ann = rows("ann", 8) if len(model.covariates) == 2 else person(50, 0.4, rows=8).with_name("ann")
    ann = ann.with_ends((3, 8))
    user = model.new_user("ann")
    for t in range(1, batches + 1):
        sent(user, ann.batch(t))
    newest = ann.batch(batches)
    with pytest.warns(UserWarning, match=TWICE.format(newest.rows)):
        sent(user, newest)
    assert user.rows == ann.ends[batches - 1] + newest.rows


def test_it_is_seen_past_the_rows_that_are_kept_and_beyond_those_known():
    model, ann = small_model(), rows("ann", 260, size=30)
    user = model.new_user("ann", refine=10)
    sent(user, ann)
    assert user.state.kept is None
    with pytest.warns(UserWarning, match=TWICE.format(260)):
        sent(user, ann)


@pytest.mark.parametrize("column", ["X", "y", "action"])
def test_rows_that_differ_in_anything_are_others(column):
    model, ann = rewarded_model(), rows("ann", 6, size=6)
    user, other = sent(model.new_user("ann"), ann), np.array(getattr(ann, column))
    other[-1] = 1.0 - other[-1] if column == "action" else 0.9 * other[-1]
    sent(user, replace(ann, **{column: other}))
    assert user.rows == 12


def days(outcomes, hours=(8.0, 14.0, 20.0)):
    """A user who is asked at the same hours of every day, a batch a day, with nothing else that changes."""
    X = np.array([[hour, 100.0] for _ in outcomes for hour in hours])
    y = np.ravel(np.broadcast_to(np.array(outcomes, dtype=float).reshape(len(outcomes), -1), (len(outcomes), 3)))
    return User("ann", ("hour", "steps"), X, y, np.arange(1, len(outcomes) + 1) * len(hours))


def followed(user):
    ann = small_model().new_user("ann")
    for t in range(1, user.batches + 1):
        sent(ann, user.batch(t))
    return ann


def test_two_rows_or_days_alike_by_nature_say_nothing():
    few, ann = small_model().new_user("ann"), rows("ann", 2, size=2)
    sent(sent(few, ann), ann)
    assert followed(days([3.0] * 10)).rows == 30  # the same rating at every hour of every day
    assert followed(days([[1.0, 2.0, 3.0]] + [[3.0, 3.0, 4.0]] * 9)).rows == 30


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2, 0.5])
def test_days_of_yes_and_no_are_seldom_taken_for_batches_sent_twice(share):
    """Of 40 users with 20 days each at most two are warned of (fixed seed): 1 in 1,000 of 760 days would be 0.8."""
    warned = 0
    for seed in range(40):
        rng = np.random.default_rng([int(100 * share), seed])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            followed(days((rng.random((20, 3)) < share).astype(float)))
        warned += any("are the same as the newest rows" in str(each.message) for each in said)
    assert warned <= 2


def test_a_steady_day_sent_twice_is_told_of_where_an_outcome_is_rare():
    ordinary = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]] * 10
    odd = [0.11, 7.25, 3.5]
    with pytest.warns(UserWarning, match=TWICE.format(3)):
        followed(days([*ordinary, odd, odd]))


def test_outcomes_that_are_not_kept_as_they_were_are_not_compared():
    model, ann = replace(small_model(), drawing=Drawing(4.0)), rows("ann", 12, size=12)
    user = sent(model.new_user("ann", refine=5), ann)
    assert user.state.outcomes is None
    sent(user, ann)
    assert user.rows == 24

"""Batches that an app sends twice are told of, whatever the model does with outcomes; rows alike by nature are not."""

from dataclasses import replace

import numpy as np
import pytest

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
    with pytest.warns(UserWarning, match=TWICE.format(newest.rows)):
        sent(user, newest)  # for the third time


def test_it_is_seen_past_the_rows_that_are_kept_and_beyond_those_known():
    model, ann = small_model(), rows("ann", 260, size=30)
    user = model.new_user("ann", refine=10)
    sent(user, ann)
    assert user.state.kept is None
    for again in (ann, ann.newest(4)):
        with pytest.warns(UserWarning, match=TWICE.format(again.rows)):
            sent(user, again)


@pytest.mark.parametrize("column", ["X", "y", "action"])
def test_rows_that_differ_in_anything_are_others(column):
    model, ann = rewarded_model(), rows("ann", 6, size=6)
    user, other = sent(model.new_user("ann"), ann), np.array(getattr(ann, column))
    other[-1] = 1.0 - other[-1]
    sent(user, replace(ann, **{column: other}))
    assert user.rows == 12


def test_two_rows_or_rows_alike_by_nature_say_nothing():
    model, ann = small_model(), rows("ann", 3, size=3)
    few = sent(model.new_user("ann"), ann.newest(2))
    sent(few, ann.newest(2))
    still = replace(ann, X=np.tile(ann.X[:1], (3, 1)), y=np.ones(3))
    sent(sent(model.new_user("ann"), still), still)
    # The same hours every day: once an outcome was another at one of them, equal days are no wonder.
    user = sent(model.new_user("ann"), ann.with_y([3.0, 3.0, 4.0]))
    for _ in range(2):
        sent(user, ann.with_y([3.0, 3.0, 3.0]))
    assert user.rows == 9


def test_outcomes_that_are_not_kept_as_they_were_are_not_compared():
    model, ann = replace(small_model(), drawing=Drawing(4.0)), rows("ann", 12, size=12)
    user = sent(model.new_user("ann", refine=5), ann)
    assert user.state.outcomes is None
    sent(user, ann)
    assert user.rows == 24

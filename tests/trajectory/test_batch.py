"""Batches as callers hand them over: what was assigned is read as from a table, and what is odd is said by name."""

import re
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from support.identical import difference

from .small import rows, small_model

IDLE = [3, 7]
"""Rows at which nobody could act."""


def drawn_model(typical=0.4):
    """Whose rows say whether somebody could act, and how probable the action was."""
    model = small_model(reward=Reward(("hour",), typical=typical))
    return replace(model, schema=replace(model.schema, action="sent", probability="p_sent", availability="free"))


def frame(**changes):
    """Ann's rows as columns; `changes` are (row, value) pairs by column."""
    person = rows("ann", seed=9)
    columns = dict(zip(person.covariates, person.X.T, strict=True))
    columns |= {"mood": person.y, "sent": person.action, "p_sent": np.full(12, 0.4), "free": np.ones(12)}
    columns = {name: values.tolist() for name, values in columns.items()}
    for name, pairs in changes.items():
        for row, value in pairs:
            columns[name][row] = value
    return columns


def idle(value):
    """Ann's rows, with the same value for the action and its probability where nobody could act."""
    told = {name: [(row, value) for row in IDLE] for name in ("sent", "p_sent")}
    return frame(free=[(row, 0) for row in IDLE], **told)


@pytest.mark.parametrize("empty", [None, np.nan])
def test_where_nobody_could_act_neither_action_nor_probability_need_be_there(empty):
    model, users = drawn_model(), []
    for batch in (idle(empty), idle(0)):
        user = model.new_user("ann")
        user.update(batch)
        users.append((user, replace(user.predict(batch), given=None)))
    assert difference(*users) is None


def test_arrays_may_leave_out_what_was_never_drawn_as_frames_may():
    model, person = drawn_model(), rows("ann", seed=9)
    by_name, by_order = model.new_user("ann"), model.new_user("ann")
    by_name.update(idle(0))
    action, probability, available = (np.array(idle(np.nan)[name]) for name in ("sent", "p_sent", "free"))
    by_order.update(person.X, person.y, action=action, probability=probability, available=available)
    assert difference(by_name, by_order) is None


def test_many_users_rows_may_leave_it_out_too():
    model = drawn_model()
    users = {"ann": model.new_user("ann")}
    assert not model.update_many(users, idle(None) | {model.schema.user: ["ann"] * 12}).failures
    assert users["ann"].rows == 12


@pytest.mark.parametrize("column", ["sent", "p_sent"])
def test_where_somebody_could_act_both_have_to_be_there(column):
    user = drawn_model().new_user("ann")
    with pytest.raises(DataError, match=f"column '{column}' is missing in row 6, and in 1 of 12 rows"):
        user.update(frame(**{column: [(5, None)]}))
    assert user.rows == 0


@pytest.mark.parametrize(("typical", "said"), [(0.5321989528795811, "0.53"), (0.9961989, "0.9962"), (0.4, "0.4")])
def test_a_usual_probability_is_said_in_the_digits_that_tell_it_from_0_and_1(typical, said):
    columns = frame()
    del columns["p_sent"]
    with pytest.warns(UserWarning, match=f"its usual probability, {re.escape(said)}; give the column"):
        drawn_model(typical).new_user("ann").update(columns)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"free": [(2, 0)], "sent": [(2, 1)]}, "action 1 although the user was not available, in row 3; nothing"),
        ({"p_sent": [(4, 1)], "sent": [(4, 0)]}, "action 0 although that is 1, in row 5; the probability has to be"),
        (
            {"p_sent": [(4, 1), (6, 0)], "sent": [(4, 0), (6, 1)]},
            "its probability is 0, or action 0 although that is 1, in row 5, and in 2 of 12 rows altogether;",
        ),
    ],
)
def test_what_contradicts_itself_is_taken_with_a_warning(changes, said):
    model, columns = drawn_model(), frame(**changes)
    user = model.new_user("ann")
    with pytest.warns(UserWarning, match=f"user 'ann': .*{said}"):
        user.update(columns)
    assert user.rows == 12
    person = rows("ann", seed=9)
    given = {"action": columns["sent"], "probability": columns["p_sent"], "available": columns["free"]}
    with pytest.warns(UserWarning, match=said):
        model.new_user("ann").update(person.X, person.y, **given)
    # Who hands over an assignment has read it from a table, which tells of it in its report.
    model.new_user("ann").update(person.X, person.y, action=Assignment.read(*given.values()))


def test_an_action_that_was_certain_and_came_is_no_contradiction():
    drawn_model().new_user("ann").update(frame(p_sent=[(4, 1), (6, 0)], sent=[(4, 1), (6, 0)]))


def test_a_contradiction_is_found_where_it_stands_in_the_table():
    model, users = drawn_model(), {}
    table = {name: values * 2 for name, values in frame(free=[(2, 0)], sent=[(2, 1)]).items()}
    table["free"][2] = 1
    table[model.schema.user] = ["bob"] * 12 + ["ann"] * 12
    users = {name: model.new_user(name) for name in ("ann", "bob")}
    with pytest.warns(UserWarning, match="user 'ann': action 1 although the user was not available, in row 15;"):
        model.update_many(users, table)


def test_an_assignment_beside_a_frame_says_all_there_is_to_say():
    columns = idle(0)
    whole = Assignment.read(columns["sent"], columns["p_sent"], columns["free"])
    users = [drawn_model().new_user("ann") for _ in range(2)]
    users[0].update(columns)
    users[1].update({name: columns[name] for name in ("hour", "steps", "mood")}, action=whole)  # warns of no lack
    assert difference(*users) is None


@pytest.mark.parametrize("typical", [0.0, 1.0])
def test_a_probability_that_nobody_logged_contradicts_nothing(typical):
    """Pilot users' was always 0 or 1; what this batch has is not known."""
    columns = frame(sent=[(0, 0), (1, 1)])
    del columns["p_sent"]
    with pytest.warns(UserWarning, match="user 'ann'") as caught:
        drawn_model(typical).new_user("ann").update(columns)
    assert [str(each.message) for each in caught] == [
        f"user 'ann': the rows have no column 'p_sent', with which the model was learnt, so the action is taken to "
        f"have its usual probability, {typical:g}; give the column, or probability="
    ]


def test_one_row_may_come_as_numbers_without_brackets():
    model, person = drawn_model(), rows("ann", 1, seed=9)
    one, other = model.new_user("ann"), model.new_user("ann")
    one.update(person.X[0], float(person.y[0]), action=1, probability=0.4, available=1)
    other.update(person.X, person.y, action=[1], probability=[0.4], available=[1])
    assert difference(one, other) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"action": [0, 1, 2]}, "user 'ann': action must be 0 or 1, is 2 in row 3 of 3"),
        ({"action": [0, np.nan, 1]}, "user 'ann': action must be 0 or 1, is nan in row 2 of 3"),
        ({"action": [0, 1, 1], "probability": [0.5, 7, 0.5]}, r"user 'ann': probability must lie in \[0, 1\], is 7 in"),
    ],
)
def test_predictions_refuse_what_updates_refuse_in_the_same_words(given, said):
    user, person = drawn_model().new_user("ann"), rows("ann", 3, seed=9)
    for ask in (
        lambda **given: user.predict(person.X, **given),
        lambda **given: user.update(person.X, person.y, **given),
    ):
        with pytest.raises(DataError, match=said):
            ask(**given)


def test_a_prediction_needs_an_action_for_every_row():
    with pytest.raises(DataError, match="user 'ann': a prediction needs one action for each of 3 rows"):
        drawn_model().new_user("ann").predict(rows("ann", 3, seed=9).X, action=[0, 1])


def test_predictions_refuse_somebody_elses_rows_as_updates_do():
    model, columns = drawn_model(), frame()
    hers, theirs = columns | {"user": ["ann"] * 12}, columns | {"user": ["ann"] * 11 + ["bob"]}
    bob = model.new_user("bob")
    for ask in (bob.predict, bob.update):
        with pytest.raises(DataError, match="user 'bob': row 1 is ann's, by its column 'user'"):
            ask(hers)
    with pytest.raises(DataError, match=r"are of several users.*; a prediction takes one user.s$"):
        bob.predict(theirs)
    # Of somebody unknown the same is said whoever the rows are of, and who has no name takes that of the rows.
    nobody = model.new_user()
    assert np.array_equal(nobody.predict(theirs).mean, nobody.predict(hers).mean)
    nobody.update(columns)
    assert np.array_equal(nobody.predict(hers).mean, nobody.predict(columns).mean)
    with pytest.raises(DataError, match="are of several users"):
        nobody.predict(theirs)


@pytest.mark.parametrize("outcomes", [[1.0, 2.0], np.ones((12, 2)), 1.0])
def test_too_few_outcomes_are_what_is_blamed(outcomes):
    person, user = rows("ann", seed=9), drawn_model().new_user("ann")
    with pytest.raises(DataError, match="user 'ann': an update needs one outcome for each of 12 rows, got "):
        user.update(person.X, outcomes, action=person.action)


def test_a_frame_without_the_column_of_availability_is_taken_with_a_warning():
    columns, user = frame(), drawn_model().new_user("ann")
    del columns["free"]
    with pytest.warns(UserWarning, match="user 'ann'") as caught:
        user.update(columns)
    assert [str(each.message) for each in caught] == [
        "user 'ann': the rows have no column 'free', with which the model was learnt, so the user is taken to have "
        "been available in all of them; give the column, or available="
    ]
    user.update(columns | {"mood": [4.0] * 12}, available=np.ones(12))
    user.predict(columns)  # which is asked of somebody available
    assert user.rows == 24


@pytest.mark.parametrize("column", ["sent", "p_sent"])
def test_where_nothing_was_drawn_the_missing_column_of_availability_is_named(column):
    columns = frame(**{column: [(5, None)]})
    del columns["free"]
    said = f"column '{column}' is missing in row 6, .*; leave those rows out, or give the column 'free'"
    with pytest.raises(DataError, match=said):
        drawn_model().new_user("ann").update(columns)


def test_a_misspelt_column_of_the_action_is_answered_with_the_nearest():
    columns = frame()
    columns["snet"] = columns.pop("sent")
    user = drawn_model().new_user("ann")
    for ask, what in ((user.update, "update"), (user.predict, "predict")):
        said = f"this model has a reward model, so {what} needs action=, or its column: .* has no column 'sent'; "
        with pytest.raises(DataError, match=f"^user 'ann': {said}did you mean 'snet'"):
            ask(columns)


def test_nobody_is_told_to_fill_in_outcomes():
    with pytest.raises(DataError, match=r"'mood' is missing in row 3, and in 1 of 12 rows .*; leave those rows out$"):
        drawn_model().new_user("ann").update(frame(mood=[(2, None)]))

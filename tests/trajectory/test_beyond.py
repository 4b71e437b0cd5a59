"""Values far outside the pilot users' are told by column, range and rows, once a batch; what is like theirs not."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kerneltrail.data.assignment import Assignment
from kerneltrail.data.checks import quantiles_of_columns
from kerneltrail.evaluation.follow import follow
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.trajectory.beyond import judged

from .small import rewarded_model, rows, small_model

RATING = OutcomeShape((1.5, 2.5, 3.5), (0.0,) * 4, (1.0, 2.0, 3.0, 4.0))
FLOOR = OutcomeShape((1.5, 2.5, 3.5), (0.0,) * 4, (1.0, None, None, None))


@cache
def model(shape=None):
    """Whose pilot users have hours of a day, steps from some 14 to 490, and outcomes from 1 to 4."""
    plain = small_model()
    pilots = [rows(f"pilot {i}", seed=i) for i in range(3)]
    pilots = [user.with_y(1.0 + np.arange(12.0) % 4.0) for user in pilots]
    columns = quantiles_of_columns(plain.schema, pilots)
    return replace(plain, shape=shape, provenance={**plain.provenance, "columns": columns})


def told(ask):
    """The messages of what is asked, without what all of them end with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [str(each.message).partition(". Is it the same unit")[0] for each in caught]


def batch(**changes):
    """Ann's rows as columns; `changes` are (row, value) pairs by column."""
    ann = rows("ann", seed=9)
    columns = {"hour": ann.X[:, 0].tolist(), "steps": ann.X[:, 1].tolist(), "mood": [2.0, 3.0] * 6}
    for name, pairs in changes.items():
        for row, value in pairs:
            columns[name][row] = value
    return columns


def test_one_impossible_value_is_told_with_both_ranges():
    columns = batch(steps=[(4, -999.0)])
    most = max(columns["steps"])
    low, high = model().pilot.range("steps")
    said = (
        f"user 'ann': 1 of 12 rows holds values far outside those of the pilot users: steps is from -999 to {most:.3g}"
    )
    said += f" (theirs from {low:.3g} to {high:.3g})"
    user = model().new_user("ann")
    assert told(lambda: user.update(columns)) == [said]
    assert user.rows == 12
    assert told(lambda: user.predict(columns)) == [said]


def test_columns_mixed_up_are_told_and_several_in_one_message_with_their_rows():
    X = np.column_stack([batch()["steps"], batch()["hour"]])  # an array in another order
    (said,) = told(lambda: model().new_user("ann").update(X, batch()["mood"]))
    assert "11 of 12 rows hold values far outside" in said
    assert "hour is from 2.81 to 494 hours (theirs from" in said
    assert "steps" not in said  # hours could be steps
    (said,) = told(lambda: model().new_user("ann").update(batch(hour=[(1, 25.0)], steps=[(1, -999.0), (3, 1e4)])))
    assert said.startswith("user 'ann': 2 of 12 rows hold")
    assert "hours, in 1 row (theirs from" in said
    assert " and steps is from -999 to 10000, in 2 rows (theirs from" in said


def test_a_change_of_unit_that_would_fit_is_suggested():
    columns = batch()
    columns["steps"] = [1000.0 * value for value in columns["steps"]]
    with pytest.warns(UserWarning, match=r"They would fit if these were in thousandths of the pilot users' unit\."):
        model().new_user("ann").update(columns)


@pytest.mark.parametrize("shape", [None, RATING, FLOOR])
def test_one_row_is_enough_to_tell_and_one_row_like_theirs_is_not_told(shape):
    user = model(shape).new_user("ann")
    assert told(lambda: user.update({"hour": 12.0, "steps": 100.0, "mood": 2.0})) == []
    (said,) = told(lambda: user.update({"hour": 440.0, "steps": 100.0, "mood": 2.0}))
    assert said.startswith(
        "user 'ann': 1 of 1 row holds values far outside those of the pilot users: hour is 440 hours"
    )


@pytest.mark.parametrize(
    ("shape", "outcome", "is_told"),
    [
        (RATING, 40.0, True),
        (RATING, -9.0, True),
        (RATING, 5.0, False),  # a value of the scale that no pilot user gave
        (RATING, 0.0, False),
        (FLOOR, -9.0, True),
        (FLOOR, 40.0, False),  # whose other end nobody knows
        (None, 40.0, False),
    ],
)
def test_outcomes_are_told_beyond_an_end_that_is_known(shape, outcome, is_told):
    user = model(shape).new_user("ann")
    said = told(lambda: user.update(batch(mood=[(7, outcome)])))
    low, high = min(outcome, 2.0), max(outcome, 3.0)
    message = f"user 'ann': 1 of 12 rows holds values far outside those of the pilot users: mood is from {low:g} to "
    assert said == ([f"{message}{high:g} (theirs from 1 to 4)"] if is_told else [])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1, 4, 12])
def test_rows_like_the_pilot_users_are_never_told(seed, size):
    person = rows("ann", seed=500 + seed, size=size)
    user = model(RATING).new_user("ann")
    for t in range(1, person.batches + 1):
        part = person.batch(t)
        assert told(lambda part=part: user.predict(part.X)) == []
        assert told(lambda part=part: user.update(part.X, np.clip(np.round(2.5 + part.y), 1.0, 4.0))) == []


def test_codes_of_levels_that_there_are_not_are_told():
    plain = small_model()
    schema = replace(plain.schema, levels={"hour": ("day", "night")})
    (said,) = told(lambda: replace(plain, schema=schema).new_user("ann").predict([[2.0, 100.0]]))
    assert said.endswith("hour is 2 hours (its levels are 0 to 1)")


def test_what_was_read_from_a_table_was_judged_with_it():
    rewarded, far = rewarded_model(), rows("ann", seed=9).X + 1000.0
    zeros = np.zeros(12)
    assert told(lambda: rewarded.new_user("ann").update(far, zeros, action=Assignment(zeros))) == []
    user = model().new_user("ann")
    with judged():
        assert told(lambda: user.update(far, zeros)) == []
    assert told(lambda: follow(TrajectoryMethod(model()), rows("ann", seed=9).with_X(far))) == []
    assert len(told(lambda: user.update(far, zeros + 1.0))) == 1


def test_a_model_that_keeps_no_ranges_tells_nothing():
    unscaled = small_model(scaling="none")
    assert told(lambda: unscaled.new_user("ann").update(batch(hour=[(0, 440.0)]))) == []


def test_a_warning_changes_no_number():
    loud, quiet = model().new_user("ann"), model().new_user("ann")
    columns = batch(steps=[(4, -999.0)])
    told(lambda: loud.update(columns))
    with judged():
        quiet.update(columns)
    assert loud.to_bytes() == quiet.to_bytes()

"""Rows that are not later than those before are told where they come with their times; times survive files."""

import copy
import json
import re
import warnings
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from kerneltrail.errors import DataError, ModelFileError
from kerneltrail.store.container import pack, unpack
from kerneltrail.trajectory.new_user import NewUser

from .small import rows, small_model

MODEL = small_model()
WHEN = MODEL.schema.order


def batch(times, seed=0):
    """As many of Ann's rows as there are times."""
    part = rows("ann", max(len(times), 1), seed=700 + seed).X[: len(times)]
    return {"hour": part[:, 0].tolist(), "steps": part[:, 1].tolist(), "mood": part[:, 0] * 0.1, WHEN: list(times)}


def at(*hours, day=3):
    return [f"2024-05-{day:02d} {hour:02d}:30:00" for hour in hours]


def followed(*batches, model=MODEL):
    """Ann after batches, and what was told of them."""
    user = model.new_user("ann")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed, times in enumerate(batches):
            user.update(batch(times, seed))
    return user, [str(each.message) for each in caught]


END = "; all are taken as further rows, and if some were sent before, intervals are too narrow now"


def test_older_rows_are_told_with_both_times_and_taken():
    user, told = followed(at(8, 12, 20), at(9, 20, 21), at(8))
    assert user.rows == 7
    assert told == [
        "user 'ann': 2 of 3 rows are not later than the newest row before, of 2024-05-03 20:30:00: order runs from "
        "2024-05-03 09:30:00 to 2024-05-03 21:30:00 in this batch" + END,
        "user 'ann': 1 of 1 row is not later than the newest row before, of 2024-05-03 21:30:00: order is 2024-05-03 "
        "08:30:00 in this batch" + END,
    ]


@pytest.mark.parametrize(
    "batches",
    [
        (at(8, 12), at(13, 14), at(8, day=4)),
        ([1, 2], [3], [4, 5]),
        ([0.5], [0.75, 1.0], [7]),
        ([datetime(2024, 5, 3, 8), datetime(2024, 5, 3, 9)], at(10)),
        (["2024-05-03", "2024-05-04"], ["2024-05-04"], ["2024-05-04", "2024-05-05"]),  # several rows a day
        ([1, 1, 2], [2, 2, 3]),  # rows share a time
        (at(8, day=4), [f"{time}+02:00" for time in at(11, day=4)]),
        (at(8, 12), at(15, 14)),  # a batch's own order is not looked at
    ],
)
def test_rows_that_are_later_are_not_told(batches):
    assert followed(*batches)[1] == []


@pytest.mark.parametrize(
    ("batches", "count"),
    [
        (([5, 6], [6, 7]), "1 of 2 rows is"),
        ((["2024-05-04"], ["2024-05-03"]), "1 of 1 row is"),
        (([2.5], [1, 2]), "2 of 2"),
    ],
)
def test_numbers_and_days_are_compared_too(batches, count):
    (said,) = followed(*batches)[1]
    assert said.startswith(f"user 'ann': {count}")


def test_rows_sent_twice_are_told_once_and_in_the_words_for_that():
    user = MODEL.new_user("ann")
    user.update(batch(at(8, 12, 20)))
    with pytest.warns(UserWarning, match="user 'ann'") as caught:
        user.update(batch(at(8, 12, 20)))
    assert ["are the same as the newest rows" in str(each.message) for each in caught] == [True]


def test_a_late_batch_does_not_turn_the_time_back():
    user, _ = followed(at(20), at(8))
    assert user.state.latest == datetime(2024, 5, 3, 20, 30)


def test_times_are_read_as_the_model_read_those_of_pilot_users():
    model = replace(MODEL, schema=replace(MODEL.schema, time_format="%d/%m/%Y %H:%M"))
    user, told = followed(["03/05/2024 08:00"], ["04/04/2024 08:00"], model=model)
    assert user.state.latest == datetime(2024, 5, 3, 8)
    assert len(told) == 1


@pytest.mark.parametrize(("times", "said"), [(["soon"], "is 'soon' in row 1"), ([*at(8), None], "is missing in row 2")])
def test_what_is_no_time_is_refused_by_row_and_text(times, said):
    user = MODEL.new_user("ann")
    with pytest.raises(DataError, match=re.escape(f"order column 'order' of the table {said}")):
        user.update(batch(times))
    assert user.rows == 0


def test_another_kind_of_time_is_told():
    user, told = followed(at(8), [5])
    assert told == [
        "user 'ann': column 'order' holds numbers, and dates and times before, so nobody knows whether these rows are "
        "later"
    ]
    assert user.state.latest == 5


def test_rows_without_times_say_nothing_and_forget_nothing():
    user, _ = followed(at(20))
    person = rows("ann", 12, seed=9)
    user.update(person.X, person.y)
    assert user.state.latest == datetime(2024, 5, 3, 20, 30)


@pytest.mark.parametrize("times", [at(8), [7], [7.25]])
def test_the_newest_time_survives_files_and_copies(times):
    user, _ = followed(times)
    again = NewUser.from_bytes(user.to_bytes(), MODEL)
    assert again.state.latest == user.state.latest == copy.copy(user).state.latest
    assert type(again.state.latest) is type(user.state.latest)
    assert again.to_bytes() == user.to_bytes()
    for each in (again, user.copy()):
        with pytest.warns(UserWarning, match="1 of 1 row is not later than the newest row before"):
            each.update(batch(times, seed=1))


def test_files_without_a_time_are_as_before():
    user, plain = followed(at(8))[0], MODEL.new_user("ann")
    plain.update({name: values for name, values in batch(at(8)).items() if name != WHEN})
    content, arrays = unpack(user.to_bytes(), "user", "it")
    assert content.pop("latest") == "2024-05-03T08:30:00"
    assert pack("user", content, arrays) == plain.to_bytes()
    assert NewUser.from_bytes(plain.to_bytes(), MODEL).state.latest is None


@pytest.mark.parametrize("latest", ["soon", [1], "2024-05-03T08:30:00+00:00"])
def test_a_crafted_time_is_refused(latest):
    content, arrays = unpack(followed(at(8))[0].to_bytes(), "user", "it")
    data = pack("user", {**json.loads(json.dumps(content)), "latest": latest}, arrays)
    with pytest.raises(ModelFileError, match="its newest time"):
        NewUser.from_bytes(data, MODEL)


def test_times_change_no_number():
    timed, plain = followed(at(8, 12, 20), at(9, 10))[0], MODEL.new_user("ann")
    for seed, count in enumerate((3, 2)):
        columns = batch([0] * count, seed)
        plain.update(np.column_stack([columns["hour"], columns["steps"]]), columns["mood"])
    assert replace(timed.state, latest=None).to_bytes(MODEL) == plain.to_bytes()

"""Batches of many users at once, against the same users one by one."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import DataError, TrajectoryError
from support.identical import difference

from .small import X_NEXT, rewarded_model, rows, small_model

NAMES = ("ann", "bob", "cy")


def people(count=3, n=24):
    return {name: rows(name, n, seed=40 + i, size=12) for i, name in enumerate(NAMES[:count])}


def columns(batch):
    """A batch as a dict of columns."""
    return {name: batch.X[:, j].tolist() for j, name in enumerate(batch.covariates)} | {"mood": batch.y.tolist()}


def long_table(model, persons, t):
    """The t-th batches of all, their rows in turns."""
    table = {}
    for name, person in persons.items():
        batch = columns(person.batch(t))
        batch[model.schema.user] = [name] * len(batch["mood"])
        for column, values in batch.items():
            table.setdefault(column, []).extend(values)
    order = np.arange(len(table["mood"])).reshape(len(persons), -1).T.reshape(-1)
    return {column: [values[i] for i in order] for column, values in table.items()}


def pair(batch):
    return batch.X, batch.y


def one_by_one(model, persons, batches=(1, 2), shape="frames"):
    users = {name: model.new_user(name) for name in persons}
    for t in batches:
        for name, person in persons.items():
            users[name].update(*(pair(person.batch(t)) if shape == "pairs" else [columns(person.batch(t))]))
    return users


@pytest.mark.parametrize("shape", ["long", "frames", "pairs"])
def test_many_are_updated_as_one_by_one_to_the_bit(shape):
    model, persons = small_model(), people()
    expected = one_by_one(model, persons, shape=shape)
    users = {name: model.new_user(name) for name in persons}
    for t in (1, 2):
        if shape == "long":
            given = long_table(model, persons, t)
        else:
            form = columns if shape == "frames" else pair
            given = {name: form(person.batch(t)) for name, person in persons.items()}
        updates = model.update_many(users, given)
        assert list(updates.steps) == list(NAMES)
        assert not updates.failures
    for name in NAMES:
        assert updates.steps[name] == users[name].history[-1]
        assert users[name].to_bytes() == expected[name].to_bytes()
        assert difference(users[name].predict(X_NEXT), expected[name].predict(X_NEXT)) is None


def test_pandas_frames_and_whole_numbers_as_names():
    pandas = pytest.importorskip("pandas")
    model, persons = small_model(), {"7": rows("7", 12, seed=1, size=12)}
    table = pandas.DataFrame(long_table(model, persons, 1))
    table[model.schema.user] = 7.0  # as pandas has them where another row has none
    users = {"7": model.new_user("7")}
    assert list(model.update_many(users, table).steps) == ["7"]
    assert users["7"].rows == 12


def test_bad_rows_fail_their_user_alone_and_by_name():
    model, persons = small_model(), people()
    users = one_by_one(model, persons, (1,))
    expected = one_by_one(model, persons)
    before = users["bob"].to_bytes()
    table = long_table(model, persons, 2)
    table["mood"][table[model.schema.user].index("bob")] = "high"
    updates = model.update_many(users, table)
    assert list(updates.steps) == ["ann", "cy"]
    assert list(updates.failures) == ["bob"]
    assert "mood" in str(updates.failures["bob"])
    assert "bob" in repr(updates)
    assert users["bob"].to_bytes() == before
    assert users["ann"].to_bytes() == expected["ann"].to_bytes()
    assert users["cy"].to_bytes() == expected["cy"].to_bytes()
    # With the row mended, bob goes on as if nothing had happened.
    table = long_table(model, {"bob": persons["bob"]}, 2)
    assert not model.update_many(users, table).failures
    assert users["bob"].to_bytes() == expected["bob"].to_bytes()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("late", r"column 'hour' of the table is 'late' in row 8, not a number"),
        (None, r"column 'hour' is missing in row 8, and in 1 of the user's 12 rows altogether"),
    ],
)
def test_rows_are_counted_as_they_stand_in_the_table(value, said):
    """Bob's fourth row is the table's eighth."""
    model, persons = small_model(), people(2)
    table = long_table(model, persons, 1)
    table["hour"][7] = value
    updates = model.update_many({name: model.new_user(name) for name in persons}, table)
    with pytest.raises(DataError, match=said):
        raise updates.failures["bob"]


def test_a_row_at_which_nobody_could_act_is_found_in_the_table_too():
    model, persons = rewarded_model(), people(2)
    roles = {"action": "prompt", "availability": "free", "available_only": True}
    model = replace(model, schema=replace(model.schema, **roles))
    table = long_table(model, persons, 1)
    table |= {"prompt": [0] * 24, "free": [1] * 7 + [0] + [1] * 16}
    updates = model.update_many({name: model.new_user(name) for name in persons}, table)
    assert "nobody could act in row 8;" in str(updates.failures["bob"])


def test_what_is_no_table_at_all_fails_its_user_alone():
    model, persons = small_model(), people(2)
    users = {name: model.new_user(name) for name in persons}
    updates = model.update_many(users, {"ann": object(), "bob": columns(persons["bob"].batch(1))})
    assert list(updates.steps) == ["bob"]
    assert isinstance(updates.failures["ann"], Exception)
    assert users["ann"].rows == 0


def test_somebody_who_is_not_followed_or_on_another_model_is_refused_by_name():
    model, persons = small_model(), people()
    other = small_model()
    users = {"ann": model.new_user("ann"), "bob": other.new_user("bob")}
    updates = model.update_many(users, long_table(model, persons, 1))
    assert list(updates.steps) == ["ann"]
    assert all(isinstance(problem, TrajectoryError) for problem in updates.failures.values())
    assert "another model" in str(updates.failures["bob"])
    assert "'cy'" in str(updates.failures["cy"])
    assert users["bob"].rows == 0


def test_a_table_that_does_not_say_whose_a_row_is_changes_nobody():
    model, persons = small_model(), people(2)
    users = {name: model.new_user(name) for name in persons}
    table = long_table(model, persons, 1)
    table[model.schema.user][3] = None
    with pytest.raises(DataError, match="row 4"):
        model.update_many(users, table)
    with pytest.raises(DataError, match=model.schema.user):
        model.update_many(users, [[1.0, 2.0]])
    assert all(user.rows == 0 for user in users.values())


def test_actions_are_read_from_the_table():
    plain, persons = rewarded_model(), people(2)
    model = replace(plain, schema=replace(plain.schema, action="prompt"))
    users = {name: model.new_user(name) for name in persons}
    updates = model.update_many(users, {name: columns(person.batch(1)) for name, person in persons.items()})
    assert set(updates.failures) == set(persons)  # a reward model needs them
    table = {name: columns(p.batch(1)) | {"prompt": p.batch(1).action.tolist()} for name, p in persons.items()}
    assert not model.update_many(users, table).failures


def test_the_key_says_whose_rows_they_are_whatever_the_user_is_called():
    model, person = small_model(), rows("7", 12, seed=40, size=12)
    updates = model.update_many({"7": model.new_user("a person")}, long_table(model, {"7": person}, 1))
    assert dict(updates.failures) == {}
    assert updates.steps["7"].rows == 12


def test_who_has_no_name_takes_that_of_the_key_and_nobody_elses_after_it():
    model, persons = small_model(), people(2)
    users = {name: model.new_user() for name in persons}
    model.update_many(users, long_table(model, persons, 1))
    assert {key: user.name for key, user in users.items()} == {name: name for name in persons}
    of_bob = {**columns(persons["bob"].batch(2)), model.schema.user: ["bob"] * 12}
    with pytest.raises(DataError, match="row 1 is bob's"):
        users["ann"].update(of_bob)
    with pytest.warns(UserWarning, match="user 'ann': the 12 rows of this batch are the same"):
        model.update_many(users, {"ann": columns(persons["ann"].batch(1))})


def test_users_may_be_kept_under_the_ids_that_a_table_has():
    model, person = small_model(), rows("5", 12, seed=40)
    users = {5: model.new_user(5), np.int64(7): model.new_user(np.int64(7))}
    table = columns(person) | {model.schema.user: [5] * 6 + [7] * 6}
    assert not model.update_many(users, table).failures
    assert [(user.name, user.rows) for user in users.values()] == [("5", 6), ("7", 6)]
    assert model.update_many(users, {5: pair(person), 8: pair(person)}).failures.keys() == {"8"}

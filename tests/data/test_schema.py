import json
import pickle

import numpy as np
import pytest

from kerneltrail.data import Batching, Cohort, Schema, User, read_unlabelled
from kerneltrail.errors import DataError

from .tables import ROWS, read


@pytest.mark.parametrize(
    "cohort",
    [
        read(units={"hour": "hours", "steps": "steps"}, missing={"hour": "drop", "activity": "unknown"}),
        read(scaling="user", missing={"hour": 0.1}),
        read(scaling="none", target_scaling="standard", available_only=True),
        read(batch_size=None, ends={"ann": [4], "bob": [3]}),
        read(batch_size=None, ends=[3, 7]),
        read(labels={"hour": "time of day", "steps": "step count"}, value_names={"hour": {6: "dawn", 20.5: "dusk"}}),
    ],
)
def test_json_round_trip_is_exact(cohort: Cohort) -> None:
    schema = cohort.schema
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert hash(again) == hash(schema)
    assert Cohort.from_schema(again, ROWS) == cohort
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_stored_schemas_that_cannot_be_read() -> None:
    good = read().schema.to_json()
    for stored in ({}, {**good, "batching": 3}, {**good, "surprise": 1}, {**good, "scaler": {"low": []}}):
        with pytest.raises(DataError, match="not a stored"):
            Schema.from_json(stored)


def test_a_new_table_is_scaled_with_the_groups_scaler_and_coded_by_its_levels() -> None:
    schema = read().schema
    new = {
        **{name: values[:2] for name, values in ROWS.items()},
        "who": ["eve"] * 2,
        "when": [1, 2],
        "hour": [28.0, -2.0],
        "activity": ["unknown", "active"],
    }
    assert Cohort.from_schema(schema, new)["eve"].X.tolist() == [[2.0, 1.0], [-1.0, 0.5]]
    with pytest.raises(DataError, match="'running' in row 1, which is not one of its levels"):
        Cohort.from_schema(schema, {**new, "activity": ["running", "still"]})
    assert Cohort.from_schema(schema, new, batching=Batching(size=1))["eve"].ends == (1, 2)


def test_under_user_scaling_a_new_user_has_a_scaler_of_its_own() -> None:
    schema = read(scaling="user").schema
    new = {name: values[:3:2] for name, values in ROWS.items()}
    assert sorted(Cohort.from_schema(schema, new).users[0].X[:, 0].tolist()) == [0.0, 1.0]
    nobody = User("eve", schema.covariates, [], [], ())
    assert schema.scaler_for(nobody).transform([[5.0, 1.0]]).tolist() == [[5.0, 1.0]]


def test_inputs_need_neither_target_nor_action() -> None:
    schema = read(missing="drop").schema
    new = {"who": ["b", "a", "b", "b"], "when": [2, 1, 1, 3], "hour": [1, 2, 3, None], "activity": ["still"] * 4}
    (first, second), report = read_unlabelled(schema, new)
    assert (first.name, first.X.tolist(), first.rows.tolist()) == ("b", [[3, 0], [1, 0]], [2, 0])
    assert (second.name, second.X.tolist(), second.rows.tolist()) == ("a", [[2, 0]], [1])
    assert np.all(np.isfinite(first.X))
    assert (report.rows_read, report.rows_kept, report.missing("hour")) == (4, 3, 1)
    assert first.order.tolist() == [1, 2]
    assert first.action is first.probability is first.availability is first.y is None
    with pytest.raises(DataError, match="no column 'hour'"):
        read_unlabelled(schema, {"who": ["a"], "when": [1], "activity": ["still"]})


def test_units_policies_and_columns_in_use() -> None:
    schema = read(units={"hour": "hours"}, missing={"hour": "drop"}).schema
    assert (schema.unit("hour"), schema.unit("steps")) == ("hours", "")
    assert (schema.policy("hour"), schema.policy("steps")) == ("drop", "error")
    assert schema.values == ("hour", "activity", "steps", "sent", "free", "chance")
    assert schema.ranges == {"activity": (0.0, 2.0)}


def test_a_scaler_for_other_columns_is_refused() -> None:
    schema = read().schema
    with pytest.raises(DataError, match="the scaler is for hour, activity, not hour"):
        Schema("who", "when", "steps", ("hour",), Batching(size=1), scaler=schema.scaler)


def test_what_a_table_of_rows_to_predict_already_says_is_taken_along_with_its_gaps() -> None:
    schema = read(missing="drop").schema
    new = {name: [*values[:3]] for name, values in ROWS.items()}
    new["who"] = ["eve"] * 3
    new["when"] = [1, 2, 3]
    new |= {"steps": [None, 2.0, None], "sent": [None, 1, None], "chance": [0.6, None, None]}
    (eve,), report = read_unlabelled(schema, new)
    assert report.rows_kept == 3
    assert eve.y is not None
    assert eve.action is not None
    assert eve.probability is not None
    assert np.array_equal(eve.y, [np.nan, 2.0, np.nan], equal_nan=True)
    assert np.array_equal(eve.action, [np.nan, 1.0, 0.0], equal_nan=True)  # nobody could act in the last one
    assert np.array_equal(eve.probability, [0.6, np.nan, 0.0], equal_nan=True)
    with pytest.raises(DataError, match=r"'eve': column 'steps' .* is 'much' in row 1"):
        read_unlabelled(schema, {**new, "steps": ["much", 1.0, 2.0]})
    _, report = read_unlabelled(schema, {**new, "who": ["bob", "eve", "eve"], "hour": ["x", 1, 2]}, skip_refused=True)
    assert list(report.refused) == ["bob"]
    with pytest.raises(DataError, match="no row of the table is left"):
        read_unlabelled(schema, {**new, "hour": [None] * 3})


def test_which_values_lie_outside_the_range() -> None:
    cohort = read()
    X = np.array([[8.0, 0.0], [18.0, 2.0], [7.9, 1.0], [18.1, 5.0]])
    assert cohort.schema.outside(X) == [(), (), ("hour",), ("hour", "activity")]
    for schema in (cohort.rescaled("none").schema, cohort.rescaled("user").schema):
        assert not schema.knows_ranges
        assert schema.outside(X) == [()] * 4


def test_a_policy_for_columns_without_one() -> None:
    schema = read(missing={"hour": 12.0}).schema
    assert [schema.with_missing("drop").policy(name) for name in ("hour", "steps")] == [12.0, "drop"]
    assert [schema.with_missing("error").policy(name) for name in ("hour", "steps")] == ["error", "error"]


def test_labels_and_names_of_values() -> None:
    schema = read(labels={"hour": " time of day ", "sent": "a prompt"}, value_names={"hour": {20: "dusk", 6: "dawn"}})
    schema = schema.schema
    assert (schema.label("hour"), schema.label("sent"), schema.label("steps")) == ("time of day", "a prompt", "steps")
    assert schema.names_of("hour") == {6.0: "dawn", 20.0: "dusk"}
    assert [schema.name_of("hour", value) for value in (6.0, 6.0 + 1e-12, 6.1, 20.0)] == ["dawn", "dawn", None, "dusk"]
    assert [schema.name_of("activity", value) for value in (0, 1.0, 1.5)] == ["still", "active", None]
    assert schema.name_of("steps", 0.0) is None
    again = Cohort.from_schema(schema, ROWS, labels={"hour": "clock"}, value_names={})
    assert (again.schema.labels, again.schema.value_names) == ({"hour": "clock"}, {})


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ({"labels": {"our": "time"}}, r"labels= names 'our', which is not in use; did you mean 'hour'\?"),
        ({"labels": {"hour": " "}}, "the label of 'hour' must be a text on one line"),
        ({"labels": {"hour": "a\nb"}}, "on one line"),
        ({"value_names": {"steps": {0: "none"}}}, "value_names= names 'steps', which is not in use"),
        ({"value_names": {"activity": {0: "sitting"}}}, "'activity', which has levels with names"),
        ({"value_names": {"hour": {"early": 6}}}, "the names of the values of 'hour' must be given by number"),
        ({"value_names": {"hour": {6: "dawn", 7: "dawn"}}}, "all different"),
        ({"value_names": {"hour": {6: ""}}}, "all different"),
        ({"value_names": {"hour": {float("nan"): "never"}}}, "all different"),
        ({"value_names": {"hour": {}}}, "all different"),
        ({"value_names": {"hour": "dawn"}}, "given by number"),
    ],
)
def test_names_that_are_refused(names: dict[str, object], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read(**names)

"""What stands at the axes: names with units, names of values, times."""

from dataclasses import replace

import numpy as np

from kerneltrail.report.model_page.axes import times_of, value_names, with_unit
from trajectory.small import rows, small_model

SCHEMA = replace(
    small_model().schema,
    units={"hour": "hours", "steps": "steps", "mood": "points"},
    labels={"steps": "steps before"},
    value_names={"steps": {0.0: "none", 500.0: "many"}},
)


def test_a_unit_stands_behind_a_name_unless_that_is_the_unit():
    assert [with_unit(name, SCHEMA) for name in ("hour", "steps", "mood")] == [
        "hour",
        "steps before (steps)",
        "mood (points)",
    ]


def test_values_have_their_names_and_else_numbers():
    assert value_names("steps", [0.0, 250.0, 500.0], SCHEMA) == ["none", "250", "many"]
    assert value_names("hour", [8.0, 20.5], SCHEMA) == ["8", "20.5"]


def test_times_are_known_only_where_the_rows_were_ordered_by_them():
    user = rows("ann", n=2, size=2)
    assert times_of(user) is None
    assert times_of(replace(user, order=[1, 2])) is None
    dated = replace(user, order=np.array(["2024-03-04T08:00", "2024-03-05T08:00"], dtype="datetime64[us]"))
    assert np.diff(times_of(dated).astype(int)).tolist() == [86400]

"""What a table must not be, and what is said of it: column, row, what was expected."""

from datetime import datetime
from typing import Any

import pytest

from kerneltrail.errors import DataError

from .tables import ROWS, read, with_value


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        (ROWS, {"covariates": ["hours"], "categorical": {}}, "no column 'hours'; did you mean 'hour'"),
        (ROWS, {"user": "whom"}, "no column 'whom'; did you mean 'who'"),
        (ROWS, {"order": "time"}, "no column 'time'"),
        (ROWS, {"target": "step"}, "did you mean 'steps'"),
        (ROWS, {"action": "send"}, "did you mean 'sent'"),
        (ROWS, {"batch_size": None, "batch_column": "week"}, "no column 'week'"),
        (ROWS, {"covariates": []}, "at least one covariate"),
        (ROWS, {"covariates": "hour"}, r"list of names, such as \['hour'\]"),
        (ROWS, {"covariates": ["hour", "hour"], "categorical": {}}, "'hour' is named twice"),
        (ROWS, {"covariates": ["steps"], "categorical": {}}, "both the target and a covariate"),
        (ROWS, {"covariates": ["who"], "categorical": {}}, "both the user and a covariate"),
        (ROWS, {"target": "when"}, "cannot be the target and also"),
        (ROWS, {"categorical": {}}, r"'activity' .* is 'still' in row 1, not a number; .* categorical=\{'activity'"),
        (
            ROWS,
            {"categorical": {"activity": ["still", "active"]}},
            "'unknown' in row 4, which is not one of its levels",
        ),
        (ROWS, {"categorical": {"activity": ["still"]}}, "at least two"),
        (ROWS, {"categorical": {"activity": "still"}}, "must be a list"),
        (ROWS, {"categorical": {"activity": ["still", "active", "NA"]}}, "level 'NA'"),
        (ROWS, {"categorical": {"activty": ["a", "b"]}}, "categorical= names 'activty'.*did you mean 'activity'"),
        (ROWS, {"units": {"hous": "h"}}, "units= names 'hous'.*did you mean 'hour'"),
        (ROWS, {"missing": {"hous": "drop"}}, "missing= names 'hous'"),
        (ROWS, {"missing": "zero"}, "'error', 'drop' or a policy by column"),
        (ROWS, {"missing": {"hour": "zero"}}, "missing values of 'hour' must be 'error' or 'drop', or a finite number"),
        (ROWS, {"missing": {"hour": float("nan")}}, "finite number"),
        (ROWS, {"missing": {"steps": 0.0}}, "missing values of 'steps' must be 'error' or 'drop', got 0.0"),
        (ROWS, {"missing": {"activity": "idle"}}, r"one of its levels \(still, active, unknown\), got 'idle'"),
        (ROWS, {"scaling": "max"}, "scaling must be"),
        (ROWS, {"target_scaling": "max"}, "target_scaling must be"),
        (ROWS, {"batch_size": 0}, "at least 1"),
        (with_value("hour", 3, float("inf")), {}, "'hour' of the table is infinite in row 4"),
        (with_value("hour", 3, "noon"), {}, "'hour' .* is 'noon' in row 4, not a number"),
        (with_value("hour", 3, datetime(2020, 1, 1)), {}, "not a number"),
        (with_value("hour", 3, [1, 2]), {}, "'hour' .* in row 4, not a number"),
        ({**ROWS, "hour": [[1]] * 7}, {}, "'hour' .* in row 1, not a number"),
        (with_value("steps", 3, "many"), {}, "'steps' .* is 'many' in row 4"),
        (with_value("sent", 3, 2), {}, "action 'sent' .* must be 0 or 1, is 2 in row 4"),
        (with_value("sent", 3, None), {}, "'sent' .* missing in row 4"),
        (with_value("free", 3, 0.5), {}, "availability 'free' .* must be 0 or 1"),
        (with_value("chance", 3, 1.5), {}, r"probability 'chance' .* \[0, 1\], is 1.5 in row 4"),
        (with_value("when", 3, None), {}, "order column 'when' .* missing in row 4"),
        (with_value("when", 3, float("inf")), {}, "order column 'when' .* is inf in row 4"),
        (with_value("when", 3, "later"), {}, "order column 'when'"),
        (with_value("when", 3, datetime(2020, 1, 1)), {}, "order column 'when' .* is 3 in row 1"),
        ({**ROWS, "when": ["2020-01-01"] * 6 + ["2020-01-01T08:00Z"]}, {}, "row 7 differs .* time zone"),
        (with_value("who", 3, None), {}, "user column 'who' .* missing in row 4"),
        (with_value("who", 3, " "), {}, "user column 'who' .* missing in row 4"),
    ],
)
def test_what_is_refused_says_where(rows: dict[str, list[Any]], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(rows, **changes)

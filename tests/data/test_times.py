"""Times written otherwise than as ISO 8601: read by a format, and the likeliest format suggested."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.data import Cohort, Schema
from kerneltrail.data.times import FORMATS, check_format, clock, likely_formats, read_time, suggestion, write_times
from kerneltrail.errors import DataError

MOMENTS = [datetime(2016, 4, 12, 8, 5, 1), datetime(2016, 4, 13, 23, 0, 0), datetime(2016, 5, 2, 0, 30, 59)]
ROLES: dict[str, Any] = {"user": "who", "order": "when", "target": "y", "covariates": ["x"], "batch_size": 2}


def table(times: list[Any]) -> dict[str, list[Any]]:
    return {"who": ["a"] * len(times), "when": times, "x": list(range(len(times))), "y": list(range(len(times)))}


@pytest.mark.parametrize("written", [*FORMATS[:23], *FORMATS[24::32]])
def test_every_format_is_suggested_for_what_is_written_in_it_or_one_that_reads_the_same(written: str) -> None:
    texts = [moment.replace(tzinfo=UTC).strftime(written) for moment in MOMENTS]
    found = list(likely_formats(texts))
    assert len(found) == 1
    assert [read_time(text, found[0]) for text in texts] == [read_time(text, written) for text in texts]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["13/04/2016 08:00", "14/04/2016 12:00"], "with --time-format '%d/%m/%Y %H:%M'"),
        (["4/12/2016 1:00:00 AM", "4/13/2016 2:00:00 PM"], "with --time-format '%m/%d/%Y %I:%M:%S %p'"),
        (["13.04.2016", "14.04.2016"], "with --time-format '%d.%m.%Y'"),
        (["03/04/2016", "05/04/2016"], "'%d/%m/%Y' and '%m/%d/%Y' fit equally well and mean different days"),
        (["13/04/2016"] * 9 + ["yesterday"], "'%d/%m/%Y' (time_format= in Python)"),
        ([f"{day}/04/2016" for day in range(13, 28)] + ["soon"], "but for 'soon', which has to be corrected first"),
        ([str(1_437_582_713 + i) for i in range(9)] + ["soon"], "9 of 10 rows hold numbers, and 'soon' is none"),
        (["yesterday", "today"], "written like 2015-07-22 16:31:53"),
    ],
)
def test_a_column_that_is_not_read_is_answered_with_the_likeliest_format(times: list[str], said: str) -> None:
    with pytest.raises(DataError, match=r"order column 'when' of the table is .* in row") as problem:
        Cohort.from_table(table(times), **ROLES)
    assert said in str(problem.value)


def test_a_format_orders_rows_as_iso_would(tmp_path: Path) -> None:
    written = "%d/%m/%Y %H:%M:%S"
    texts = [moment.strftime(written) for moment in reversed(MOMENTS)]
    cohort = Cohort.from_table(table(texts), **ROLES, time_format=written)
    plain = Cohort.from_table(table([str(moment) for moment in reversed(MOMENTS)]), **ROLES)
    assert cohort.raw == plain.raw
    # Another table, and the cohort's own rows, are read by the same format.
    assert Cohort.from_schema(cohort.schema, cohort.to_rows()).raw == cohort.raw
    cohort.write_csv(tmp_path / "again.csv")
    assert cohort.read(tmp_path / "again.csv").raw == cohort.raw
    with pytest.raises(DataError, match=r"is '2016-04-12' in row 1, not a time written as '%d/%m/%Y %H:%M:%S'"):
        cohort.read(table(["2016-04-12", "2016-04-13"]))


@pytest.mark.parametrize(("written", "factor"), [("epoch-seconds", 1), ("epoch-milliseconds", 1000)])
def test_counts_since_1970(written: str, factor: int) -> None:
    counts = [int(moment.replace(tzinfo=UTC).timestamp()) * factor for moment in MOMENTS]
    cohort = Cohort.from_table(table(counts), **ROLES, time_format=written)
    assert cohort.raw[0].order is not None
    assert cohort.raw[0].order.tolist() == MOMENTS
    assert Cohort.from_schema(cohort.schema, cohort.to_rows()).raw == cohort.raw
    with pytest.raises(DataError, match=r"is 'x' in row 2, not a number of (milli)?seconds since 1970"):
        cohort.read(table([1, "x"]))


def test_times_that_a_library_has_read_need_no_format() -> None:
    moments = table(list(MOMENTS))
    assert Cohort.from_table(moments, **ROLES, time_format="%d/%m/%Y").raw == Cohort.from_table(moments, **ROLES).raw


def test_the_format_is_kept_with_the_schema_and_older_schemas_have_none() -> None:
    schema = Cohort.from_table(table(["13/04/2016", "14/04/2016"]), **ROLES, time_format="%d/%m/%Y").schema
    stored = json.loads(json.dumps(schema.to_json()))
    assert Schema.from_json(stored) == schema
    assert stored.pop("time_format") == "%d/%m/%Y"
    assert Schema.from_json(stored).time_format is None
    assert "time_format" not in Schema.from_json(stored).to_json()  # as older versions wrote it


@pytest.mark.parametrize("written", ["%d/%m", "%H:%M", "%Q", "%", "%s", 3])
def test_formats_that_cannot_be_used(written: Any) -> None:
    with pytest.raises(DataError, match=r"such as '%d/%m/%Y %H:%M', or epoch-seconds or epoch-milliseconds"):
        check_format(written)


@given(st.lists(st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.datetimes()), max_size=8))
def test_anything_can_be_asked_about(values: list[Any]) -> None:
    assert isinstance(suggestion(values), str)


def test_what_is_written_is_read_back() -> None:
    times = np.array(MOMENTS, dtype="datetime64[us]")
    for written in (None, "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S%z", "epoch-seconds", "epoch-milliseconds"):
        back = [read_time(text, written) for text in write_times(times, written)]
        assert [time and time.replace(tzinfo=None) for time in back] == MOMENTS


def test_numbers_that_are_times() -> None:
    seconds = np.array([1_437_582_713, 1_437_582_723])
    for order, name in ((seconds, "seconds since 1970"), (seconds * 1000, "milliseconds since 1970")):
        found = clock(order)
        assert found is not None
        assert found[1] == name
        assert np.diff(found[0]) == np.timedelta64(10, "s")
    for order in (np.arange(5), np.array([1e8]), np.array([20151301]), np.array(["a"]), np.array([]), np.array([0.5])):
        assert clock(order) is None


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("who;when;x;y\na;1;36,6;1\na;2;37;2,5\n")
    marks = {"delimiter": ";", "decimal": ","}
    cohort = Cohort.from_table(path, **ROLES, **marks)
    assert (cohort.raw[0].X[:, 0].tolist(), cohort.raw[0].y.tolist()) == ([36.6, 37.0], [1.0, 2.5])
    cohort.write_csv(tmp_path / "again.csv")
    assert ";37,0;" in (tmp_path / "again.csv").read_text()
    assert cohort.read(tmp_path / "again.csv").raw == cohort.raw
    stored = json.loads(json.dumps(cohort.schema.to_json()))
    assert Schema.from_json(stored) == cohort.schema
    said = "column 'x' of t.csv has decimal commas, '36,6' in row 1 (line 2): read the table with --decimal ,"
    with pytest.raises(DataError, match=re.escape(said)):
        Cohort.from_table(path, **ROLES, delimiter=";")


@pytest.mark.parametrize(
    ("cells", "decimal", "said"),
    [
        (["1,234", "12"], None, "if they separate thousands, write the numbers without them"),
        (["1,234", "1,5"], None, "has decimal commas, '1,234' in row 1: read the table with --decimal ,"),
        (["1.5", "2,5"], None, "is '2,5' in row 2, not a number; it has a decimal comma, unlike other rows"),
        (["1.5", "1,234.5"], None, "is '1,234.5' in row 2, not a number; write it without separators of thousands"),
        (["1,5", "2.5"], ",", "is '2.5' in row 2, not a number; with decimal commas a number has no point"),
        (["1,5", "1.234,5"], ",", "'1.234,5' in row 2, not a number; with decimal commas a number has no point"),
    ],
)
def test_commas_that_may_mean_something_else(cells: list[str], decimal: str | None, said: str) -> None:
    rows = {**table([1, 2]), "x": cells}
    with pytest.raises(DataError, match=re.escape(said)):
        Cohort.from_table(rows, **ROLES, decimal=decimal)

"""Mistakes that people make, one by one in a clean table: each is named with its column, rows and users, alone."""

from typing import Any

import numpy as np
import pytest

from kerneltrail.data import Batching, Cohort

from .study import ROWS, USERS, look, one, put, study

CLEAN = study()


def only(check: Any, code: str, severity: str) -> Any:
    """The one finding, where nothing else may be found."""
    assert [finding.code for finding in check.findings] == [code], str(check)
    assert check.findings[0].severity == severity
    return check.findings[0]


def test_a_clean_table_has_none() -> None:
    check = look({**CLEAN, "numbers": CLEAN["temp"]}, candidates=("numbers",))
    assert check.findings == (), str(check)
    assert "Nothing stands out." in str(check)
    assert (check.users, check.rows, check.batches) == (USERS, USERS * ROWS, 3 * USERS)


@pytest.mark.parametrize("seed", range(40))
def test_and_so_it_is_whatever_the_seed(seed: int) -> None:
    """Of 40 clean tables none may have a finding: thresholds are far beyond chance (far values below 1 in 10,000)."""
    assert look(study(seed)).findings == ()


@pytest.mark.parametrize("code", [9999.0, -99.0, -999.0, 1e9, -1024.0])
def test_a_code_for_a_missing_value(code: float) -> None:
    found = only(look(put(CLEAN, "temp", (3, 70, 200), code)), "sentinel", "warning")
    assert (found.columns, found.rows, found.users) == (("temp",), (3, 70, 200), ("user-1", "user-2", "user-4"))
    assert "in 3 rows (rows 3, 70 and 200), far from the rest" in found.message
    assert "code for a missing value" in found.advice


def test_minus_one_among_counts() -> None:
    rng = np.random.default_rng(0)
    counts = {**CLEAN, "pulse": rng.poisson(30.0, USERS * ROWS).astype(float).tolist()}
    assert look(counts).findings == ()
    found = only(look(put(counts, "pulse", (5, 6, 7), -1)), "sentinel", "warning")
    assert (found.columns, found.rows) == (("pulse",), (5, 6, 7))


def test_two_codes_at_both_ends() -> None:
    check = look(put(put(CLEAN, "temp", (3, 4, 5), -999), "temp", (6, 7, 8), 999))
    assert {finding.rows for finding in check.findings if finding.code == "sentinel"} == {(3, 4, 5), (6, 7, 8)}


def test_a_slipped_decimal_point() -> None:
    found = only(look(put(CLEAN, "pulse", [17], 7050.0)), "far", "warning")
    assert (found.columns, found.rows, found.users) == (("pulse",), (17,), ("user-1",))
    assert "is 7050 in row 17, far from the rest" in found.message


def test_what_may_be_it_is_not_called_not_found() -> None:
    fine = look(CLEAN).fine
    assert {"codes for missing values", "long gaps in time"} <= set(fine)
    assert "codes for missing values" not in look(put(CLEAN, "pulse", [17], 999.0)).fine
    assert "long gaps in time" not in look(put(CLEAN, "when", (1, 2), "1970-01-01 00:00:00")).fine


def test_the_tail_of_a_skewed_count_is_not_far_but_the_count_wants_a_log() -> None:
    rng = np.random.default_rng(1)
    steps = np.round(np.exp(4.5 + 1.2 * rng.standard_normal(USERS * ROWS))).tolist()
    found = only(look({**CLEAN, "mood": steps}), "count", "warning")
    assert found.columns == ("mood",)
    assert "log(mood + 0.5)" in found.advice
    found = only(look({**CLEAN, "pulse": steps}), "count", "note")
    assert found.columns == ("pulse",)
    logs = np.log(np.array(steps) + 0.5).tolist()  # where the table has the logarithm, nobody has to be told
    check = look({**CLEAN, "pulse": steps, "temp": logs})
    assert only(check, "copy", "note").columns == ("temp", "pulse")


def test_zeros_and_a_ceiling_in_the_target() -> None:
    found = only(look(put(CLEAN, "mood", range(1, 481, 3), np.log(0.5))), "zeros", "note")
    assert found.columns == ("mood",)
    assert found.rows[:3] == (1, 4, 7)
    assert "33 % of target 'mood' (160 rows) are exactly -0.693, which is log(0 + 0.5), the smallest" in found.message
    assert "fit twice" in found.advice
    found = only(look(put(CLEAN, "mood", range(1, 400, 10), 9.5)), "ceiling", "note")
    assert "8.3 % of target 'mood' (40 rows) are exactly 9.5, the largest value" in found.message


def test_a_target_of_two_values() -> None:
    rng = np.random.default_rng(0)
    found = only(look({**CLEAN, "mood": (rng.random(USERS * ROWS) < 0.5).astype(float).tolist()}), "two-values", "note")
    assert "only two values, 0 and 1" in found.message


def test_constant_columns() -> None:
    found = only(look({**CLEAN, "temp": [21.5] * len(CLEAN["temp"])}), "constant", "warning")
    assert (found.columns, found.message) == (("temp",), "covariate 'temp' is 21.5 in all 480 rows that have it")
    within = [20.0 + int(name[-1]) for name in CLEAN["who"]]
    found = only(look({**CLEAN, "temp": within}), "constant-within", "warning")
    assert found.columns == ("temp",)
    found = only(look(put(CLEAN, "mood", range(61, 121), 3.0)), "constant", "warning")
    assert (found.columns, found.users, found.rows) == (("mood",), ("user-2",), tuple(range(61, 121)))


def test_copies_and_leaks() -> None:
    temp, mood = np.array(CLEAN["temp"]), np.array(CLEAN["mood"])
    found = only(look({**CLEAN, "pulse": (1.8 * temp + 32.0).tolist()}), "copy", "warning")
    assert found.columns == ("temp", "pulse")
    noise = np.random.default_rng(0).normal(size=len(mood))
    for leak in (2.0 * mood - 1.0, np.exp(mood), mood + 0.01 * noise):
        found = only(look({**CLEAN, "pulse": leak.tolist()}), "leak", "warning")
        assert found.columns == ("pulse",)
        assert "gives the answer away" in found.advice
    assert look({**CLEAN, "pulse": (mood + 0.2 * noise).tolist()}).findings == ()  # 0.98 is no copy


def test_a_code_that_two_columns_have_in_the_same_rows_makes_no_copy() -> None:
    both = put(put(CLEAN, "temp", range(1, 30), -999), "pulse", range(1, 30), -999)
    assert {finding.code for finding in look(both).findings} == {"sentinel"}


def doubled(rows: dict[str, list[Any]], place: int, **changes: Any) -> dict[str, list[Any]]:
    return {name: [*values, changes.get(name, values[place - 1])] for name, values in rows.items()}


def test_rows_that_are_there_twice() -> None:
    found = one(look(doubled(CLEAN, 480)), "duplicate")
    assert (found.rows, found.users) == ((481,), ("user-8",))
    found = one(look(doubled(CLEAN, 480, mood=9.9)), "same-time")
    assert (found.severity, found.columns, found.rows) == ("warning", ("when",), (481,))
    days = [text[:10] for text in CLEAN["when"]]  # four rows a day, by design
    found = only(look({**CLEAN, "when": days}), "same-time", "note")
    assert "75 %" in found.message


def test_a_user_who_is_there_twice() -> None:
    mine = [i for i, name in enumerate(CLEAN["who"]) if name == "user-3"]
    twin = {name: [*values, *(values[i] for i in mine)] for name, values in CLEAN.items()}
    twin["who"] = [*CLEAN["who"], *["alias"] * len(mine)]
    found = only(look(twin), "twins", "warning")
    assert found.users == ("user-3", "alias")
    assert set(found.rows) == {*range(121, 181), *range(481, 541)}


def test_too_few_users_batches_and_rows() -> None:
    few = {name: values[:180] for name, values in CLEAN.items()}
    found = only(look(few), "few-users", "warning")
    assert (found.users, found.message) == (("user-1", "user-2", "user-3"), "there are only 3 users")
    assert one(look(CLEAN, batching=Batching(size=100)), "few-batches").message == "no user has more than one batch"
    assert one(look(CLEAN, batching=Batching(size=3)), "small-batches").severity == "note"
    assert look(CLEAN, batching=Batching()).batches is None
    short = {name: values[:426] for name, values in CLEAN.items()}
    found = only(look(short), "few-rows", "note")
    assert (found.users, found.message) == (("user-8",), "user 'user-8' has 6 rows, where 60 are usual")


def test_gaps_rates_and_clocks_that_were_never_set() -> None:
    late = [text.replace("2024-03-1", "2024-05-1") if i < ROWS else text for i, text in enumerate(CLEAN["when"])]
    found = only(look({**CLEAN, "when": late}), "gap", "note")
    assert (found.columns, found.users) == (("when",), ("user-1",))
    assert "the longest is 61.5 days, before row 25" in found.message
    found = one(look(put(CLEAN, "when", (1, 2), "1970-01-01 00:00:00")), "far-time")
    assert (found.severity, found.columns, found.rows, found.users) == ("warning", ("when",), (1, 2), ("user-1",))
    often = [f"2024-03-04 08:{i % ROWS:02d}:00" if i < ROWS else text for i, text in enumerate(CLEAN["when"])]
    found = only(look({**CLEAN, "when": often}), "rate", "note")
    assert found.users == ("user-1",)
    assert "every 1 minute, those of others every 4" in found.message


def test_times_off_the_grid() -> None:
    hours = [f"2024-03-{4 + i % ROWS // 24:02d} {i % ROWS % 24:02d}:00:00" for i in range(480)]
    assert look({**CLEAN, "when": hours}).findings == ()
    found = only(look(put({**CLEAN, "when": hours}, "when", [7], "2024-03-04 06:40:00")), "irregular", "note")
    assert (found.columns, found.users, found.rows) == (("when",), ("user-1",), (7, 8))
    assert "1 hour apart" in found.message


def test_numbers_that_are_times_have_gaps_too() -> None:
    seconds = [1_700_000_000 + 14_400 * (i % ROWS) + (10**7 if i % ROWS > 30 and i < ROWS else 0) for i in range(480)]
    check = look({**CLEAN, "when": seconds})
    assert only(check, "gap", "note").users == ("user-1",)
    assert check.times is not None
    assert check.times.kind == "seconds since 1970"
    assert look({**CLEAN, "when": [i % ROWS for i in range(480)]}).times is None


def test_rows_out_of_order() -> None:
    backwards = {name: values[::-1] for name, values in CLEAN.items()}
    found = only(look(backwards), "unsorted", "note")
    assert len(found.users) == USERS


def test_actions() -> None:
    found = one(look({**CLEAN, "sent": CLEAN["free"]}), "action")
    assert (found.severity, found.columns) == ("warning", ("sent",))
    assert "is 1 in all" in found.message
    found = one(look(put(CLEAN, "sent", range(61, 121), 0.0)), "action")
    assert (found.severity, found.users) == ("note", ("user-2",))
    away = CLEAN["free"].index(0.0) + 1
    found = only(look(put(CLEAN, "sent", [away], 1.0)), "action", "warning")
    assert (found.columns, found.rows) == (("sent",), (away,))


def test_probabilities() -> None:
    free = CLEAN["free"].index(1.0) + 1
    found = only(look(put(CLEAN, "chance", [free], 1.0)), "probability", "warning")
    assert (found.columns, found.rows) == (("chance",), (free,))
    found = only(look({**CLEAN, "chance": [0.3 * value for value in CLEAN["free"]]}), "probability", "warning")
    assert "is 1 in 58 % of the rows, where probability 'chance' says 30 %" in found.message
    found = one(look(CLEAN, availability=None), "probability")
    assert "--availability" in found.advice


def test_missing_values() -> None:
    gaps = put(put(CLEAN, "temp", (3, 9), None), "pulse", (3, 9), None)
    found = only(look(gaps), "missing", "warning")
    assert (found.columns, found.rows, found.users) == (("temp", "pulse"), (3, 9), ("user-1",))
    assert "--missing drop" in found.advice
    dropped = {"temp": "drop", "pulse": 60.0}
    check = look(gaps, missing=dropped)
    found = only(check, "missing", "note")
    assert found.message == "values are missing: 'temp' in 2 rows (0.4 %) and 'pulse' in 2 rows (0.4 %)"
    assert found.advice == "Rows without 'temp' are left out. 'pulse' is filled in with 60 there."
    assert (found.columns, found.rows, found.users) == (("temp", "pulse"), (3, 9), ("user-1",))
    assert "missing values" not in check.fine
    assert "missing values" in look(CLEAN, missing=dropped).fine
    assert {column.name: column.missing for column in check.columns}["temp"] == pytest.approx(2 / 480)
    found = only(look(put(CLEAN, "temp", range(1, 480, 3), None), missing=dropped), "missing", "note")
    assert found.columns == ("temp",)
    found = only(look(put(CLEAN, "temp", range(1, 45), None), missing=dropped), "missing", "note")
    assert (found.columns, found.users) == (("temp",), ("user-1",))
    assert found.advice.startswith("Rows without 'temp' are left out. Little is left there.")
    found = one(look(put(CLEAN, "temp", range(1, 61), None), missing=dropped), "empty")
    assert (found.severity, found.users) == ("warning", ("user-1",))


def test_missing_values_of_which_no_table_is_at_hand() -> None:
    gaps = put(put(CLEAN, "temp", (3, 9), None), "mood", (9, 100), None)
    roles = {"user": "who", "order": "when", "target": "mood", "covariates": ["temp"], "batch_size": 20}
    cohort = Cohort.from_table(gaps, missing="drop", **roles)
    found = only(cohort.check(), "missing", "note")
    assert found.message == "values are missing: 'temp' in 2 rows and 'mood' in 2 rows"
    assert found.advice == "Rows without 'temp' or 'mood' are left out."
    found = only(cohort.check(gaps), "missing", "note")
    assert found.advice == "Rows without 'temp' or 'mood' are left out, 3 of 480 rows in all."
    filled = Cohort.from_table(gaps, missing={"temp": 20.0, "mood": "drop"}, **roles)
    assert "'temp' is filled in with 20 there." in only(filled.check(), "missing", "note").advice


def test_a_night_that_is_left_out_is_a_gap() -> None:
    """The rows that are kept are counted, and so are the gaps between them."""
    hours = [f"2024-03-{4 + i % ROWS // 24:02d} {i % ROWS % 24:02d}:00:00" for i in range(480)]
    night = put({**CLEAN, "when": hours}, "mood", range(62, 71), None)  # user-2 from 1 to 9 o'clock
    for missing in ({}, {"mood": "drop"}):
        times = look(night, missing=missing).times
        assert times is not None
        assert (times.longest, times.user, times.step) == (10.0 * 3600.0, "user-2", 3600.0)
    times = look(put({**night, "mood": CLEAN["mood"]}, "temp", range(62, 71), None), missing={"temp": 0.0}).times
    assert times is not None
    assert times.longest == 3600.0  # rows that are filled in are kept
    days = put({**CLEAN, "when": hours}, "mood", range(62, 91), None)
    found = one(look(days, missing={"mood": "drop"}), "gap")
    assert (found.users, found.rows) == (("user-2",), (91,))
    assert (
        "the longest is 1.25 days, before row 91; 29 rows in between are left out for a missing value" in found.message
    )
    ends = put({**CLEAN, "when": hours}, "mood", (1, 61, 121, 181, 241, 301, 361, 421), None)
    times = look(ends, missing={"mood": "drop"}).times
    assert times is not None
    assert times.first == "2024-03-04 01:00"


def test_cells_that_cannot_be_used_are_errors_and_all_else_is_looked_at() -> None:
    check = look(put(put(CLEAN, "temp", [3], "warm"), "pulse", (70, 80, 90), 9999))
    (error,) = check.of("error")
    assert (error.code, error.users) == ("unusable", ("user-1",))
    assert error.message.startswith("user 'user-1': column 'temp' of the table is 'warm' in row 3, not a number")
    assert one(check, "sentinel").rows == (70, 80, 90)


def test_texts_that_are_numbers() -> None:
    texts = {**CLEAN, "weight": ["70.5"] * 470 + ["71 kg", "n.d.", "<5", "?"] + ["70.1"] * 6}
    found = only(look(texts, candidates=("weight",)), "text", "warning")
    assert (found.columns, found.rows) == (("weight",), (471, 472, 473, 474))
    assert (
        "numbers in 476 of 480 rows, but '71 kg' in row 471, 'n.d.' in row 472, '<5' in row 473 and 1 more"
        in found.message
    )
    assert look(texts).findings == ()  # nobody asked for it
    commas = {**CLEAN, "weight": ["70,5"] * 480}
    found = only(look(commas, candidates=("weight",)), "decimal-comma", "warning")
    assert found.columns == ("weight",)
    assert "has decimal commas, '70,5' in row 1: read the table with --decimal ," in found.message
    mixed = {**commas, "height": ["1.78"] * 480}
    assert (
        "unlike column 'height': write its numbers with points"
        in one(look(mixed, candidates=("weight",)), "decimal-comma").message
    )


def test_columns_without_numbers_are_named() -> None:
    places = [("home", "work", None)[i % 3] for i in range(480)]
    days = [("Mon", "Tue")[i % 2] for i in range(480)]
    table = {**CLEAN, "place": places, "weekday": days, "empty": [None] * 480, "more": CLEAN["temp"]}
    found = only(look(table, candidates=("place", "weekday", "empty", "more", "hour")), "left-out", "note")
    assert (found.columns, found.rows) == (("place", "weekday"), ())
    assert found.message == "columns 'place' and 'weekday' hold no numbers and are not used"
    assert "--levels NAME=a,b,c" in found.advice
    assert "--covariates" not in found.advice
    named = look({**CLEAN, "pulse": days}, levels={"pulse": ("Mon", "Tue")}, candidates=("pulse", "hour"))
    assert named.findings == ()
    rain = {**CLEAN, "rain": ["True", "false"] * 240}
    found = only(look(rain, candidates=("rain",)), "left-out", "note")
    assert found.message == "column 'rain' holds no numbers and is not used"
    assert found.advice == "To use it, of true and false, name all covariates with --covariates."
    found = only(look({**rain, "weekday": days}, candidates=("rain", "weekday")), "left-out", "note")
    assert found.advice.startswith(
        "To use 'rain', of true and false, name all covariates with --covariates. To use one"
    )
    many = {f"text-{i}": days for i in range(12)}
    found = only(look({**CLEAN, **many}, candidates=tuple(many)), "left-out", "note")
    assert "'text-9' and 2 more hold no numbers" in found.message


def test_categorical_covariates_are_counted_and_left_alone() -> None:
    places = [("home", "work", "other")[i % 7 % 3] for i in range(480)]
    check = look({**CLEAN, "pulse": places}, levels={"pulse": ("home", "work", "other")})
    assert check.findings == ()
    (column,) = [column for column in check.columns if column.name == "pulse"]
    assert (column.quantiles, sum(column.levels.values())) == ((), 480)
    assert "home 43 %" in str(check)
    found = only(look({**CLEAN, "pulse": ["home"] * 480}, levels={"pulse": ("home", "work")}), "constant", "warning")
    assert "is 'home' in all 480 rows" in found.message

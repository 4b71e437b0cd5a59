"""New users beside pilot users: another unit is named with both ranges, a taken name with its user."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kerneltrail.data import Cohort, PilotSummary, check_table
from kerneltrail.data.checks import against_pilot, quantiles_of_columns
from kerneltrail.data.checks.conversions import CONVERSIONS
from kerneltrail.kernels import Array

from .study import ROLES, one, put, study

PILOT = Cohort.from_table(
    study(), user="who", order="when", target="mood", covariates=ROLES["covariates"], batch_size=20, action="sent"
)
NEW = {**study(99), "who": [f"new-{name[-1]}" for name in study()["who"]]}


def known(cohort: Cohort = PILOT, **less: Any) -> PilotSummary:
    provenance = {
        "columns": quantiles_of_columns(cohort.schema, cohort.raw),
        "rows": {user.name: user.rows_digest for user in cohort.users},
    }
    return PilotSummary.of(cohort.schema, cohort.names, {**provenance, **less})


def codes(rows: Any, pilot: PilotSummary) -> list[str]:
    return [finding.code for finding in check_table(PILOT.schema, rows, pilot=pilot).findings]


@pytest.mark.parametrize("seed", range(20))
def test_users_like_the_pilot_users_are_fine(seed: int) -> None:
    rows = {**study(1000 + seed), "who": NEW["who"]}
    assert codes(rows, known()) == []
    one_user = {name: values[:40] for name, values in rows.items()}  # and one new user is not too few
    assert codes(one_user, known()) == []


def test_another_unit_is_named_with_both_ranges_and_what_it_may_be() -> None:
    rows = {**NEW, "temp": [1.8 * value + 32.0 for value in NEW["temp"]]}
    check = check_table(PILOT.schema, rows, pilot=known())
    found = one(check, "pilot-range")
    low, high = (f"{value:.3g}" for value in known().range("temp") or ())
    assert (found.severity, found.columns) == ("warning", ("temp",))
    assert len(found.users) == 8
    assert f"that of the pilot users between {low} and {high}" in found.message
    assert "They would fit if these were °F and the pilot users' were °C" in found.advice
    column = {column.name: column for column in check.columns}["temp"]
    assert column.pilot == known().range("temp")


def test_what_was_warned_of_is_not_called_not_found() -> None:
    look_for = "users in another unit"
    assert look_for in check_table(PILOT.schema, NEW, pilot=known()).fine
    rows = {**NEW, "temp": [1.8 * value + 32.0 for value in NEW["temp"]]}
    check = check_table(PILOT.schema, rows, pilot=known())
    assert "same unit?" in one(check, "pilot-range").advice
    assert look_for not in check.fine
    assert look_for not in " ".join(str(check).split())


def test_what_happens_to_rows_of_new_users_that_lack_a_value_is_said() -> None:
    schema = replace(PILOT.schema, missing={"mood": "drop", "temp": 12.0})
    check = check_table(schema, put(put(NEW, "mood", (3, 9), None), "temp", [70], None), pilot=known())
    found = one(check, "missing")
    assert (found.severity, found.rows, check.rows) == ("note", (3, 9, 70), 478)
    assert found.message == "values are missing: 'temp' in 1 row (0.2 %) and 'mood' in 2 rows (0.4 %)"
    assert found.advice == "Rows without 'mood' are left out. 'temp' is filled in with 12 there."
    assert "missing values" not in check.fine


def test_one_user_in_another_unit_is_named() -> None:
    rows = {
        **NEW,
        "temp": [1.8 * v + 32.0 if who == "new-3" else v for v, who in zip(NEW["temp"], NEW["who"], strict=True)],
    }
    found = one(check_table(PILOT.schema, rows, pilot=known()), "pilot-range")
    assert found.users == ("new-3",)
    assert set(found.rows) <= set(range(121, 181))
    (brief,) = against_pilot(Cohort.from_schema(PILOT.schema, rows), known())
    assert brief.message == found.message


def test_older_models_know_the_range_alone_and_others_nothing() -> None:
    older = known(columns=None)
    assert older.quantiles["temp"] == known().range("temp")
    assert "mood" not in older.quantiles
    hot = {**NEW, "temp": [value + 100.0 for value in NEW["temp"]]}
    assert codes(hot, older) == ["pilot-range"]
    unscaled = PILOT.rescaled("none")
    assert known(unscaled, columns=None).quantiles == {}
    assert codes(hot, known(unscaled, columns=None)) == []
    assert codes(hot, known(unscaled)) == ["pilot-range"]
    damaged: Any = {"temp": [1.0], "hour": "x", "pulse": [float("nan")] * 7}
    assert known(columns=damaged, rows=3).quantiles == older.quantiles


def test_the_target_is_compared_too() -> None:
    found = one(
        check_table(PILOT.schema, {**NEW, "mood": [30.0 + v for v in NEW["mood"]]}, pilot=known()), "pilot-range"
    )
    assert found.columns == ("mood",)


def test_names_of_pilot_users() -> None:
    assert codes(study(), known()) == ["pilot-user"]
    other = one(check_table(PILOT.schema, put(study(), "temp", [3], 9.0), pilot=known()), "pilot-name")
    assert (other.severity, other.users) == ("warning", ("user-1",))
    assert (
        one(check_table(PILOT.schema, put(study(), "temp", [3], 9.0), pilot=known(rows=None)), "pilot-user").severity
        == "note"
    )


def test_rows_are_known_under_any_scaling() -> None:
    for scaling in ("group", "user", "none"):
        cohort = PILOT.rescaled(scaling)  # type: ignore[arg-type]
        pilot = known(cohort)
        assert [pilot.has_rows_of(user) for user in cohort.raw] == [True] * 8
        assert pilot.has_rows_of(cohort.raw[0].with_y(cohort.raw[0].y + 1.0)) is False
        assert pilot.has_rows_of(cohort.raw[0].with_name("eve")) is None


@pytest.mark.parametrize(("words", "convert"), CONVERSIONS)
def test_conversions_come_in_pairs_that_undo_each_other(words: str, convert: Any) -> None:
    x: Array = np.array([0.5, 3.0, 20.0])
    assert any(np.allclose(back(convert(x)), x, atol=1e-9) for _, back in CONVERSIONS if back is not convert), words


def test_a_pilot_without_rows_has_no_quantiles() -> None:
    empty = replace(PILOT.raw[0], X=np.empty((0, 3)), y=np.empty(0), ends=(), action=None, order=None, index=None)
    assert quantiles_of_columns(PILOT.schema, [empty]) == {}


def places(shares: tuple[str, ...] = ("work", "home", "other", "other")) -> Cohort:
    count = len(study()["who"])
    return Cohort.from_table(
        {**study(), "pulse": [shares[i % len(shares)] for i in range(count)]},
        user="who",
        order="when",
        target="mood",
        covariates=ROLES["covariates"],
        batch_size=20,
        categorical={"pulse": ("home", "work", "other")},
    )


def test_the_usual_level_is_the_one_with_most_rows() -> None:
    assert known(places()).usual("pulse") == 2.0
    assert known(places(("work", "home", "home"))).usual("pulse") == 0.0
    assert known(places(("work", "home"))).usual("pulse") == 0.0  # the first of two alike
    assert known(places()).levels["pulse"] == {"home": 120, "work": 120, "other": 240}
    assert known(places()).usual("temp") == np.median(np.concatenate([user.X[:, 1] for user in places().raw]))


@pytest.mark.parametrize(
    "kept", [None, {}, {"pulse": [0.5]}, {"pulse": {"gym": 3}}, {"pulse": {"home": 1, "work": "x", "other": 2}}]
)
def test_of_an_older_model_the_usual_level_is_the_middle_one_and_never_between_two(kept: Any) -> None:
    older = known(places(), columns=kept)
    assert older.usual("pulse") == 1.0
    two = replace(older, schema=replace(older.schema, levels={"pulse": ("home", "work")}))
    assert two.usual("pulse") in (0.0, 1.0)
    assert older.range("pulse") is None


def test_a_level_that_the_model_does_not_know_is_named_and_its_rows_are_left_out() -> None:
    schema = replace(places().schema, missing={"pulse": "drop"})
    new = {**NEW, "pulse": ["gym" if i in (2, 60) else "home" for i in range(480)]}
    check = check_table(schema, new, pilot=known(places()))
    found = one(check, "level")
    assert (found.severity, found.columns, found.users, found.rows) == (
        "warning", ("pulse",), ("new-1", "new-2"), (3, 61)
    )  # fmt: skip
    assert found.message == (
        "covariate 'pulse' is 'gym' in rows 3 and 61, which is not one of its levels; they are home, work, other "
        "(2 rows of users 'new-1' and 'new-2')"
    )
    assert (check.rows, check.of("error")) == (478, ())
    cohort = Cohort.from_schema(schema, new, skip_refused=True)
    assert one(cohort.check(new, pilot=known(places())), "level") == found
    assert (
        "levels that the model does not know"
        in check_table(schema, {**new, "pulse": ["home", "work"] * 240}, pilot=known(places())).fine
    )
    as_pilot = check_table(schema, new)  # a fit refuses a level that was not declared
    assert [finding.users for finding in as_pilot.of("error")] == [("new-1",), ("new-2",)]


def test_what_is_plausible_of_new_people_lies_around_what_pilot_users_had() -> None:
    pilot = known()
    assert pilot.plausible("temp") == pilot.plausible("temp", positive=False) == (-4.0 - 15.2, 26.4 + 15.2)
    summer = replace(pilot, quantiles={"temp": (5.0, 25.0)})
    assert (summer.plausible("temp"), summer.plausible("temp", positive=False)) == ((0.0, 35.0), (-5.0, 35.0))
    assert pilot.plausible("hour") == pilot.plausible("hour", positive=False) == (0.0, 24.0)
    counts = replace(pilot, quantiles={"temp": (0.0, 10.0), "hour": (3.0, 3.0)})
    assert counts.plausible("temp", positive=False) == (0.0, 15.0)
    assert counts.plausible("hour") is None
    at = {name: i for i, name in enumerate(PILOT.schema.covariates)}
    assert (counts.bounds[0][at["temp"]], counts.bounds[1][at["temp"]]) == (0.0, 15.0)
    assert (counts.bounds[0][at["hour"]], counts.bounds[1][at["hour"]]) == (-np.inf, np.inf)
    levels = replace(pilot, schema=replace(PILOT.schema, levels={"hour": ("a", "b", "c")}))
    assert levels.plausible("hour") == (0.0, 2.0)


@pytest.mark.parametrize("unit", ["hours", "h", ""])
def test_sleep_in_hours_is_no_hour_of_the_day(unit: str) -> None:
    schema = replace(PILOT.schema, units={"temp": unit, "hour": unit})
    pilot = replace(known(), schema=schema, quantiles={"temp": (4.0, 9.0), "hour": (8.0, 20.0)})
    assert pilot.plausible("temp") == (1.5, 11.5)
    assert pilot.plausible("hour") == (0.0, 24.0)

"""A user whose values are in another unit is found, and one who is merely unlike the others is not."""

from typing import Any

import numpy as np
import pytest

from kerneltrail.data.checks.other_units import _beyond, _Bulk, _elsewhere, _fitting, _of_another_size, _sizes
from kerneltrail.kernels import Array

from .study import ROWS, USERS, look, one, study
from .test_mistakes import only

CLEAN = study()


def test_a_user_in_another_unit() -> None:
    fahrenheit = [200.0 + 1.8 * value if i < ROWS else value for i, value in enumerate(CLEAN["temp"])]
    found = only(look({**CLEAN, "temp": fahrenheit}), "other-unit", "warning")
    assert (found.columns, found.users, found.rows) == (("temp",), ("user-1",), tuple(range(1, ROWS + 1)))
    days = [500.0 + i % ROWS if i < ROWS else float(i % ROWS) for i in range(480)]  # a day counter may well start late
    assert look({**CLEAN, "temp": days}).findings == ()


@pytest.mark.parametrize("times", [1 / 60, 1 / 1000, 60.0])
def test_a_user_whose_values_are_of_another_size(times: float) -> None:
    """Hours among minutes lie closer to them than the minutes among each other."""
    minutes = [430.0 + 60.0 * np.sin(1.7 * i + i // ROWS) for i in range(480)]
    assert look({**CLEAN, "temp": minutes}).findings == ()
    hours = [times * value if i < ROWS else value for i, value in enumerate(minutes)]
    found = one(look({**CLEAN, "temp": hours}), "other-unit")
    assert (found.severity, found.columns, found.users) == ("warning", ("temp",), ("user-1",))
    some = [0.0 if i % 3 == 0 else value for i, value in enumerate(hours)]  # who drinks no coffee drinks none in grams
    found = one(look({**CLEAN, "temp": some}), "other-unit")
    assert found.users == ("user-1",)
    assert f"times {'smaller' if times < 1.0 else 'larger'} than that of anybody else: its median is " in found.message
    assert ", of the others between 42" in found.message


def test_a_user_with_glucose_in_another_unit_is_named_with_medians() -> None:
    """mmol/L among mg/dL: the widths of what others have hide it, the ratio of 18 does not."""
    rng = np.random.default_rng(0)
    glucose = np.exp(5.0 + 0.3 * rng.standard_normal(USERS * ROWS))
    mixed = np.where(np.arange(USERS * ROWS) < ROWS, glucose / 18.0, glucose)
    found = one(look({**CLEAN, "temp": mixed.tolist()}), "other-unit")
    assert found.users == ("user-1",)
    medians = [float(np.median(mixed[i * ROWS : (i + 1) * ROWS])) for i in range(USERS)]
    assert f"its median is {medians[0]:.3g}, of the others between {min(medians[1:]):.3g}" in found.message


def test_hours_among_minutes_are_found_among_four_users_too() -> None:
    minutes = [430.0 + 60.0 * np.sin(1.7 * i + i // ROWS) for i in range(480)]
    hours = [value / 60.0 if i < ROWS else value for i, value in enumerate(minutes)]
    few = {name: values[: 4 * ROWS] for name, values in {**CLEAN, "temp": hours}.items()}
    assert one(look(few), "other-unit").users == ("user-1",)


def units(rng: np.random.Generator, first: Any, others: Any, *odd: float) -> list[str]:
    """Whom the check suspects of another unit where the first user's values are drawn otherwise than the others'."""
    drawn = np.concatenate([first(rng, ROWS), others(rng, ROWS * (USERS - 1))])
    drawn[[7 + 10 * i for i in range(len(odd))]] = odd
    check = look({**CLEAN, "temp": drawn.tolist()})
    return [user for found in check.findings if found.code == "other-unit" for user in found.users]


@pytest.mark.parametrize("seed", range(5))
def test_who_does_little_of_a_thing_is_not_in_another_unit(seed: int) -> None:
    """Short bouts of exercise and a few long ones, low ratings, seldom a step: values that others have, too."""
    rng = np.random.default_rng(seed)
    assert not units(
        rng,
        lambda rng, n: np.minimum(60.0, np.round(1.0 + rng.exponential(1.5, n))),
        lambda rng, n: np.round(1.0 + 59.0 * rng.beta(3.0, 2.0, n)),
        60.0,
        55.0,
    )

    def low(rng: np.random.Generator, n: int) -> Any:
        return np.clip(np.round(rng.normal(4.0, 3.0, n)), 0.0, 100.0)

    def usual(rng: np.random.Generator, n: int) -> Any:
        return np.clip(np.round(rng.normal(65.0, 15.0, n)), 0.0, 100.0)

    assert not units(rng, low, usual)
    assert not units(rng, low, usual, 80.0)
    assert not units(rng, lambda rng, n: rng.beta(1.0, 40.0, n), lambda rng, n: rng.beta(8.0, 4.0, n))
    assert not units(
        rng,
        lambda rng, n: np.where(rng.random(n) < 0.2, rng.integers(1, 4, n), 0.0),
        lambda rng, n: np.round(np.exp(4.0 + 0.5 * rng.standard_normal(n))),
    )


@pytest.mark.parametrize("users", [4, 5, 6, 7, 8, 10, 12])
def test_people_who_differ_by_chance_are_seldom_suspected(users: int) -> None:
    """Medians that are log-normal with sd 1, and values so close to them that only medians decide: 0.2 % of columns.

    Two per cent of medians with sd 1.5 among 4 users, 1 % among 5. By the ratio 10 alone it was 3 % and 10 %.
    """
    rng = np.random.default_rng(users)
    suspected, columns = 0, 4000
    for _ in range(columns):
        medians = np.exp(rng.standard_normal(users))
        sizes = _sizes({str(i): median * np.ones(5) for i, median in enumerate(medians)})
        suspected += any(_of_another_size(user, sizes) for user in sizes)
    assert suspected <= 0.004 * columns  # 0.2 %, with three standard errors


def test_users_who_differ_much_are_not_in_another_unit() -> None:
    rng = np.random.default_rng(0)
    steps = [float(np.exp(5.0 + 0.8 * (i // ROWS) + rng.standard_normal())) for i in range(480)]
    assert not [found for found in look({**CLEAN, "temp": steps}).findings if found.code == "other-unit"]


def mixed(usual: Array, convert: Any) -> dict[str, list[Any]]:
    """The clean table with these temperatures, the first user's converted."""
    return {**CLEAN, "temp": [float(convert(v)) if i < ROWS else float(v) for i, v in enumerate(usual)]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("one_in", ["°F", "°C"])
def test_a_thermometer_in_another_unit_is_found_though_the_ranges_nearly_touch(one_in: str, seed: int) -> None:
    celsius = np.random.default_rng(seed).normal(14.0, 5.0, USERS * ROWS)
    assert look(mixed(celsius, lambda x: x)).findings == ()
    usual, convert = (
        (celsius, lambda x: 1.8 * x + 32.0) if one_in == "°F" else (1.8 * celsius + 32.0, lambda x: (x - 32.0) / 1.8)
    )
    check = look(mixed(usual, convert))
    found = only(check, "other-unit", "warning")
    assert (found.columns, found.users) == (("temp",), ("user-1",))
    other = "°C" if one_in == "°F" else "°F"
    assert f"They would fit if these were {one_in} and the others' were {other}" in found.advice
    assert "users in another unit" not in check.fine


@pytest.mark.parametrize("users", [5, 8])
def test_the_message_has_both_bulks(users: int) -> None:
    rows = {
        name: values[: users * ROWS]
        for name, values in mixed(np.array(CLEAN["temp"]) + 15.0, lambda x: 1.8 * x + 32).items()
    }
    found = one(look(rows), "other-unit")
    low, middle, high = np.quantile(rows["temp"][:ROWS], (0.1, 0.5, 0.9))
    assert (
        f"covariate 'temp' of user 'user-1' lies mostly between {low:.3g} and {high:.3g} (median {middle:.3g})"
        in found.message
    )
    others = [np.quantile(rows["temp"][i * ROWS : (i + 1) * ROWS], (0.1, 0.5, 0.9)) for i in range(1, users)]
    bottom, top = min(each[0] for each in others), max(each[2] for each in others)
    assert f"that of all others between {bottom:.3g} and {top:.3g} (medians " in found.message


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("times", "said"),
    [
        (10.0, "ten times as large, as on a scale to 100 in place of 10"),
        (0.1, "a tenth as large, as on a scale to 1 in place of 10"),
    ],
)
def test_a_rating_on_another_scale_is_found(times: float, said: str, seed: int) -> None:
    ratings = np.clip(np.round(np.random.default_rng(seed).normal(6.0, 1.3, USERS * ROWS)), 2.0, 10.0)
    assert look(mixed(ratings, lambda x: x)).findings == ()
    found = only(look(mixed(ratings, lambda x: times * x)), "other-unit", "warning")
    assert found.users == ("user-1",)
    assert f"They would fit if these were {said}" in found.advice


@pytest.mark.parametrize("seed", range(3))
def test_people_who_differ_are_in_no_other_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(USERS), ROWS)
    noise = rng.standard_normal(USERS * ROWS)
    weights = np.array([138.0, 61.0, 74.0, 83.0, 58.0, 92.0, 70.0, 66.0])[person] + 0.4 * noise
    hearts = np.array([128.0, 62.0, 71.0, 80.0, 66.0, 74.0, 58.0, 69.0])[person] + 4.0 * noise
    homes = np.array([9.0, 21.0, 20.0, 22.5, 19.0, 21.5, 23.0, 20.5])[person] + 0.7 * noise
    grumpy = np.clip(np.round(np.where(person == 0, 6.6, 4.0) + 0.6 * noise), 1.0, 7.0)
    for column in (weights, hearts, homes, grumpy):
        rows = {**CLEAN, "temp": column.tolist()}
        assert look(rows).findings == ()
        few = {name: values[: 4 * ROWS] for name, values in rows.items()}
        assert [found.code for found in look(few).findings] == ["few-users"]


@pytest.mark.parametrize("users", [4, 7, 15])
@pytest.mark.parametrize("logarithms", [False, True])
@pytest.mark.parametrize("within", [0.02, 0.4])
def test_people_who_differ_by_chance_are_seldom_far_out(users: int, logarithms: bool, within: float) -> None:
    """In 0.2 % of columns at most, of six rows a user: 4 of 2000, and 10 with three standard errors.

    By the difference of ranges alone it was 46 % among 4 users who hardly vary, and 9 % among 7.
    """
    rng = np.random.default_rng(users)
    suspected = 0
    for _ in range(2000):
        drawn = rng.standard_normal((users, 1)) + within * rng.standard_normal((users, 6))
        groups = {str(i): values for i, values in enumerate(np.exp(drawn) if logarithms else drawn)}
        bulks = {user: _Bulk.of(values) for user, values in groups.items()}
        ranges = {user: (float(values.min()), float(values.max())) for user, values in groups.items()}
        suspected += any(
            _beyond(user, ranges, bulks) or (_elsewhere(user, bulks) and _fitting(user, groups)) for user in groups
        )
    assert suspected <= 10

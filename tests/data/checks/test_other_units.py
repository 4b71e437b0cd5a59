"""A user whose values are in another unit is found, and one who is merely unlike the others is not."""

from typing import Any

import numpy as np
import pytest

from kerneltrail.data.checks.people import _of_another_size, _sizes

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

"""Simulated studies: what is stated of each holds."""

import numpy as np
import pytest

from kerneltrail.data.simulate import STUDIES
from kerneltrail.trajectory.advancing import advancing


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_the_same_for_the_same_seed_and_its_users_are_not(name):
    study = STUDIES[name]
    pilots, new = study.simulated(0, 3)
    again, _ = study.simulated(0, 3)
    other, _ = study.simulated(0, 4)
    assert (len(pilots), len(new)) == (study.pilots, study.new)
    assert {user.ends for user in pilots.raw} == {tuple(np.cumsum(study.batches).tolist())}
    for user, same, different in zip(pilots.raw, again.raw, other.raw, strict=True):
        np.testing.assert_array_equal(user.y, same.y)
        np.testing.assert_array_equal(user.X, same.X)
        assert (user.y != different.y).any()
    assert len({tuple(user.y) for user in (*pilots.raw, *new.raw)}) == study.pilots + study.new
    assert advancing(pilots.raw) == {"day"}


def outcomes(name, seeds=4):
    return [user.y for seed in range(seeds) for user in STUDIES[name].simulated(seed)[0].raw]


def test_brushing_has_zeros_and_a_timer_ends_it():
    free, limited = np.concatenate(outcomes("brushing")), np.concatenate(outcomes("brushing to 180"))
    assert np.mean(free == 0.0) == pytest.approx(0.25, abs=0.04)
    assert free.max() > 180.0
    assert limited.max() == 180.0
    assert np.mean(limited == 0.0) == pytest.approx(1 / 6, abs=0.04)
    for y in (free, limited):
        assert y[y > 0.0].min() >= 5.0


def test_steps_are_numbers_and_mood_has_eleven_values():
    steps, mood = np.concatenate(outcomes("steps")), np.concatenate(outcomes("mood", 1))
    assert (steps == np.round(steps)).all()
    assert steps.min() == 0.0
    assert np.mean(steps) > 1.2 * np.median(steps)  # skewed
    assert set(mood) <= set(range(11))


@pytest.mark.parametrize(("name", "rho"), [("glucose", 0.6), ("glucose half-hourly", 0.85), ("glucose alone", 0.0)])
def test_what_is_left_of_glucose_is_alike_in_neighbouring_rows(name, rho):
    """By plain least squares on what a user's outcomes are made of; some 5,000 rows, so 0.1 is 7 standard errors."""
    products, squares = 0.0, 0.0
    for seed in range(5):
        for user in STUDIES[name].simulated(seed)[0].raw:
            hour, carbs, steps, _ = user.X.T
            turn = 2.0 * np.pi * hour / 24.0
            columns = np.column_stack([np.ones_like(hour), np.cos(turn), np.sin(turn), carbs, steps])
            left = user.y - columns @ np.linalg.lstsq(columns, user.y, rcond=None)[0]
            products += float(left[1:] @ left[:-1])
            squares += float(left[1:] @ left[1:])
    assert products / squares == pytest.approx(rho, abs=0.1)

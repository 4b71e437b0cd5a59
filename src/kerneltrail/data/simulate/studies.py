"""Studies as they are: a sensor whose rows are alike for a while, brushing with zeros, counts, mood that drifts.

In each, something is not as the models take it to be: noise that lasts, missed sessions, rounding, skewed counts. So
they tell how a method does where its model is not true. `glucose alone` is there to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.user import User

Array = NDArray[np.float64]
USUAL = 100.0
"""Seconds of brushing."""

Rows = tuple[Mapping[str, Array], Array]
"""Columns by name, and the outcome."""


@dataclass(frozen=True)
class Study:
    """A study that can be simulated.

    Attributes:
        about: what is measured, and what is hard about it.
        person: somebody's rows in the order of time, from a generator and how many.
        pilots, new: users of each kind.
        batches: rows of each batch.
    """

    about: str
    person: Callable[[np.random.Generator, int], Rows]
    pilots: int
    new: int
    batches: tuple[int, ...]

    def simulated(self, *seed: int) -> tuple[Cohort, Cohort]:
        """Pilot users and new ones; the target is standardised by the pilot users.

        >>> pilots, new = STUDIES["mood"].simulated(0)
        >>> len(pilots), len(new), pilots.covariates
        (20, 10, ('day', 'evening', 'sleep', 'stress'))
        """
        users = []
        for number in range(self.pilots + self.new):
            kind, count = ("pilot", number) if number < self.pilots else ("new", number - self.pilots)
            columns, y = self.person(np.random.default_rng([*seed, number]), sum(self.batches))
            X = np.column_stack(list(columns.values()))
            users.append(User(f"{kind}-{count + 1:02d}", tuple(columns), X, y, tuple(accumulate(self.batches))))
        cohort = Cohort.from_users(users, target="y", target_scaling="standard")
        return cohort.split(test=[user.name for user in users[self.pilots :]])


def lasting(rows: int, rho: float, rng: np.random.Generator) -> Array:
    """Normal values of variance 1, of which neighbours correlate by rho.

    >>> values = lasting(100_000, 0.6, np.random.default_rng(0))
    >>> [round(float(each), 1) for each in (values.var(), np.corrcoef(values[1:], values[:-1])[0, 1])]
    [1.0, 0.6]
    """
    fresh = rng.standard_normal(rows)
    values = fresh.copy()
    for i in range(1, rows):
        values[i] = rho * values[i - 1] + np.sqrt(1.0 - rho**2) * fresh[i]
    return values


def _glucose(rho: float, step: float) -> Callable[[np.random.Generator, int], Rows]:
    """Glucose in mg/dl every so many hours: a level, a rhythm over the day, meals, steps, and what lasts some rows."""

    def person(rng: np.random.Generator, rows: int) -> Rows:
        time = 6.0 + step * np.arange(rows)
        hour, day = time % 24.0, np.floor(time / 24.0)
        level, height = 145.0 + 22.0 * rng.standard_normal(), 14.0 * np.exp(0.5 * rng.standard_normal())
        peak = 14.0 + 2.5 * rng.standard_normal()
        meals = np.where(np.isin(hour, (8.0, 13.0, 19.0)), rng.gamma(4.0, 12.0, rows), 0.0)
        carbs = meals + (rng.random(rows) < 0.08) * rng.gamma(2.0, 8.0, rows)
        steps = np.log(rng.gamma(0.8, 600.0, rows) + 0.5)
        rise = 0.35 + 0.12 * rng.standard_normal()
        left = 18.0 * np.exp(0.25 * rng.standard_normal()) * lasting(rows, rho, rng)
        y = level + height * np.cos(2.0 * np.pi * (hour - peak) / 24.0) + rise * carbs - 2.0 * (steps - 5.0) + left
        return {"hour": hour, "carbs": carbs, "log_steps": steps, "day": day}, y

    return person


def _brushing(zeros: float, limit: float) -> Callable[[np.random.Generator, int], Rows]:
    """Seconds of brushing, twice a day: some sessions are missed, some people wane, and a timer may end a session."""

    def person(rng: np.random.Generator, rows: int) -> Rows:
        day, evening = np.arange(rows) // 2, np.arange(rows) % 2
        weekend = (day + rng.integers(7)) % 7 >= 5
        level = USUAL + 30.0 * rng.standard_normal()
        odds = np.log(zeros / (1.0 - zeros)) + 0.8 * rng.standard_normal() + 0.3 * weekend + 0.008 * day
        y, before, past = np.empty(rows), np.empty(rows), [USUAL]
        for i in range(rows):
            before[i] = np.mean(past[-14:])
            seconds = level + 10.0 * evening[i] - 0.25 * day[i] + 0.15 * (before[i] - level)
            seconds = max(seconds + 28.0 * np.sqrt(3.0 / 5.0) * rng.standard_t(5.0), 5.0)
            y[i] = 0.0 if rng.random() < 1.0 / (1.0 + np.exp(-odds[i])) else min(seconds, limit)
            past.append(y[i])
        columns = {"day": day, "evening": evening, "weekend": weekend, "before": before}
        return {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}, y

    return person


def _steps(rng: np.random.Generator, rows: int) -> Rows:
    """Numbers of steps at five times a day, not logged: skewed, with zeros."""
    hour, day = np.resize([8.0, 12.0, 15.0, 18.0, 20.0], rows), np.arange(rows) // 5
    before = rng.gamma(0.8, 500.0, rows)
    warm = 15.0 + 6.0 * np.sin(day / 9.0) + 3.0 * rng.standard_normal(rows)
    log = 5.6 + 0.5 * rng.standard_normal() + 0.25 * np.cos(2.0 * np.pi * (hour - 17.0) / 24.0)
    log = log + 0.15 * np.log(before + 1.0) + 0.02 * (warm - 15.0)
    y = np.where(rng.random(rows) < 0.12, 0.0, np.round(np.exp(log) * rng.gamma(1.1, 1.0 / 1.1, rows)))
    return {"hour": hour, "day": day.astype(float), "log_before": np.log(before + 0.5), "temperature": warm}, y


def _mood(rng: np.random.Generator, rows: int) -> Rows:
    """Mood from 0 to 10, twice a day, with a drift that lasts for some ten days."""
    sleep, stress = 7.0 + 1.1 * rng.standard_normal(rows), np.clip(3.0 + 1.5 * lasting(rows, 0.4, rng), 0.0, 10.0)
    drift = 0.7 * lasting(rows, 0.95, rng)
    mood = 6.0 + 0.9 * rng.standard_normal() + 0.3 * (sleep - 7.0) - 0.35 * (stress - 3.0) + drift
    y = np.clip(np.round(mood + 0.9 * rng.standard_normal(rows)), 0.0, 10.0)
    day = np.arange(rows, dtype=np.float64)
    return {"day": day / 2.0, "evening": day % 2.0, "sleep": sleep, "stress": stress}, y


STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        "glucose": Study(
            "glucose every hour; neighbouring rows correlate by 0.6", _glucose(0.6, 1.0), 10, 10, (24,) * 5
        ),
        "glucose half-hourly": Study("the same every half hour, by 0.85", _glucose(0.85, 0.5), 10, 10, (48,) * 4),
        "glucose alone": Study("every hour, with noise that does not last", _glucose(0.0, 1.0), 10, 10, (24,) * 5),
        "brushing": Study("seconds of brushing, a quarter of them 0", _brushing(0.2, np.inf), 12, 10, (14,) * 5),
        "brushing to 180": Study("at most 180 s, a sixth of them 0", _brushing(0.12, 180.0), 9, 10, (20,) * 4),
        "steps": Study("numbers of steps, not logged", _steps, 16, 10, (28,) * 4),
        "mood": Study("mood from 0 to 10, with a drift that lasts for some ten days", _mood, 20, 10, (10,) * 6),
    }
)
"""By name."""

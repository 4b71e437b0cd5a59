"""A simulated mobile-health trial: several covariates, an action with an advantage, and the truth beside the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.simulate.truth import LOG_SD, Simulation, TrueKernel, as_rng, draw_group, draw_target, truth_of
from kerneltrail.data.user import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array, Hyperparameters, parse

COVARIATES = ("hour", "log_steps30pre", "temperature")
UNITS = {"hour": "hours", "log_steps30pre": "log steps", "temperature": "°C", "log_steps30": "log steps"}

_MEAN = 3.0
_PROBABILITY = 0.6
_SLOTS = np.array([8.5, 12.5, 15.5, 18.5, 21.0])
"""Decision points of a day, in hours; five, as in HeartSteps."""

# Half of the users follow the clock, the others the weather; all keep moving when they move already. Amplitudes are
# variances of the log step count, whose noise in HeartSteps is large: a standard deviation of about 2.6.
TRUE_KERNELS = tuple(
    TrueKernel(
        parse(f"LIN[log_steps30pre] + SE[{name}]"),
        {
            "LIN[log_steps30pre].amplitude": 0.08,
            "LIN[log_steps30pre].location": 2.0,
            f"SE[{name}].amplitude": 2.0,
            f"SE[{name}].lengthscale": lengthscale,
            "noise": 1.0,
        },
        location_sd=LOG_SD,
        fixed=(),
    )
    for name, lengthscale in (("hour", 3.0), ("temperature", 6.0))
)


def mhealth(
    train: int = 8,
    test: int = 4,
    seed: int | np.random.Generator = 0,
    *,
    days: int = 32,
    batch_size: int = 40,
) -> Simulation:
    """A small trial in the manner of HeartSteps: y = mean + f(s) + a·(b0 + b1·log_steps30pre) + ε (method (32)).

    Five decision points a day; the user is available at four of five, and then a = 1 with probability 0.6. Half of each
    group has f ~ LIN[log_steps30pre] + SE[hour], the others LIN[log_steps30pre] + SE[temperature]. Covariates are
    scaled by the training users; the truth is in data units.
    """
    if train < 1 or test < 1 or days < 1 or batch_size < 1:
        raise DataError("a trial needs at least one user on each side, one day, and one row a batch")
    rng = as_rng(seed)
    users: list[User] = []
    drawn: dict[str, Hyperparameters] = {}
    advantages: dict[str, Mapping[str, float]] = {}
    for label, size in (("train", train), ("test", test)):
        for name, kernel, stream in draw_group(rng, TRUE_KERNELS, label, size):
            drawn[name] = kernel
            # A prompt helps most those who sit still, and users differ in how much.
            advantages[name] = FrozenDict({"1": 0.8 + 0.2 * stream.standard_normal(), "log_steps30pre": -0.1})
            with one_blas_thread():
                users.append(_user(name, kernel, advantages[name], days, batch_size, stream))
    cohort = Cohort.from_users(users, target="log_steps30", units=UNITS)
    parts = cohort.split(test=[user.name for user in users if user.name.startswith("test")])
    return Simulation(*parts, truth_of(drawn), FrozenDict(drawn), _MEAN, FrozenDict(advantages))


def _user(
    name: str,
    hyperparameters: Hyperparameters,
    advantage: Mapping[str, float],
    days: int,
    batch_size: int,
    rng: np.random.Generator,
) -> User:
    rows = days * len(_SLOTS)
    hour = np.tile(_SLOTS, days) + rng.uniform(-0.5, 0.5, rows)
    X = np.column_stack([hour, steps_before(rows, rng), temperature(hour, days, rng)])
    availability = (rng.random(rows) < 0.8).astype(np.float64)
    probability = _PROBABILITY * availability
    action = (rng.random(rows) < probability).astype(np.float64)
    y = _MEAN + draw_target(hyperparameters, X, COVARIATES, rng)
    y += action * (advantage["1"] + advantage["log_steps30pre"] * X[:, 1])
    seconds = np.round((np.repeat(np.arange(days), len(_SLOTS)) * 24.0 + hour) * 3600.0).astype("timedelta64[s]")
    return User(
        name,
        COVARIATES,
        X,
        y,
        (*range(batch_size, rows, batch_size), rows),
        action=action,
        availability=availability,
        probability=probability,
        order=(np.datetime64("2024-03-04T00:00:00", "us") + seconds),
    )


def steps_before(rows: int, rng: np.random.Generator) -> Array:
    """log(steps + 0.5) of the 30 minutes before: a third of the time none, else a few dozen to a thousand."""
    steps = np.where(rng.random(rows) < 0.35, 0.0, np.round(np.exp(4.5 + 1.2 * rng.standard_normal(rows))))
    return np.log(steps + 0.5)


def temperature(hour: Array, days: int, rng: np.random.Generator, slots: int = len(_SLOTS)) -> Array:
    """°C: days that resemble the day before, and a wave with its top in the afternoon."""
    level = np.empty(days)
    level[0] = 12.0 + 5.0 * rng.standard_normal()
    for day in range(1, days):
        level[day] = 12.0 + 0.8 * (level[day - 1] - 12.0) + 3.0 * rng.standard_normal()
    wave = 4.0 * np.cos(2.0 * np.pi * (hour - 15.0) / 24.0)
    return np.round(np.repeat(level, slots) + wave + 0.5 * rng.standard_normal(len(hour)), 1)

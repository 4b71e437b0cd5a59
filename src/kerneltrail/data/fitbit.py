"""Fitbit trackers of 33 people (Furberg et al. 2016), cut into decision points like HeartSteps; no treatment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.columns import numbers
from kerneltrail.data.scaling import Scaling
from kerneltrail.data.table import read_table
from kerneltrail.errors import DataError

COVARIATES = (
    "hour",
    "log_steps_prev_hour",
    "steps_prev_24h",
    "steps_same_hour_yesterday",
    "weekday",
    "yday",
    "dom",
    "study_day",
)
UNITS = {
    "hour": "hours",
    "log_steps_prev_hour": "log steps",
    "steps_prev_hour": "steps",
    "steps_prev_24h": "steps",
    "steps_same_hour_yesterday": "steps",
    "weekday": "days from Monday",
    "yday": "days of the year",
    "dom": "days of the month",
    "study_day": "days",
    "log_steps": "log steps",
}
_CAUTION = (
    "days with few steps were taken out of the table by looking at the whole day, and a zero may be a tracker that was "
    "not worn"
)


def load_fitbit(
    path: str | os.PathLike[str],
    *,
    covariates: Sequence[str] = COVARIATES,
    batch_size: int = 40,
    scaling: Scaling = "group",
) -> Cohort:
    """The cohort in ``fitbit_decision_points.csv`` (or the hourly table); the target is log(steps of the hour + 0.5).

    Rows that lack a covariate, which happens in the first hours of the hourly table, are dropped and counted.
    """
    table = read_table(path)
    if not {"user", "time", "log_steps", "steps_prev_hour"} <= set(table.names):
        raise DataError(
            f"{table.source} is not a table of Fitbit hours: it must have the columns user, time, log_steps and "
            "steps_prev_hour"
        )
    names = tuple(covariates)
    cohort = Cohort.from_table(
        table,
        user="user",
        order="time",
        target="log_steps",
        covariates=names,
        batch_size=batch_size,
        missing=dict.fromkeys(names, "drop"),
        scaling=scaling,
        target_scaling="none",
        units={name: unit for name, unit in UNITS.items() if name in (*names, "log_steps")},
    )
    if "worn_day" in table and (numbers(table, "worn_day") == 1.0).all():
        return replace(cohort, report=replace(cohort.report, notes=(_CAUTION,)))
    return cohort

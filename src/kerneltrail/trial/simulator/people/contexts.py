"""Contexts like those of a model's pilot users: the clock's hour where a covariate is one, else by their quantiles."""

from __future__ import annotations

import numpy as np
import scipy

from kerneltrail.data import Schema
from kerneltrail.data.checks.findings import QUANTILES
from kerneltrail.data.hours import DAY, is_hour
from kerneltrail.kernels import Array
from kerneltrail.trajectory.graph import LearntGraph

LIKE_BEFORE = 0.5
"""Correlation of a covariate between one decision point and the next."""


def follows_clock(schema: Schema, name: str) -> bool:
    """Whether a covariate is the hour of the day, so that it is known when the decision point is."""
    if name in schema.levels or schema.scaler is None:
        return False
    place = schema.covariates.index(name)
    return is_hour(name, schema.scaler.low[place], schema.scaler.high[place])


def drawn_contexts(model: LearntGraph, hours: Array, rng: np.random.Generator) -> Array:
    """A row for each decision point, in data units."""
    columns = []
    for place, name in enumerate(model.covariates):
        if follows_clock(model.schema, name):
            columns.append(np.clip(hours + rng.uniform(-0.25, 0.25, len(hours)), *DAY))
            continue
        if name in model.schema.levels:
            columns.append(rng.integers(0, len(model.schema.levels[name]), len(hours)).astype(np.float64))
            continue
        known = model.pilot.quantiles.get(name) or (model.scaler.low[place], model.scaler.high[place])
        at = QUANTILES if len(known) == len(QUANTILES) else np.linspace(0.0, 1.0, len(known))
        columns.append(np.interp(_uniform(len(hours), rng), at, known))
    return np.column_stack(columns)


def _uniform(size: int, rng: np.random.Generator) -> Array:
    """Numbers between 0 and 1, each evenly spread and like the one before."""
    white = rng.standard_normal(size)
    walk = np.empty(size)
    for i in range(size):
        walk[i] = white[i] if i == 0 else LIKE_BEFORE * walk[i - 1] + np.sqrt(1.0 - LIKE_BEFORE**2) * white[i]
    return np.asarray(scipy.special.ndtr(walk))

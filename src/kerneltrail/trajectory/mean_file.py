"""The population mean in a model's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PLACES, PopulationMean
from kerneltrail.store.container import Arrays
from kerneltrail.store.validate import array, conform


def arrays_of_mean(mean: PopulationMean) -> dict[str, NDArray[Any]]:
    """A mean as arrays; those whose name begins with ``mean.`` decide how users are followed."""
    arrays = {"mean.weights": mean.weights}
    if mean.between is not None:
        arrays["between"] = mean.between
    if mean.curves is not None:
        arrays["mean.curves"] = mean.curves
    if mean.level is not None:
        assert mean.level.curves is not None
        arrays |= {"mean.level.weights": mean.level.weights, "mean.level.curves": mean.level.curves}
        arrays["mean.level.scatter"] = np.array([mean.scatter])
    return arrays


def decode_mean(content: Mapping[str, Any], arrays: Arrays) -> PopulationMean | None:
    """The mean of a file's content; files written before there was one do not speak of it."""
    stored = content.get("mean")
    if stored is None:
        return None
    conform(stored, {"penalty": float}, "its mean")
    reward, penalty = content["reward"], stored["penalty"]
    names = Schema.from_json(content["schema"]).covariates
    effect = None if reward is None else replace(Reward(**reward), variances=None, slopes=(), covariance=None)

    def known(name: str, *shape: int | None) -> NDArray[Any] | None:
        return array(arrays, name, shape, finite=True) if name in arrays else None

    d, places = len(names), len(PLACES)
    weights = array(arrays, "mean.weights", (None,), finite=True)
    mean = PopulationMean(weights, names, effect, penalty, known("mean.curves", d, places), known("between", d, 2))
    straight, curves = known("mean.level.weights", 1 + d), known("mean.level.curves", d, places)
    if straight is None or curves is None:
        return mean
    scatter = float(array(arrays, "mean.level.scatter", (1,), finite=True)[0])
    return replace(mean, level=PopulationMean(straight, names, None, penalty, curves), scatter=scatter)

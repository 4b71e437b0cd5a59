"""What acting adds for one user: on average over the contexts met, and along each feature that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kerneltrail import gp
from kerneltrail.data import Schema, User
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import aligned, brief_chance, counted, rounded
from kerneltrail.trajectory.echo import echo_of
from kerneltrail.trajectory.effect_search import FEW
from kerneltrail.trajectory.effects import SURE
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.kernel_posterior import KernelPosterior, block_features

GRID = 9
"""Values of a feature at which the advantage is stated, unless it has a few levels."""

COLUMNS = ("where", "added", "90 % interval", "probability above 0")
"""Of a table of what acting adds, as people read it."""


@dataclass(frozen=True)
class FeatureAdvantage:
    """What acting adds along one feature, averaged over the other features as they occurred.

    Attributes:
        feature: the covariate.
        x: its values, in its units, (g,).
        advantage: at each of them, in the target's units: a mixture at g places.
        change: the advantage at the last value less that at the first: a mixture at one place.
    """

    feature: str
    x: Array
    advantage: NormalMixture
    change: NormalMixture


@dataclass(frozen=True)
class TreatmentEffect:
    """What acting adds for one user (method (33)), in the target's units.

    Attributes:
        average: over the newest contexts of the user: a mixture at one place.
        features: along each feature on which the advantage depends.
        rows: number of rows seen.
        schema: of the model, with the names of values; None if they are not known.
    """

    average: NormalMixture
    features: tuple[FeatureAdvantage, ...]
    rows: int
    schema: Schema | None = field(default=None, compare=False, repr=False)

    @property
    def clear(self) -> bool:
        """Whether it is clear that acting helps, or harms, on average."""
        return max(float(self.average.positive[0]), 1.0 - float(self.average.positive[0])) >= SURE

    def __repr__(self) -> str:
        rows = [COLUMNS, ("on average", *_cells(self.average, 0))]
        for each in self.features:
            for i, value in enumerate(each.x.tolist()):
                name = None if self.schema is None else self.schema.name_of(each.feature, value)
                at = name or rounded(value, float(np.ptp(each.x)))
                rows.append((f"{each.feature} {at}", *_cells(each.advantage, i)))
        return "\n".join([f"{self._title}, after {counted(self.rows, 'row')}", *aligned(rows)])

    @property
    def _title(self) -> str:
        """What the numbers are: of which action and which outcome, in which unit."""
        schema = self.schema
        if schema is None or schema.action is None:
            return "What acting adds"
        unit = schema.unit(schema.target)
        return f"What {schema.label(schema.action)} adds to {schema.label(schema.target)}{f' ({unit})' if unit else ''}"

    def to_json(self) -> list[dict[str, Any]]:
        """A row for the average, then one for each value of each feature."""
        rows = [_row(self.average, 0, "average", None)]
        for each in self.features:
            rows += [_row(each.advantage, i, each.feature, float(x)) for i, x in enumerate(each.x)]
        return rows


def _cells(mixture: NormalMixture, i: int) -> tuple[str, str, str]:
    """What acting adds at one place, its interval, and how sure it is that it is above 0, for people."""
    low, high = (float(end[i]) for end in mixture.interval(0.9))
    mean = rounded(float(mixture.mean[i]), high - low)
    signed = f"+{mean}" if float(mixture.mean[i]) > 0 and mean != "0" else mean
    interval = f"{rounded(low, high - low)} to {rounded(high, high - low)}"
    return signed, interval, brief_chance(float(mixture.positive[i]))


def _row(mixture: NormalMixture, i: int, feature: str, value: float | None) -> dict[str, Any]:
    low, high = mixture.interval(0.9)
    return {
        "feature": feature,
        "value": value,
        "advantage": float(mixture.mean[i]),
        "lower": float(low[i]),
        "upper": float(high[i]),
        "probability_positive": float(mixture.positive[i]),
    }


def treatment_effect(
    model: LearntGraph, kernels: Sequence[KernelPosterior], recent: User, rows: int
) -> TreatmentEffect:
    """What acting adds for one user, given the kernels that count, over the contexts of the newest rows, scaled.

    As with effects, the uncertainty allows for noise that is alike in neighbouring rows (method (79)).
    """
    reward, contexts = model.reward, recent.X
    assert reward is not None  # asked for where there is an action
    design = reward.contexts(contexts, model.covariates)
    constant, d = int(reward.intercept), len(model.covariates)
    shared = np.zeros(design.shape[1])
    if model.mean is not None:
        shared = model.mean.weights[1 + d : 1 + d + design.shape[1]]
    weights = np.array([kernel.weight for kernel in kernels])
    left = weights @ np.array([kernel.rest(model, recent) for kernel in kernels])
    echo, block = echo_of(left, model.echo), block_features(model, recent)

    def mixture(points: Array) -> NormalMixture:
        added = np.zeros((len(points), len(reward.names)))
        added[:, reward.advantage] = points
        none = np.empty((len(points), 0))
        parts = [
            gp.partial.partial_effect(each.posterior, [], [], none, contexts, added, echo, block) for each in kernels
        ]
        means = np.array([mean for mean, _ in parts]) + points @ shared
        variances = np.array([np.diagonal(covariance) for _, covariance in parts])
        return NormalMixture(
            weights, model.scaler.scale * means, model.scaler.inverse_variance(np.maximum(variances, 0.0))
        )

    features = []
    for f, name in enumerate(reward.features):
        seen = contexts[:, model.covariates.index(name)]
        distinct = np.unique(seen)
        x = distinct if len(distinct) <= FEW else np.quantile(seen, np.linspace(0.05, 0.95, GRID))
        points = np.repeat(design.mean(axis=0)[None], len(x), axis=0)
        points[:, constant + f] = x
        units = np.array([model.scaler.location(name, float(value)) for value in x])
        features.append(FeatureAdvantage(name, units, mixture(points), mixture(points[-1:] - points[:1])))
    return TreatmentEffect(mixture(design.mean(axis=0)[None]), tuple(features), rows, model.schema)

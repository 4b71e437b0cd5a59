"""The parts of one kernel's fit: what each product adds, with its band; the expert's view below the effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Scaler, User
from kerneltrail.data.assignment import Assignment
from kerneltrail.report.figures import Curve
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.node_fit import NodePosterior

Array = NDArray[np.float64]

POINTS = 70
"""Points at which curves are drawn."""


@dataclass(frozen=True)
class PartView:
    """One part of a fit against its covariate, in data units.

    Attributes:
        title: the product.
        covariate: the axis.
        curve: mean and standard deviation of the part.
        x, y: rows seen: the part plus what no part explains.
        others: covariates of the product that are held at their medians.
        share: of the variance over the rows seen.
    """

    title: str
    covariate: str
    curve: Curve
    x: Array
    y: Array
    others: tuple[str, ...]
    share: float


def parts_of(
    model: LearntGraph, scaler: Scaler, seen: User, view: NodePosterior, shared: Array
) -> tuple[list[float], tuple[PartView, ...]]:
    """Shares of the products in the composition's order, and every part against its first covariate, largest first.

    `shared` is what the user varies around at the rows seen, scaled.
    """
    posterior = view.posterior
    X = scaler.transform(seen.X)
    design = design_of(model, X, seen.assignment)
    here = posterior.components(X, linear=design)
    rest = scaler.transform_target(seen.y) - shared - np.sum([part.mean for part in here], axis=0)
    noise = float(view.fit.hyperparameters.values_array[-1]) * model.widening
    sizes = [float(np.var(part.mean)) for part in here]
    shares = [size / (sum(sizes) + noise) for size in sizes]
    views = []
    for p, product in enumerate(view.fit.node.composition):
        name, *others = dict.fromkeys(product.covariates)
        at, x = _along(X, seen, name)
        blank = None if design is None else np.zeros((POINTS, design.shape[1]))
        part = posterior.components(at, linear=blank)[p]
        curve = Curve(x, scaler.scale * part.mean, scaler.scale * np.sqrt(part.variance))
        dots = scaler.scale * (here[p].mean + rest)
        column = seen.X[:, seen.column_index(name)]
        views.append(PartView(str(product), name, curve, column, dots, tuple(others), shares[p]))
    views.sort(key=lambda part: -part.share)
    return shares[: len(view.fit.node.composition)], tuple(views)


def design_of(model: LearntGraph, X: Array, assignment: Assignment | None) -> Array | None:
    """The features of the reward model's linear block at scaled rows; None where there is none."""
    return None if model.reward is None else model.reward.design(X, model.covariates, assignment)


def _along(X: Array, seen: User, name: str) -> tuple[Array, Array]:
    """Scaled rows that vary in one covariate over the user's range, others at their medians; and its data values."""
    column = seen.column_index(name)
    at = np.tile(np.median(X, axis=0), (POINTS, 1))
    at[:, column] = np.linspace(X[:, column].min(), X[:, column].max(), POINTS)
    raw = seen.X[:, column]
    return at, np.linspace(raw.min(), raw.max(), POINTS)

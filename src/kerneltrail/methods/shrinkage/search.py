"""The search for the best variational factors: several starts, a quasi-Newton search from the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from kerneltrail.errors import NumericalError
from kerneltrail.methods.shrinkage.objective import Factors, Problem

Array = NDArray[np.float64]

FARTHEST = 6.0
"""How many prior standard deviations a hyperparameter may move."""

LOG_WEIGHT = 60.0
"""Largest mean of a log scale, either way."""

LOG_SPREAD = (-10.0, 3.0)
"""Range of the log variance of a log scale: at 3 a scale is known to within a factor of 90 either way."""

FIRST = 25
"""Iterations after which starts are compared: by then the bound is within a few nats of where it will end."""

FINALISTS = 2
"""Starts that are followed to the end: after the first iterations the second best is still best now and then."""

REFUSED = 1e200
"""What a point is worth whose matrix could not be factorised: finite, so that a line search can step back from it."""


@dataclass(frozen=True)
class Optimum:
    """A local optimum of the bound.

    Attributes:
        factors: where.
        bound: how high.
    """

    factors: Factors
    bound: float


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Attributes:
        factors: the best point.
        bound: the evidence lower bound there.
        iterations: of the winning search.
        evaluations: bounds computed with their gradient, all searches together.
        converged: whether the winning search ended by itself.
        optima: where every search that was followed to the end has ended, best first.
    """

    factors: Factors
    bound: float
    iterations: int
    evaluations: int
    converged: bool
    optima: tuple[Optimum, ...]


def search(problem: Problem, starts: Sequence[Factors], *, iterations: int, tolerance: float) -> Found:
    """Maximise the bound from every start: a few iterations for each, then the best to the end."""
    scales = problem.draws.shape[1]
    sd = np.sqrt(problem.variance)
    centre = np.concatenate([np.zeros(2 * scales), problem.mean])
    unit = np.concatenate([np.ones(2 * scales), sd])
    bounds = [(-LOG_WEIGHT, LOG_WEIGHT)] * scales + [LOG_SPREAD] * scales + [(-FARTHEST, FARTHEST)] * len(problem.mean)
    low, high = np.array(bounds).T
    spent = 0

    def objective(point: Array) -> tuple[float, Array]:
        nonlocal spent
        spent += 1
        try:
            with np.errstate(all="ignore"):
                value, gradient = problem.evaluate(Factors.unpacked(centre + unit * point, scales))
        except NumericalError:
            return REFUSED, np.zeros_like(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return REFUSED, np.zeros_like(point)
        return -value, -gradient * unit

    def run(point: Array, most: int) -> tuple[float, Array, int, bool]:
        ended = minimize(
            objective,
            point,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": most, "ftol": tolerance, "gtol": 1e-4, "maxcor": 60},
        )
        return float(ended.fun), np.asarray(ended.x), int(ended.nit), bool(ended.success)

    points = [np.clip((start.packed - centre) / unit, low, high) for start in starts]
    if len(points) > FINALISTS:
        ends = sorted((run(point, min(FIRST, iterations)) for point in points), key=lambda end: end[0])
        points = [end[1] for end in ends[:FINALISTS]]
    ended = sorted((run(point, iterations) for point in points), key=lambda end: end[0])
    optima = tuple(
        Optimum(Factors.unpacked(centre + unit * point, scales), -value)
        for value, point, _, _ in ended
        if value < REFUSED
    )
    if not optima:
        raise NumericalError(
            f"no start gave a finite bound for user {problem.inputs.user!r}: the targets may be far out of scale"
        )
    _, _, taken, converged = ended[0]
    return Found(optima[0].factors, optima[0].bound, taken, spent, converged, optima)

"""Optima of the bound: a quasi-Newton search from several starts, wider searches from more of them, and their weights.

Further rounds of starts, and hops from the best optimum, only add to what the first round finds: the best bound never
falls with more hops nor, where there are none, with more rounds. All is decided by the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy

from kerneltrail.errors import NumericalError
from kerneltrail.gp.numerics import LEAST_CURVATURE, LOG_2PI
from kerneltrail.methods.protocol import Array
from kerneltrail.methods.shrinkage.elbo import EvidenceLowerBound, Factors
from kerneltrail.methods.shrinkage.starting_points import ASIDE

VALLEY = 2.0
"""Nats by which the bound must fall midway between two optima for them to count as two."""

WORTH = 10.0
"""Optima whose bound is so many nats below the best are not weighed: a volume would have to be e¹⁰ times as large."""

STEP = 1e-4
"""Step of the differences that give a curvature, in prior standard deviations."""

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
    """A local optimum of the bound: where it is, and how high."""

    factors: Factors
    bound: float


@dataclass(frozen=True)
class StartingRound:
    """What one round of starts has to offer.

    `alone` is θ with every product at the MAP it has alone, from which hops take theirs.
    """

    starts: tuple[Factors, ...]
    alone: Array


def maximise(
    elbo: EvidenceLowerBound, starts: Sequence[Factors], *, iterations: int, tolerance: float
) -> tuple[Optimum, ...]:
    """Maximise the bound from every start: a few iterations for each, then the best to the end; optima, best first."""
    scales = elbo.draws.shape[1]
    sd = np.sqrt(elbo.variance)
    centre = np.concatenate([np.zeros(2 * scales), elbo.mean])
    unit = np.concatenate([np.ones(2 * scales), sd])
    bounds = [(-LOG_WEIGHT, LOG_WEIGHT)] * scales + [LOG_SPREAD] * scales + [(-FARTHEST, FARTHEST)] * len(elbo.mean)
    low, high = np.array(bounds).T

    def objective(point: Array) -> tuple[float, Array]:
        try:
            with np.errstate(all="ignore"):
                value, gradient = elbo.evaluate(Factors.unpacked(centre + unit * point, scales))
        except NumericalError:
            return REFUSED, np.zeros_like(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return REFUSED, np.zeros_like(point)
        return -value, -gradient * unit

    def run(point: Array, most: int) -> tuple[float, Array]:
        ended = scipy.optimize.minimize(
            objective,
            point,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": most, "ftol": tolerance, "gtol": 1e-4, "maxcor": 60},
        )
        return float(ended.fun), np.asarray(ended.x)

    points = [np.clip((start.packed - centre) / unit, low, high) for start in starts]
    if len(points) > FINALISTS:
        ends = sorted((run(point, min(FIRST, iterations)) for point in points), key=lambda end: end[0])
        points = [end[1] for end in ends[:FINALISTS]]
    ended = sorted((run(point, iterations) for point in points), key=lambda end: end[0])
    optima = tuple(
        Optimum(Factors.unpacked(centre + unit * point, scales), -value) for value, point in ended if value < REFUSED
    )
    if not optima:
        raise NumericalError(
            f"no start gave a finite bound for user {elbo.inputs.user!r}: the targets may be far out of scale"
        )
    return optima


def find_optima(
    elbo: EvidenceLowerBound,
    round_of: Callable[[int], StartingRound],
    *,
    restarts: int,
    hops: int,
    rng: np.random.Generator,
    iterations: int,
    tolerance: float,
) -> tuple[Optimum, ...]:
    """All optima found, best first: those of every round, and of every hop from the best so far.

    `round_of` gives the starts of a round by its number from 0. Hops are searches from the best optimum perturbed by
    `rng`, one after the other.
    """
    first = round_of(0)
    rounds = [first, *(round_of(number) for number in range(1, restarts))]
    optima = list(maximise(elbo, first.starts, iterations=iterations, tolerance=tolerance))

    def more(starts: Sequence[Factors]) -> None:
        with suppress(NumericalError):  # a start that cannot be evaluated finds nothing; what is found stays
            optima.extend(maximise(elbo, starts, iterations=iterations, tolerance=tolerance))

    for each in rounds[1:]:
        more(each.starts)
    for _ in range(hops):
        best = max(optima, key=lambda optimum: optimum.bound)
        more([perturbed(elbo, best.factors, rounds[int(rng.integers(len(rounds)))].alone, rng)])
    return tuple(sorted(optima, key=lambda optimum: -optimum.bound))


def perturbed(elbo: EvidenceLowerBound, factors: Factors, alone: Array, rng: np.random.Generator) -> Factors:
    """Factors with some products begun anew, from one to half of them; the others stay as they are.

    Each takes its hyperparameters from `alone` or from the prior, and begins at an equal share or well below.
    """
    products = len(elbo.inputs.atoms)
    slots = [elbo.inputs.layout.slots[index].product for index in elbo.places]
    m, v, theta = factors.m.copy(), factors.v.copy(), factors.theta.copy()
    drawn = elbo.mean + np.sqrt(elbo.variance) * rng.standard_normal(len(theta))
    for p in rng.permutation(products)[: rng.integers(1, max(products // 2, 1) + 1)]:
        indices = [j for j, product in enumerate(slots) if product == p]
        theta[indices] = (alone if rng.random() < 0.5 else drawn)[indices]
        m[1 + p], v[1 + p] = -np.log(products) - ASIDE * rng.integers(2), 1.0
    return replace(factors, m=m, v=v, theta=theta)


def distinct_optima(elbo: EvidenceLowerBound, optima: Sequence[Optimum]) -> tuple[Optimum, ...]:
    """The optima with a valley between any two of them, best first; of two without, the better stays.

    A search that ends twice on one hill has found one optimum, not two: weighed twice it would count double.
    """
    distinct: list[Optimum] = []
    for each in sorted(optima, key=lambda optimum: -optimum.bound):
        if all(_midway(elbo, each, other) < each.bound - VALLEY for other in distinct):
            distinct.append(each)
    return tuple(distinct)


def _midway(elbo: EvidenceLowerBound, first: Optimum, second: Optimum) -> float:
    scales = len(first.factors.m)
    try:
        return elbo.value(Factors.unpacked(0.5 * (first.factors.packed + second.factors.packed), scales))
    except NumericalError:
        return -np.inf  # nothing can be there: a valley


def log_volume(elbo: EvidenceLowerBound, factors: Factors) -> float:
    """Laplace's volume of an optimum in θ: (k/2) log 2π - ½ log|H|, H minus the Hessian of the bound by θ.

    With it a bound at a point θ becomes one with q(θ) = N(θ, H⁻¹), to second order: E[L] + entropy = L + log volume.
    Curvatures relative to the prior's are floored as those of `MapResult.log_laplace` are.
    """
    size, sd = len(factors.theta), np.sqrt(elbo.variance)
    hessian = np.empty((size, size))
    for j in range(size):
        step = STEP * sd[j] * np.eye(size)[j]
        up, down = (
            elbo.evaluate(replace(factors, theta=theta))[1][-size:]
            for theta in (factors.theta + step, factors.theta - step)
        )
        hessian[j] = (down - up) * sd / (2.0 * STEP)  # in prior standard deviations: that of the prior alone is I
    eigenvalues = np.linalg.eigvalsh(0.5 * (hessian + hessian.T))
    logdet = float(np.log(np.maximum(eigenvalues, LEAST_CURVATURE)).sum()) - float(np.log(elbo.variance).sum())
    return 0.5 * size * LOG_2PI - 0.5 * logdet


def weigh_optima(elbo: EvidenceLowerBound, optima: Sequence[Optimum]) -> tuple[tuple[Optimum, float], ...]:
    """The optima that are apart with their log weights in a mixture of variational posteriors, normalised.

    For q = Σ π_k q_k whose parts do not overlap the bound is Σ π_k (L_k - log π_k). It is greatest at π_k ∝ exp L_k,
    where it is log Σ exp L_k; L_k is the bound of an optimum with its `log_volume`. Three things are approximate: parts
    may overlap a little (`distinct_optima` only asks for a valley between them), the volume is Laplace's with θ
    independent of the scales, and optima that were not found are missing. What is `WORTH` nats below the best is left
    out.
    """
    near = [each for each in optima if each.bound > max(other.bound for other in optima) - WORTH]
    members, volumes = [], []
    for each in distinct_optima(elbo, near):
        with suppress(NumericalError):  # without a curvature it cannot be weighed
            volumes.append(log_volume(elbo, each.factors))
            members.append(each)
    if not members:
        return ((max(near, key=lambda optimum: optimum.bound), 0.0),)
    log = np.array([each.bound for each in members]) + np.array(volumes)
    log -= log.max() + np.log(np.exp(log - log.max()).sum())
    return tuple(zip(members, log.tolist(), strict=True))

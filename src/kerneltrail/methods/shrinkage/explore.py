"""A wider search for the bound: rounds of independent starts, then hops from the best; and what its optima weigh.

Both only add to what the first round finds: the best bound never falls with more hops nor, where there are none, with
more rounds. All is decided by the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp.map import LEAST_CURVATURE
from kerneltrail.gp.numerics import LOG_2PI
from kerneltrail.methods.shrinkage.objective import Factors, Problem
from kerneltrail.methods.shrinkage.search import Optimum, search
from kerneltrail.methods.shrinkage.starts import ASIDE

Array = NDArray[np.float64]

VALLEY = 2.0
"""Nats by which the bound must fall midway between two optima for them to count as two."""

WORTH = 10.0
"""Optima whose bound is so many nats below the best are not weighed: a volume would have to be e¹⁰ times as large."""

STEP = 1e-4
"""Step of the differences that give a curvature, in prior standard deviations."""


@dataclass(frozen=True)
class Round:
    """What one round of starts has to offer.

    Attributes:
        starts: where to begin.
        alone: θ with every product at the MAP it has alone, from which hops take theirs.
    """

    starts: tuple[Factors, ...]
    alone: Array


def explore(
    problem: Problem,
    round_of: Callable[[int], Round],
    *,
    restarts: int,
    hops: int,
    rng: np.random.Generator,
    iterations: int,
    tolerance: float,
) -> tuple[Optimum, ...]:
    """All optima found, best first: those of every round, and of every hop from the best so far.

    Args:
        problem: the bound.
        round_of: the starts of a round, by its number from 0.
        restarts: rounds.
        hops: searches from a disturbed best optimum, one after the other.
        rng: of the hops.
        iterations, tolerance: of each search.
    """
    first = round_of(0)
    rounds = [first, *(round_of(number) for number in range(1, restarts))]
    found = list(search(problem, first.starts, iterations=iterations, tolerance=tolerance).optima)

    def more(starts: Sequence[Factors]) -> None:
        with suppress(NumericalError):  # a start that cannot be evaluated finds nothing; what is found stays
            found.extend(search(problem, starts, iterations=iterations, tolerance=tolerance).optima)

    for each in rounds[1:]:
        more(each.starts)
    for _ in range(hops):
        best = max(found, key=lambda optimum: optimum.bound)
        more([disturbed(problem, best.factors, rounds[int(rng.integers(len(rounds)))].alone, rng)])
    return tuple(sorted(found, key=lambda optimum: -optimum.bound))


def disturbed(problem: Problem, factors: Factors, alone: Array, rng: np.random.Generator) -> Factors:
    """Factors with one product to half of them begun anew, the others as they are.

    Each takes its hyperparameters from `alone` or from the prior, and begins at an equal share or well below.
    """
    products = len(problem.inputs.atoms)
    slots = [problem.inputs.layout.slots[place].product for place in problem.places]
    m, v, theta = factors.m.copy(), factors.v.copy(), factors.theta.copy()
    drawn = problem.mean + np.sqrt(problem.variance) * rng.standard_normal(len(theta))
    for p in rng.permutation(products)[: rng.integers(1, max(products // 2, 1) + 1)]:
        own = [j for j, product in enumerate(slots) if product == p]
        theta[own] = (alone if rng.random() < 0.5 else drawn)[own]
        m[1 + p], v[1 + p] = -np.log(products) - ASIDE * rng.integers(2), 1.0
    return replace(factors, m=m, v=v, theta=theta)


def apart(problem: Problem, optima: Sequence[Optimum]) -> tuple[Optimum, ...]:
    """The optima with a valley between any two of them, best first; of two without, the better stays.

    A search that ends twice on one hill has found one optimum, not two: weighed twice it would count double.
    """
    kept: list[Optimum] = []
    for each in sorted(optima, key=lambda optimum: -optimum.bound):
        if all(_midway(problem, each, other) < each.bound - VALLEY for other in kept):
            kept.append(each)
    return tuple(kept)


def _midway(problem: Problem, first: Optimum, second: Optimum) -> float:
    scales = len(first.factors.m)
    try:
        return problem.value(Factors.unpacked(0.5 * (first.factors.packed + second.factors.packed), scales))
    except NumericalError:
        return -np.inf  # nothing can be there: a valley


def log_volume(problem: Problem, factors: Factors) -> float:
    """Laplace's volume of an optimum in θ: (k/2) log 2π - ½ log|H|, H minus the Hessian of the bound by θ.

    With it a bound at a point θ becomes one with q(θ) = N(θ, H⁻¹), to second order: E[L] + entropy = L + log volume.
    Curvatures relative to the prior's are floored as those of `MapResult.log_laplace` are.
    """
    size, sd = len(factors.theta), np.sqrt(problem.variance)
    hessian = np.empty((size, size))
    for j in range(size):
        step = STEP * sd[j] * np.eye(size)[j]
        up, down = (
            problem.evaluate(replace(factors, theta=theta))[1][-size:]
            for theta in (factors.theta + step, factors.theta - step)
        )
        hessian[j] = (down - up) * sd / (2.0 * STEP)  # in prior standard deviations: that of the prior alone is I
    eigenvalues = np.linalg.eigvalsh(0.5 * (hessian + hessian.T))
    logdet = float(np.log(np.maximum(eigenvalues, LEAST_CURVATURE)).sum()) - float(np.log(problem.variance).sum())
    return 0.5 * size * LOG_2PI - 0.5 * logdet


def weighed(problem: Problem, optima: Sequence[Optimum]) -> tuple[tuple[Optimum, float], ...]:
    """The optima that are apart with their log weights in a mixture of variational posteriors, normalised.

    For q = Σ π_k q_k whose parts do not overlap the bound is Σ π_k (L_k - log π_k). It is greatest at π_k ∝ exp L_k,
    where it is log Σ exp L_k; L_k is the bound of an optimum with its `log_volume`. Approximate are: that parts do not
    overlap (they are `apart`, no more), the volume (Laplace, θ independent of the scales), and that only optima that
    were found are there. What is `WORTH` nats below the best is left out.
    """
    near = [each for each in optima if each.bound > max(other.bound for other in optima) - WORTH]
    kept, volumes = [], []
    for each in apart(problem, near):
        with suppress(NumericalError):  # without a curvature it cannot be weighed
            volumes.append(log_volume(problem, each.factors))
            kept.append(each)
    if not kept:
        return ((max(near, key=lambda optimum: optimum.bound), 0.0),)
    log = np.array([each.bound for each in kept]) + np.array(volumes)
    log -= log.max() + np.log(np.exp(log - log.max()).sum())
    return tuple(zip(kept, log.tolist(), strict=True))
